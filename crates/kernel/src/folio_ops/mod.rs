//! Operations over folios on the running kernel: what they cost it for each page of anonymous
//! memory, in folios of each size.

mod needs;
mod sizes;

use std::collections::BTreeMap;

use filemap_job::folio_ops::{FolioCell, FolioOps, FolioOpsRun, KERNEL, Operation, PAGE_BYTES};
use filemap_job::format_size;
use serde_json::{Map, Value, json};

use crate::engine::host_environment;
use crate::error::require_root;
use crate::journal::Journal;
use crate::probe::cpus;
use crate::probe::{FolioProbe, FolioSample};
use crate::{Error, shutdown};

use sizes::Selected;
pub(crate) use sizes::Sizes;
#[cfg(test)]
pub(crate) use sizes::tests::settings;

/// What came out of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The repeats, in order.
    pub runs: Vec<FolioOpsRun>,
    /// What could not be measured, and what can be done about it: a sentence each.
    pub missing: Vec<String>,
    /// Where and how it was measured.
    pub environment: Map<String, Value>,
}

/// How often [`measure`] says that it got on.
pub fn samples(job: &FolioOps) -> u64 {
    job.runs * (job.folio_bytes.len() * Operation::ALL.len()) as u64
}

/// Measures `job` on the running kernel: in each repeat every size and every operation once, each
/// in a process of its own. With `apply`, the settings of the machine are changed so that memory
/// has folios of one size after the other, and restored after each. `advance` is called after
/// each sample, [`samples`] times.
///
/// A size that the kernel does not give is left out, and what it returns says why.
///
/// # Errors
/// When no size can be measured, memory is too little, or with `apply` without root; see
/// [`Error`].
pub fn measure(
    job: &FolioOps,
    journal: &Journal,
    apply: bool,
    mut advance: impl FnMut(),
) -> Result<Measured, Error> {
    needs::check(job)?;
    let sizes = Sizes::here();
    if apply {
        require_root("changing the sizes of folios (--change-settings)")?;
    }
    let is_large = job.folio_bytes.iter().any(|&bytes| bytes > PAGE_BYTES);
    let _lock = is_large.then(|| sizes.lock(apply)).transpose()?;
    let environment = environment(job, &sizes);
    let mut measuring = Measuring::new(job, &sizes, apply);
    let runs = (0..job.runs).map(|_| measuring.run(journal, &mut advance));
    let runs = runs.collect::<Result<Vec<_>, Error>>()?;
    measuring.into_measured(runs, environment)
}

/// A job under way.
struct Measuring<'a> {
    job: &'a FolioOps,
    sizes: &'a Sizes,
    apply: bool,
    /// Why a size is not measured.
    left_out: BTreeMap<u64, String>,
    /// Repeats without a size, as the kernel did not give its folios.
    short: BTreeMap<u64, Short>,
    /// The smallest share of the folios that had their size.
    shares: BTreeMap<u64, f64>,
    /// Whether the kernel tells which pages were copied.
    tells_copies: bool,
}

/// Repeats in which the kernel did not give enough folios of a size.
#[derive(Clone, Copy, Debug)]
struct Short {
    repeats: u64,
    /// The smallest number that it gave, and the number that the memory takes.
    given: u64,
    folios: u64,
}

impl<'a> Measuring<'a> {
    fn new(job: &'a FolioOps, sizes: &'a Sizes, apply: bool) -> Measuring<'a> {
        let mut left_out = BTreeMap::new();
        for &bytes in &job.folio_bytes {
            let Some(refusal) = sizes.refusal(bytes) else { continue };
            let why = match (refusal.can_be_set, apply) {
                (true, true) => continue,
                (true, false) => {
                    format!("{}; give --change-settings to change that for the run", refusal.why)
                }
                (false, _) => refusal.why,
            };
            left_out.insert(bytes, why);
        }
        Measuring {
            job,
            sizes,
            apply,
            left_out,
            short: BTreeMap::new(),
            shares: BTreeMap::new(),
            tells_copies: true,
        }
    }

    /// One repeat.
    fn run(&mut self, journal: &Journal, advance: &mut impl FnMut()) -> Result<FolioOpsRun, Error> {
        let mut cells = Vec::new();
        for &bytes in &self.job.folio_bytes {
            let mut is_had = !self.left_out.contains_key(&bytes);
            let selected = self.select(bytes, journal)?;
            for &operation in Operation::ALL {
                shutdown::check()?;
                if is_had {
                    let cell = self.cell(bytes, operation)?;
                    is_had = cell.is_some();
                    cells.extend(cell);
                }
                advance();
            }
            drop(selected);
        }
        Ok(FolioOpsRun { locked_ns: None, cells, contended: Vec::new() })
    }

    /// Changes the settings for folios of `bytes`, where they are to be measured and `apply` was
    /// given. Memory that wants none larger than a page gets such with any settings.
    fn select(&self, bytes: u64, journal: &Journal) -> Result<Option<Selected>, Error> {
        let selects = self.apply && bytes > PAGE_BYTES && !self.left_out.contains_key(&bytes);
        selects.then(|| self.sizes.select(bytes, journal)).transpose()
    }

    /// One sample, if the kernel gives the folios.
    fn cell(&mut self, folio_bytes: u64, operation: Operation) -> Result<Option<FolioCell>, Error> {
        let &FolioOps { bytes, seed, .. } = self.job;
        let children = cpus::allowed_cpus();
        let probe = FolioProbe { bytes, folio_bytes, operation, seed, children };
        let FolioSample { folios, given, timing } = probe.run()?;
        let Some(timing) = timing else {
            let new = Short { repeats: 0, given, folios };
            let short = self.short.entry(folio_bytes).or_insert(new);
            *short = Short { repeats: short.repeats + 1, given: short.given.min(given), folios };
            return Ok(None);
        };
        let share = self.shares.entry(folio_bytes).or_insert(1.0);
        *share = share.min(given as f64 / folios as f64);
        self.tells_copies &= timing.copied.is_some() || !operation.writes();
        Ok(Some(FolioCell {
            folio_bytes,
            operation,
            counters: KERNEL.to_string(),
            ns_per_page: timing.time_ns as f64 / timing.pages as f64,
            copied: timing.copied,
            reused: timing.reused,
            locked_ns: None,
        }))
    }

    fn into_measured(
        self,
        runs: Vec<FolioOpsRun>,
        mut environment: Map<String, Value>,
    ) -> Result<Measured, Error> {
        let left_out = self.left_out();
        let short = self.short.iter().map(|(&size, &short)| (format_size(size), short));
        if runs.iter().all(|run| run.cells.is_empty()) {
            let short = short.map(|(size, short)| (size, short.reason()));
            let (sizes, whys): (Vec<_>, Vec<_>) = left_out.into_iter().chain(short).unzip();
            let what = format!("memory in folios of {}", sizes.join(", "));
            return Err(Error::unavailable(what, whys.join("; ")));
        }
        let sentence = |(sizes, why)| format!("folios of {sizes} are not measured: {why}");
        let mut missing: Vec<String> = left_out.into_iter().map(sentence).collect();
        missing.extend(short.map(|(size, short)| {
            let (repeats, all) = (short.repeats, runs.len());
            format!("folios of {size} were short in {repeats} of {all} repeats: {}", short.reason())
        }));
        if !self.tells_copies {
            missing.push(
                "which pages were copied is not known: run it as root, which may see frames"
                    .to_string(),
            );
        }
        let shares = self.shares.iter().map(|(&size, &share)| (format_size(size), share.into()));
        environment.insert("folio_share".to_string(), Value::Object(shares.collect()));
        Ok(Measured { runs, missing, environment })
    }

    /// Sizes that are left out, as words, and why: those together that have one reason.
    fn left_out(&self) -> Vec<(String, String)> {
        let mut reasons: Vec<(String, String)> = Vec::new();
        for (&size, why) in &self.left_out {
            match reasons.iter_mut().find(|(_, other)| other == why) {
                Some((sizes, _)) => sizes.push_str(&format!(", {}", format_size(size))),
                None => reasons.push((format_size(size), why.clone())),
            }
        }
        reasons
    }
}

impl Short {
    fn reason(self) -> String {
        let Short { given, folios, .. } = self;
        format!(
            "the kernel gave {given} of {folios} such folios, as memory is fragmented or short; \
             end other programs, or try echo 1 > /proc/sys/vm/compact_memory"
        )
    }
}

/// Where and how `job` is measured, with the settings as they are before.
fn environment(job: &FolioOps, sizes: &Sizes) -> Map<String, Value> {
    let mut environment = host_environment();
    let large = job.folio_bytes.iter().filter(|&&bytes| bytes > PAGE_BYTES);
    let settings = large.map(|&bytes| (format_size(bytes), sizes.word(bytes).into()));
    let own = json!({
        "scope": "the running kernel; each sample in a process of its own, whose anonymous memory \
                  is mapped page by page; CPU time of the thread",
        "seed": job.seed,
        "seed_text": job.seed.to_string(),
        "children": cpus::allowed_cpus(),
        "folio_settings": Value::Object(settings.collect()),
        "thp_defrag": sizes.defrag(),
    });
    let Value::Object(own) = own else { unreachable!("an object literal") };
    environment.extend(own);
    environment
}

#[cfg(test)]
mod tests {
    use std::fs;

    use filemap_job::{DEFAULT_SEED, EngineKind};

    use super::*;

    #[test]
    fn pages_need_no_change_of_settings() {
        let held = [(16 << 10, "never"), (64 << 10, "always"), (2 << 20, "inherit")];
        let sizes = settings("pages", "madvise", &held);
        let file = |kib| sizes.directory.join(format!("hugepages-{kib}kB/enabled"));
        let words = || [16, 64, 2048].map(|kib| fs::read_to_string(file(kib)).unwrap());
        let before = words();
        let journal = Journal::open_in(&sizes.directory.join("journal")).unwrap();
        for folio_bytes in [vec![PAGE_BYTES], vec![PAGE_BYTES, 16 << 10]] {
            let (engine, bytes) = (EngineKind::Kernel, 2 << 20);
            let job =
                FolioOps { engine, runs: 1, seed: DEFAULT_SEED, bytes, folio_bytes, owners: false };
            let measuring = Measuring::new(&job, &sizes, true);
            assert!(measuring.select(PAGE_BYTES, &journal).unwrap().is_none());
            assert_eq!(words(), before);
            for &bytes in &job.folio_bytes[1..] {
                let selected = measuring.select(bytes, &journal).unwrap();
                assert!(selected.is_some());
                assert_eq!(words(), ["madvise", "never", "never"]);
            }
        }
        fs::remove_dir_all(&sizes.directory).unwrap();
    }

    #[test]
    fn what_is_missing_is_said_once_for_each_reason() {
        let held = [(16 << 10, "never"), (64 << 10, "never"), (2 << 20, "always")];
        let sizes = settings("missing", "madvise", &held);
        let folio_bytes = vec![8 << 10, 16 << 10, 64 << 10, 2 << 20];
        let (engine, bytes) = (EngineKind::Kernel, 2 << 20);
        let job =
            FolioOps { engine, runs: 3, seed: DEFAULT_SEED, bytes, folio_bytes, owners: false };
        let measuring = |apply| {
            let mut measuring = Measuring::new(&job, &sizes, apply);
            measuring.short.insert(2 << 20, Short { repeats: 2, given: 1, folios: 8 });
            measuring
        };
        let cell = FolioCell {
            folio_bytes: 2 << 20,
            operation: Operation::Fork,
            counters: KERNEL.to_string(),
            ns_per_page: 1.0,
            copied: None,
            reused: None,
            locked_ns: None,
        };
        let run = FolioOpsRun { cells: vec![cell], ..FolioOpsRun::default() };
        let runs = || vec![run.clone(), FolioOpsRun::default(), FolioOpsRun::default()];
        let missing = |apply| measuring(apply).into_measured(runs(), Map::new()).unwrap().missing;
        let [no_setting, not_allowed, short] = missing(false).try_into().unwrap();
        assert!(no_setting.starts_with("folios of 8k are not measured: this kernel has no"));
        assert!(not_allowed.starts_with("folios of 16k, 64k are not measured: the settings in"));
        assert!(
            not_allowed.ends_with("give --change-settings to change that for the run"),
            "{not_allowed}"
        );
        assert!(short.starts_with("folios of 2m were short in 2 of 3 repeats: the kernel gave 1"));
        assert_eq!(missing(true).len(), 2, "the others can be set");
        let none = vec![FolioOpsRun::default()];
        let error = measuring(false).into_measured(none, Map::new()).unwrap_err();
        assert!(error.cannot_run_here());
        let text = error.to_string();
        assert!(
            text.starts_with("memory in folios of 8k, 16k, 64k, 2m is not available"),
            "{text}"
        );
        fs::remove_dir_all(&sizes.directory).unwrap();
    }
}
