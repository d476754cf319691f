//! The workload `folio-ops` on the running kernel: what operations over anonymous memory cost it
//! for each page, in folios of each size.

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
use crate::{Error, ending};

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
/// has folios of one size after the other, and restored behind each. `advance` is called after
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
        require_root("changing the sizes of folios (--apply)")?;
    }
    let _lock = apply.then(|| sizes.lock()).transpose()?;
    let environment = environment(job, &sizes);
    let mut measuring = Measuring::new(job, &sizes, apply);
    let runs = (1..=job.runs).map(|run| measuring.run(run, journal, &mut advance));
    let runs = runs.collect::<Result<Vec<_>, Error>>()?;
    measuring.into_measured(runs, environment)
}

/// A job under way.
struct Measuring<'a> {
    job: &'a FolioOps,
    sizes: &'a Sizes,
    apply: bool,
    /// Why a size is not measured, or not any more.
    left_out: BTreeMap<u64, String>,
    /// The smallest share of the folios that had their size.
    shares: BTreeMap<u64, f64>,
    /// Whether the kernel tells which pages were copied.
    tells_copies: bool,
}

impl<'a> Measuring<'a> {
    fn new(job: &'a FolioOps, sizes: &'a Sizes, apply: bool) -> Measuring<'a> {
        let mut left_out = BTreeMap::new();
        for &bytes in &job.folio_bytes {
            let Some(refusal) = sizes.refusal(bytes) else { continue };
            let why = match (refusal.can_be_set, apply) {
                (true, true) => continue,
                (true, false) => {
                    format!("{}: give --apply to change that for the run", refusal.why)
                }
                (false, _) => refusal.why,
            };
            left_out.insert(bytes, why);
        }
        Measuring { job, sizes, apply, left_out, shares: BTreeMap::new(), tells_copies: true }
    }

    /// One repeat.
    fn run(
        &mut self,
        number: u64,
        journal: &Journal,
        advance: &mut impl FnMut(),
    ) -> Result<FolioOpsRun, Error> {
        let mut cells = Vec::new();
        for &bytes in &self.job.folio_bytes {
            let selected = match self.apply && !self.left_out.contains_key(&bytes) {
                true => Some(self.sizes.select(bytes, journal)?),
                false => None,
            };
            for &operation in Operation::ALL {
                ending::check()?;
                if !self.left_out.contains_key(&bytes) {
                    cells.extend(self.cell(number, bytes, operation)?);
                }
                advance();
            }
            drop(selected);
        }
        Ok(FolioOpsRun { locked_ns: None, cells, contended: Vec::new() })
    }

    /// One sample, if the kernel gives the folios.
    fn cell(
        &mut self,
        run: u64,
        folio_bytes: u64,
        operation: Operation,
    ) -> Result<Option<FolioCell>, Error> {
        let &FolioOps { bytes, seed, .. } = self.job;
        let children = cpus::allowed();
        let probe = FolioProbe { bytes, folio_bytes, operation, seed, children };
        let FolioSample { folios, given, timing } = probe.run()?;
        let Some(timing) = timing else {
            let why = format!(
                "in repeat {run} the kernel gave {given} of {folios} such folios, because memory is \
                 fragmented or short: end other programs, or try echo 1 > \
                 /proc/sys/vm/compact_memory"
            );
            self.left_out.insert(folio_bytes, why);
            return Ok(None);
        };
        let share = self.shares.entry(folio_bytes).or_insert(1.0);
        *share = share.min(given as f64 / folios as f64);
        self.tells_copies &= timing.copied.is_some();
        Ok(Some(FolioCell {
            folio_bytes,
            operation,
            counters: KERNEL.to_string(),
            ns_per_page: timing.time_ns as f64 / timing.pages as f64,
            copied: timing.copied,
            reused: timing.reused,
        }))
    }

    fn into_measured(
        self,
        runs: Vec<FolioOpsRun>,
        mut environment: Map<String, Value>,
    ) -> Result<Measured, Error> {
        let name = |bytes: u64| format_size(bytes);
        let left_out = self.left_out.iter().map(|(&size, why)| (name(size), why));
        if runs.iter().all(|run| run.cells.is_empty()) {
            let (sizes, whys): (Vec<_>, Vec<_>) = left_out.unzip();
            let what = format!("memory in folios of {}", sizes.join(", "));
            let why = whys.first().map_or("", |why| why.as_str());
            return Err(Error::unavailable(what, why));
        }
        let mut missing: Vec<String> = left_out
            .map(|(size, why)| format!("folios of {size} are not measured: {why}"))
            .collect();
        if !self.tells_copies {
            missing.push(
                "which pages were copied is not known: run it as root, which may see frames"
                    .to_string(),
            );
        }
        let shares = self.shares.iter().map(|(&size, &share)| (name(size), share.into()));
        environment.insert("folio_share".to_string(), Value::Object(shares.collect()));
        Ok(Measured { runs, missing, environment })
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
        "children": cpus::allowed(),
        "folio_settings": Value::Object(settings.collect()),
        "thp_defrag": sizes.defrag(),
    });
    let Value::Object(own) = own else { unreachable!("an object literal") };
    environment.extend(own);
    environment
}
