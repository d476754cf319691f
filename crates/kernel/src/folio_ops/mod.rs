//! Measures operations over folios on the running kernel: their cost per page of anonymous memory,
//! for each folio size.

mod memory;
mod thp_settings;

use std::collections::BTreeMap;

use filemap_job::folio_ops::{
    FolioOps, FolioOpsRun, FolioOpsSample, KERNEL, Operation, PAGE_BYTES,
};
use filemap_job::format_size;
use serde_json::{Map, Value, json};

use crate::engine::host_environment;
use crate::error::require_root;
use crate::journal::Journal;
use crate::probe::cpus;
use crate::probe::{FolioProbe, FolioSample};
use crate::{Error, shutdown};

use thp_settings::SelectedSize;
pub(crate) use thp_settings::ThpSettings;
#[cfg(test)]
pub(crate) use thp_settings::tests::settings;

/// The result of [`measure`].
#[derive(Clone, Debug, PartialEq)]
pub struct FolioOpsResult {
    /// The repeats, in order.
    pub runs: Vec<FolioOpsRun>,
    /// What could not be measured, with the remedy; one sentence each.
    pub warnings: Vec<String>,
    /// Environment of the measurement.
    pub environment: Map<String, Value>,
}

/// Number of samples of [`measure`].
pub fn sample_count(job: &FolioOps) -> u64 {
    job.runs * (job.folio_bytes.len() * Operation::ALL.len()) as u64
}

/// Measures `job` on the running kernel: every size and operation once in each repeat, each in a
/// process of its own. With `apply`, the machine's settings are changed to allow one size after the
/// other, and restored after each. `advance` is called after each of [`sample_count`] samples.
///
/// Sizes that the kernel does not provide are left out with a warning.
///
/// # Errors
/// When no size can be measured, there is not enough memory, or with `apply`, this process is not
/// root.
pub fn measure(
    job: &FolioOps,
    journal: &Journal,
    apply: bool,
    mut advance: impl FnMut(),
) -> Result<FolioOpsResult, Error> {
    memory::check(job)?;
    let sizes = ThpSettings::here();
    if apply {
        require_root("changing the sizes of folios (--change-settings)")?;
    }
    let is_large = job.folio_bytes.iter().any(|&bytes| bytes > PAGE_BYTES);
    let _lock = is_large.then(|| sizes.lock(apply)).transpose()?;
    let environment = environment(job, &sizes);
    let mut measuring = Measuring::new(job, &sizes, apply);
    let runs = (0..job.runs).map(|_| measuring.run(journal, &mut advance));
    let runs = runs.collect::<Result<Vec<_>, Error>>()?;
    measuring.into_result(runs, environment)
}

/// A measurement in progress.
struct Measuring<'a> {
    job: &'a FolioOps,
    sizes: &'a ThpSettings,
    apply: bool,
    /// Sizes that are not measured, with the reason.
    left_out: BTreeMap<u64, String>,
    /// Folio sizes that the kernel did not provide often enough in some repeats.
    short: BTreeMap<u64, Shortage>,
    /// Minimum share of folios that had their size.
    shares: BTreeMap<u64, f64>,
    /// Whether the number of copied pages is known.
    knows_copies: bool,
}

/// Repeats in which the kernel did not provide enough folios of a size.
#[derive(Clone, Copy, Debug)]
struct Shortage {
    repeats: u64,
    /// Minimum number of folios that it provided.
    given: u64,
    /// Number of folios that make up the memory.
    folios: u64,
}

impl<'a> Measuring<'a> {
    fn new(job: &'a FolioOps, sizes: &'a ThpSettings, apply: bool) -> Measuring<'a> {
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
            knows_copies: true,
        }
    }

    /// Runs one repeat.
    fn run(&mut self, journal: &Journal, advance: &mut impl FnMut()) -> Result<FolioOpsRun, Error> {
        let mut cells = Vec::new();
        for &bytes in &self.job.folio_bytes {
            let mut is_available = !self.left_out.contains_key(&bytes);
            let selected = self.select(bytes, journal)?;
            for &operation in Operation::ALL {
                shutdown::check()?;
                if is_available {
                    let cell = self.cell(bytes, operation)?;
                    is_available = cell.is_some();
                    cells.extend(cell);
                }
                advance();
            }
            drop(selected);
        }
        Ok(FolioOpsRun { locked_ns: None, cells, contended: Vec::new() })
    }

    /// With `apply`, selects folios of `bytes`, unless they are left out. Single pages need no
    /// setting.
    fn select(&self, bytes: u64, journal: &Journal) -> Result<Option<SelectedSize>, Error> {
        let selects = self.apply && bytes > PAGE_BYTES && !self.left_out.contains_key(&bytes);
        selects.then(|| self.sizes.select(bytes, journal)).transpose()
    }

    /// Takes one sample, if the kernel provides the folios.
    fn cell(
        &mut self,
        folio_bytes: u64,
        operation: Operation,
    ) -> Result<Option<FolioOpsSample>, Error> {
        let &FolioOps { bytes, seed, .. } = self.job;
        let children = cpus::allowed_cpus();
        let probe = FolioProbe { bytes, folio_bytes, operation, seed, children };
        let FolioSample { folios, given, timing } = probe.run()?;
        let Some(timing) = timing else {
            let new = Shortage { repeats: 0, given, folios };
            let short = self.short.entry(folio_bytes).or_insert(new);
            *short = Shortage { repeats: short.repeats + 1, given: short.given.min(given), folios };
            return Ok(None);
        };
        let share = self.shares.entry(folio_bytes).or_insert(1.0);
        *share = share.min(given as f64 / folios as f64);
        self.knows_copies &= timing.copied.is_some() || !operation.writes();
        Ok(Some(FolioOpsSample {
            folio_bytes,
            operation,
            counters: KERNEL.to_string(),
            ns_per_page: timing.time_ns as f64 / timing.pages as f64,
            copied: timing.copied,
            reused: timing.reused,
            locked_ns: None,
        }))
    }

    fn into_result(
        self,
        runs: Vec<FolioOpsRun>,
        mut environment: Map<String, Value>,
    ) -> Result<FolioOpsResult, Error> {
        let left_out = self.left_out();
        let short = self.short.iter().map(|(&size, &short)| (format_size(size), short));
        if runs.iter().all(|run| run.cells.is_empty()) {
            let short = short.map(|(size, short)| (size, short.reason()));
            let (sizes, whys): (Vec<_>, Vec<_>) = left_out.into_iter().chain(short).unzip();
            let what = format!("memory in folios of {}", sizes.join(", "));
            return Err(Error::unavailable(what, whys.join("; ")));
        }
        let sentence = |(sizes, why)| format!("folios of {sizes} are not measured: {why}");
        let mut warnings: Vec<String> = left_out.into_iter().map(sentence).collect();
        warnings.extend(short.map(|(size, short)| {
            let (repeats, all) = (short.repeats, runs.len());
            format!("folios of {size} were short in {repeats} of {all} repeats: {}", short.reason())
        }));
        if !self.knows_copies {
            warnings.push(
                "which pages were copied is unknown: run it as root, which can see frames"
                    .to_string(),
            );
        }
        let shares = self.shares.iter().map(|(&size, &share)| (format_size(size), share.into()));
        environment.insert("folio_share".to_string(), Value::Object(shares.collect()));
        Ok(FolioOpsResult { runs, warnings, environment })
    }

    /// Sizes that are left out, grouped by reason: the sizes as text, and the reason.
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

impl Shortage {
    fn reason(self) -> String {
        let Shortage { given, folios, .. } = self;
        format!(
            "the kernel gave {given} of {folios} such folios, as memory is fragmented or short; \
             end other programs, or try echo 1 > /proc/sys/vm/compact_memory"
        )
    }
}

/// The environment of the record, with the settings before any change.
fn environment(job: &FolioOps, sizes: &ThpSettings) -> Map<String, Value> {
    let mut environment = host_environment();
    let large = job.folio_bytes.iter().filter(|&&bytes| bytes > PAGE_BYTES);
    let settings = large.map(|&bytes| (format_size(bytes), sizes.value(bytes).into()));
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
    fn single_pages_change_no_settings() {
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
    fn warns_once_for_each_reason() {
        let held = [(16 << 10, "never"), (64 << 10, "never"), (2 << 20, "always")];
        let sizes = settings("warnings", "madvise", &held);
        let folio_bytes = vec![8 << 10, 16 << 10, 64 << 10, 2 << 20];
        let (engine, bytes) = (EngineKind::Kernel, 2 << 20);
        let job =
            FolioOps { engine, runs: 3, seed: DEFAULT_SEED, bytes, folio_bytes, owners: false };
        let measuring = |apply| {
            let mut measuring = Measuring::new(&job, &sizes, apply);
            measuring.short.insert(2 << 20, Shortage { repeats: 2, given: 1, folios: 8 });
            measuring
        };
        let cell = FolioOpsSample {
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
        let warnings = |apply| measuring(apply).into_result(runs(), Map::new()).unwrap().warnings;
        let [no_setting, not_allowed, short] = warnings(false).try_into().unwrap();
        assert!(no_setting.starts_with("folios of 8k are not measured: this kernel has no"));
        assert!(not_allowed.starts_with("folios of 16k, 64k are not measured: the settings in"));
        assert!(
            not_allowed.ends_with("give --change-settings to change that for the run"),
            "{not_allowed}"
        );
        assert!(short.starts_with("folios of 2m were short in 2 of 3 repeats: the kernel gave 1"));
        assert_eq!(warnings(true).len(), 2, "the others can be set");
        let none = vec![FolioOpsRun::default()];
        let error = measuring(false).into_result(none, Map::new()).unwrap_err();
        assert!(error.cannot_run_here());
        let text = error.to_string();
        assert!(
            text.starts_with("memory in folios of 8k, 16k, 64k, 2m is not available"),
            "{text}"
        );
        fs::remove_dir_all(&sizes.directory).unwrap();
    }
}
