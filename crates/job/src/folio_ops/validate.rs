//! From a job as written to one of the workload `folio-ops`.

use super::{FOLIO_OPS, FolioOps, PAGE_BYTES, PMD_BYTES};
use crate::Error;
use crate::accesses::DEFAULT_SEED;
use crate::bounds::{MAX_FOLIO_OPS_BYTES, MAX_FOLIO_OPS_RUNS};
use crate::flags::{Flag, JobSpec, Of};
use crate::job::EngineKind;
use crate::limits::{name, out_of_range, size, within};
use crate::seed;
use crate::size::{format_size, parse_size, shorten};

/// Anonymous memory where no size is given, in bytes.
pub(super) const DEFAULT_BYTES: u64 = 256 << 20;

/// Sizes of folios where none are given: the control, then those that were published.
pub(super) const DEFAULT_FOLIO_BYTES: [u64; 9] =
    [4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20];

/// Repeats where no number is given: as many as a median of a shared machine needs.
pub(super) const DEFAULT_RUNS: u64 = 9;

/// Flags of every job that this one takes.
const TAKEN: [&str; 5] = ["on", "runs", "workload", "seed", "file_size"];

impl JobSpec {
    /// Whether it is of the workload `folio-ops`, of which [`JobSpec::validate_folio_ops`] makes a
    /// job.
    pub fn is_folio_ops(&self) -> bool {
        self.workload.as_deref() == Some(FOLIO_OPS)
    }

    /// Checks every value of a job of the workload `folio-ops`, and resolves what was not given.
    ///
    /// # Errors
    /// As for [`JobSpec::validate`].
    pub fn validate_folio_ops(self) -> Result<FolioOps, Error> {
        self.check_of_folio_ops()?;
        let given = seed::given(self.seed, self.seed_text.as_deref())?;
        Ok(FolioOps {
            engine: name("on", &self.on, EngineKind::Model)?,
            runs: within("runs", self.runs.unwrap_or(DEFAULT_RUNS), 1, MAX_FOLIO_OPS_RUNS)?,
            seed: within("seed", given.unwrap_or(DEFAULT_SEED), 1, u64::MAX)?,
            bytes: self.valid_bytes()?,
            folio_bytes: match &self.folio_sizes {
                Some(text) => folio_sizes(text).map_err(|error| error.of("folio-sizes"))?,
                None => DEFAULT_FOLIO_BYTES.to_vec(),
            },
        })
    }

    /// Refuses the workload `folio-ops` and its flags, where another job is wanted.
    pub(crate) fn check_not_folio_ops(&self) -> Result<(), Error> {
        if self.is_folio_ops() {
            return Err(Error::IsFolioOps);
        }
        match self.given().find(|flag| flag.of == Of::FolioOps) {
            Some(flag) => Err(Error::OfFolioOps { flag: flag.name }),
            None => Ok(()),
        }
    }

    /// Refuses flags that mean nothing to it.
    fn check_of_folio_ops(&self) -> Result<(), Error> {
        let other = "--workload folio-ops";
        if !self.phase.is_empty() {
            let remedy = "give it without phases";
            return Err(Error::Conflict { flag: "workload folio-ops", other: "[[phase]]", remedy });
        }
        let is_taken = |flag: &Flag| flag.of == Of::FolioOps || TAKEN.contains(&flag.key);
        match self.given().find(|flag| !is_taken(flag)) {
            Some(flag) => Err(Error::Conflict { flag: flag.name, other, remedy: remedy(flag) }),
            None => Ok(()),
        }
    }

    fn valid_bytes(&self) -> Result<u64, Error> {
        let given = size("file-size", &self.file_size, PMD_BYTES, MAX_FOLIO_OPS_BYTES)?;
        let bytes = given.unwrap_or(DEFAULT_BYTES);
        if bytes.is_multiple_of(PMD_BYTES) {
            return Ok(bytes);
        }
        let below = bytes - bytes % PMD_BYTES;
        Err(Error::Unaligned {
            value: self.file_size.as_ref().map_or_else(String::new, |text| shorten(&text.0)),
            unit: format!("the largest folio, {}", format_size(PMD_BYTES)),
            below: format_size(below),
            above: format_size(below + PMD_BYTES),
        }
        .of("file-size"))
    }
}

/// What to do about a flag that it does not take.
fn remedy(flag: &Flag) -> &'static str {
    match flag.key {
        "with" => "leave it out: all ways to count run side by side",
        "image" | "modules" => "leave it out: --on kernel is the running kernel",
        "kernel" => {
            "leave it out: it goes by no rules of a kernel, and --on kernel is the running \
                     one"
        }
        "machine" => "leave it out: its times are measured here, not predicted",
        "ram" | "cache_limit" | "memory_high" | "memory_max" => {
            "leave it out: the memory is all its own; --file-size says how much it is"
        }
        "threads" | "cpus" => "leave it out: it takes a thread for each CPU where it needs several",
        "arch" | "page_size" => "leave it out: its pages are of 4k",
        _ => "leave it out, or give another --workload",
    }
}

/// The sizes of `text`, ascending.
fn folio_sizes(text: &str) -> Result<Vec<u64>, Error> {
    let mut sizes =
        text.split(',').map(|size| folio_size(size.trim())).collect::<Result<Vec<_>, _>>()?;
    sizes.sort_unstable();
    match sizes.windows(2).find(|two| two[0] == two[1]) {
        Some(twice) => Err(Error::Twice { value: format_size(twice[0]) }),
        None => Ok(sizes),
    }
}

/// A size that a folio can have.
fn folio_size(text: &str) -> Result<u64, Error> {
    let range = || out_of_range(shorten(text), format_size(PAGE_BYTES), format_size(PMD_BYTES));
    match parse_size(text) {
        Ok(bytes) if !(PAGE_BYTES..=PMD_BYTES).contains(&bytes) => Err(range()),
        Ok(bytes) if !bytes.is_power_of_two() => Err(Error::NotPowerOfTwo { value: shorten(text) }),
        Err(Error::OutOfRange { .. }) => Err(range()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid(keys: &str) -> Result<FolioOps, String> {
        let spec = JobSpec::from_toml(&format!("workload = 'folio-ops'\n{keys}")).unwrap();
        spec.validate_folio_ops().map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_given_is_as_published() {
        let job = valid("").unwrap();
        assert_eq!((job.runs, job.bytes, job.pages()), (9, 256 << 20, 65_536));
        assert_eq!((job.folio_bytes.len(), job.folio_bytes[0]), (9, 4096));
        let job = valid("folio_sizes = '2m, 8k,16KiB'\nfile_size = '4m'").unwrap();
        assert_eq!((job.folio_bytes, job.bytes), (vec![8 << 10, 16 << 10, 2 << 20], 4 << 20));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_remedy() {
        for (keys, words) in [
            (
                "file_size = '3m'",
                "--file-size: 3m is not a multiple of the largest folio, 2m; give 2m or 4m",
            ),
            ("file_size = '1m'", "--file-size: 1m is out of range; give 2m to 1t"),
            ("file_size = '2t'", "--file-size: 2t is out of range"),
            ("folio_sizes = '12k'", "--folio-sizes: 12k is no power of two"),
            ("folio_sizes = '2k'", "--folio-sizes: 2k is out of range; give 4k to 2m"),
            ("folio_sizes = '16k,4m'", "--folio-sizes: 4m is out of range; give 4k to 2m"),
            ("folio_sizes = '99999p'", "--folio-sizes: 99999p is out of range; give 4k to 2m"),
            ("folio_sizes = '16k,16384'", "--folio-sizes: 16k is there twice; give it once"),
            ("folio_sizes = ''", "--folio-sizes: '' is no size"),
            ("folio_sizes = '16k,'", "--folio-sizes: '' is no size"),
            ("folio_sizes = 'large'", "--folio-sizes: 'large' is no size"),
            ("runs = 0", "--runs: 0 is out of range; give 1 to 1000"),
            ("seed = 0", "--seed: 0 is out of range"),
            ("on = 'host'", "--on: unknown engine 'host'; known: model, kernel"),
            ("with = 'p1'", "--with does not go with --workload folio-ops; leave it out: all"),
            ("image = 'bzImage'", "--image does not go with --workload folio-ops; leave it out"),
            ("threads = 2", "--threads does not go with --workload folio-ops; leave it out"),
            ("kernel = 'host'", "--kernel does not go with --workload folio-ops; leave it out"),
            ("accesses = 2", "--accesses does not go with --workload folio-ops; leave it out"),
            ("sparse = true", "--sparse does not go with --workload folio-ops; leave it out"),
            ("memory_max = '1g'", "--memory-max does not go with --workload folio-ops; leave"),
            ("[[phase]]\nworkload = 'first'", "does not go with [[phase]]; give it without"),
        ] {
            let error = valid(keys).unwrap_err();
            assert!(error.contains(words) && !error.contains('\n'), "{keys}: {error}");
        }
    }

    #[test]
    fn other_jobs_do_not_take_its_flags() {
        let of = |text: &str| JobSpec::from_toml(text).unwrap();
        let sizes = "folio_sizes = '16k'\nfile_size = '1m'\nworkload";
        let errors = [
            of(&format!("{sizes} = 'first'")).validate(None).unwrap_err(),
            of(&format!("{sizes} = 'thrash'")).validate_thrash(None).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error, Error::OfFolioOps { flag: "folio-sizes" });
        }
        assert_eq!(of("workload = 'folio-ops'").validate(None), Err(Error::IsFolioOps));
    }
}
