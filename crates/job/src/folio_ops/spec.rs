//! Options of the benchmark: validation, and the command that repeats it.

use serde::{Deserialize, Serialize};

use super::{FOLIO_OPS, FolioOps, PAGE_BYTES, PMD_BYTES};
use crate::Error;
use crate::bounds::{MAX_FOLIO_OPS_BYTES, MAX_FOLIO_OPS_RUNS};
use crate::limits::{out_of_range, size, within};
use crate::seed;
use crate::size::{SizeText, format_size, parse_size, shorten};
use crate::xorshift::DEFAULT_SEED;

/// Default size of the memory in bytes.
const DEFAULT_BYTES: u64 = 256 << 20;

/// Default folio sizes: the control, then the published ones.
const DEFAULT_FOLIO_BYTES: [u64; 9] =
    [4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20];

/// Default size of the memory for `--owners`, where each process of the server may have a copy.
const DEFAULT_OWNERS_BYTES: u64 = 4 << 20;
/// Default folio sizes for `--owners`.
const DEFAULT_OWNERS_FOLIO_BYTES: [u64; 2] = [64 << 10, 2 << 20];

/// Default number of repeats: enough for a stable median on a shared machine.
const DEFAULT_RUNS: u64 = 9;

/// The options; `None`: default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FolioOpsSpec {
    /// Number of repeats. Default: 9.
    pub runs: Option<u64>,
    /// Seed for the order of random writes.
    pub seed: Option<u64>,
    /// `seed` in decimal digits, for JSON readers that round large numbers.
    pub seed_text: Option<String>,
    /// Size of the anonymous memory.
    pub size: Option<SizeText>,
    /// Folio sizes, separated by `,`.
    pub folio_sizes: Option<String>,
    /// Count owners without timing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub owners: bool,
}

impl FolioOpsSpec {
    /// Validates the options and resolves defaults.
    ///
    /// # Errors
    /// One line that names the first invalid value, with the remedy.
    pub fn validate(&self) -> Result<FolioOps, Error> {
        let seed = seed::resolve_seed(self.seed, self.seed_text.as_deref())?;
        Ok(FolioOps {
            runs: within("runs", self.runs.unwrap_or(DEFAULT_RUNS), 1, MAX_FOLIO_OPS_RUNS)?,
            seed: within("seed", seed.unwrap_or(DEFAULT_SEED), 1, u64::MAX)?,
            bytes: self.valid_bytes()?,
            folio_bytes: match &self.folio_sizes {
                Some(text) => folio_sizes(text).map_err(|error| error.with_flag("folio-sizes"))?,
                None => self.defaults().1.to_vec(),
            },
            owners: self.owners,
        })
    }

    /// Default memory size and folio sizes.
    fn defaults(&self) -> (u64, &'static [u64]) {
        if self.owners {
            (DEFAULT_OWNERS_BYTES, &DEFAULT_OWNERS_FOLIO_BYTES)
        } else {
            (DEFAULT_BYTES, &DEFAULT_FOLIO_BYTES)
        }
    }

    fn valid_bytes(&self) -> Result<u64, Error> {
        let bytes = size("size", &self.size, PMD_BYTES, MAX_FOLIO_OPS_BYTES)?;
        let bytes = bytes.unwrap_or(self.defaults().0);
        if bytes.is_multiple_of(PMD_BYTES) {
            return Ok(bytes);
        }
        let below = bytes - bytes % PMD_BYTES;
        Err(Error::Unaligned {
            value: self.size.as_ref().map_or_else(String::new, |text| shorten(&text.0)),
            unit: format!("the largest folio, {}", format_size(PMD_BYTES)),
            below: format_size(below),
            above: format_size(below + PMD_BYTES),
        }
        .with_flag("size"))
    }
}

impl FolioOps {
    /// All options, including defaults.
    pub fn to_spec(&self) -> FolioOpsSpec {
        FolioOpsSpec {
            runs: Some(self.runs),
            seed: Some(self.seed),
            seed_text: Some(self.seed.to_string()),
            size: Some(SizeText::from_bytes(self.bytes)),
            folio_sizes: Some(list_sizes(&self.folio_bytes)),
            owners: self.owners,
        }
    }

    /// The command that repeats the benchmark, without default options.
    pub fn command(&self) -> String {
        let mut command = format!("filemap {FOLIO_OPS}");
        if self.owners {
            command += " --owners";
        }
        let spec = FolioOpsSpec { owners: self.owners, ..FolioOpsSpec::default() };
        let (bytes, folio_bytes) = spec.defaults();
        let mut add = |flag: &str, value: String, is_default: bool| {
            if !is_default {
                command += &format!(" --{flag} {value}");
            }
        };
        add("runs", self.runs.to_string(), self.runs == DEFAULT_RUNS);
        add("seed", self.seed.to_string(), self.seed == DEFAULT_SEED);
        add("size", format_size(self.bytes), self.bytes == bytes);
        let sizes = list_sizes(&self.folio_bytes);
        add("folio-sizes", sizes, self.folio_bytes == folio_bytes);
        command
    }
}

fn list_sizes(sizes: &[u64]) -> String {
    sizes.iter().map(|&size| format_size(size)).collect::<Vec<_>>().join(",")
}

/// Parses and sorts a list of sizes.
fn folio_sizes(text: &str) -> Result<Vec<u64>, Error> {
    let mut sizes =
        text.split(',').map(|size| folio_size(size.trim())).collect::<Result<Vec<_>, _>>()?;
    sizes.sort_unstable();
    match sizes.windows(2).find(|two| two[0] == two[1]) {
        Some(twice) => Err(Error::Twice { value: format_size(twice[0]) }),
        None => Ok(sizes),
    }
}

/// Parses a folio size.
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

    fn spec(size: &str, folio_sizes: &str) -> FolioOpsSpec {
        let option = |text: &str| (!text.is_empty()).then(|| text.to_string());
        FolioOpsSpec {
            size: option(size).map(SizeText),
            folio_sizes: option(folio_sizes),
            ..FolioOpsSpec::default()
        }
    }

    #[test]
    fn defaults_are_as_published() {
        let job = spec("", "").validate().unwrap();
        assert_eq!((job.runs, job.bytes, job.pages()), (9, 256 << 20, 65_536));
        assert_eq!((job.folio_bytes.len(), job.folio_bytes[0]), (9, 4096));
        let job = spec("4m", "2m, 8k,16KiB").validate().unwrap();
        assert_eq!((job.folio_bytes, job.bytes), (vec![8 << 10, 16 << 10, 2 << 20], 4 << 20));
    }

    #[test]
    fn refuses_invalid_values_with_a_remedy() {
        let spec_with = |change: &dyn Fn(&mut FolioOpsSpec)| {
            let mut spec = FolioOpsSpec::default();
            change(&mut spec);
            spec
        };
        for (spec, words) in [
            (
                spec("3m", ""),
                "--size: 3m is not a multiple of the largest folio, 2m; give 2m or 4m",
            ),
            (spec("1m", ""), "--size: 1m is out of range; give 2m to 1t"),
            (spec("2t", ""), "--size: 2t is out of range"),
            (spec("", "12k"), "--folio-sizes: 12k is no power of two"),
            (spec("", "2k"), "--folio-sizes: 2k is out of range; give 4k to 2m"),
            (spec("", "16k,4m"), "--folio-sizes: 4m is out of range; give 4k to 2m"),
            (spec("", "99999p"), "--folio-sizes: 99999p is out of range; give 4k to 2m"),
            (spec("", "16k,16384"), "--folio-sizes: 16k is there twice; give it once"),
            (spec("", " "), "--folio-sizes: '' is no size"),
            (spec("", "16k,"), "--folio-sizes: '' is no size"),
            (spec("", "large"), "--folio-sizes: 'large' is no size"),
            (spec_with(&|spec| spec.runs = Some(0)), "--runs: 0 is out of range; give 1 to 1000"),
            (spec_with(&|spec| spec.seed = Some(0)), "--seed: 0 is out of range"),
        ] {
            let error = spec.validate().unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains('\n'), "{spec:?}: {error}");
        }
    }

    #[test]
    fn spec_and_command_round_trip() {
        for spec in [
            spec("", ""),
            FolioOpsSpec { runs: Some(2), ..spec("4m", "2m,16k") },
            FolioOpsSpec { owners: true, ..spec("", "") },
            FolioOpsSpec { seed: Some(7), ..spec("", "8k") },
        ] {
            let job = spec.validate().unwrap();
            assert_eq!(job.to_spec().validate().unwrap(), job, "{spec:?}");
        }
        assert_eq!(spec("", "").validate().unwrap().command(), "filemap folio-ops");
        let owners = FolioOpsSpec { owners: true, ..spec("8m", "64k,2m") };
        let expected = "filemap folio-ops --owners --size 8m";
        assert_eq!(owners.validate().unwrap().command(), expected);
        let small = FolioOpsSpec { runs: Some(2), ..spec("4m", "2m,16k") };
        let expected = "filemap folio-ops --runs 2 --size 4m --folio-sizes 16k,2m";
        assert_eq!(small.validate().unwrap().command(), expected);
    }
}
