//! What it costs to fill holes, and to evict pages of a memory cgroup.

use filemap_job::program::Job;
use filemap_job::{EngineKind, JobSpec, Run, SizeText};
use filemap_kernel::engine::{Kernel, Prepared};
use filemap_model::profile;
use filemap_study::calibrate::Cost;

use super::{cost, median};
use crate::error::Error;
use filemap_study::host;
use filemap_study::input;

/// The file, all of which is a hole, and the limit that it is read under.
const FILE_BYTES: u64 = 256 << 20;
const LIMIT_BYTES: u64 = 64 << 20;

/// A file that is read from its beginning to its end, with memory for all of it and for a part.
pub(super) struct Reclaim {
    free: Prepared,
    /// Nobody may limit the memory of a process here, or why.
    limited: Result<Prepared, String>,
    samples: Vec<Sample>,
}

/// Nanoseconds for each page, and faults for each.
#[derive(Clone, Copy, Debug)]
struct Sample {
    free: f64,
    faults: f64,
    limited: Option<f64>,
}

impl Reclaim {
    pub(super) fn prepare(kernel: &Kernel) -> Result<Reclaim, Error> {
        let free = kernel.prepare(&job(None)?)?;
        let limited = match kernel.prepare(&job(Some(LIMIT_BYTES))?) {
            Ok(limited) => Ok(limited),
            Err(error) if error.cannot_run_here() => Err(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        Ok(Reclaim { free, limited, samples: Vec::new() })
    }

    /// Reads it once more in both ways.
    pub(super) fn run(&mut self) -> Result<(), Error> {
        let free = self.free.run()?;
        let limited = self.limited.as_mut().ok().map(Prepared::run).transpose()?;
        let faults =
            free.counters.minor_faults.unwrap_or(0) + free.counters.major_faults.unwrap_or(0);
        self.samples.push(Sample {
            free: page_ns(&free),
            faults: faults as f64 / pages(),
            limited: limited.as_ref().map(page_ns),
        });
        Ok(())
    }

    /// `cost` with what the medians say beside it.
    pub(super) fn cost(&self, cost: profile::Cost) -> profile::Cost {
        let known_ns = cost.touch_ns + cost.map_page_ns + cost.add_page_ns + cost.add_folio_ns;
        let free = median(&self.samples, |s| s.free);
        let faults_ns = median(&self.samples, |s| s.faults) * cost.fault_ns as f64;
        let zero = (free - known_ns as f64 - faults_ns).max(0.0);
        let evict = self.limited.as_ref().map_or(0.0, |_| median(&self.samples, evict_ns));
        let whole = |ns: f64| ns.round() as u64;
        profile::Cost { zero_page_ns: whole(zero), evict_page_ns: whole(evict), ..cost }
    }

    /// What the report shows of them.
    pub(super) fn costs(&self) -> Vec<Cost> {
        let mut costs = vec![cost(&self.samples, "page of a hole, read in order", |s| s.free)];
        if self.limited.is_ok() {
            costs.push(cost(&self.samples, "of it more where a page is evicted for it", evict_ns));
        }
        costs
    }

    /// What could not be measured.
    pub(super) fn warning(&self) -> Option<String> {
        let reason = self.limited.as_ref().err()?;
        Some(format!("what it costs to evict a page was not measured, so it is 0: {reason}"))
    }
}

/// What a page costs more where another one is evicted for it: for none of the first, which fit.
fn evict_ns(sample: &Sample) -> f64 {
    let evicting = (FILE_BYTES - LIMIT_BYTES) as f64 / FILE_BYTES as f64;
    sample.limited.map_or(0.0, |limited| (limited - sample.free).max(0.0) / evicting)
}

fn job(limit_bytes: Option<u64>) -> Result<Job, Error> {
    let mut spec = JobSpec {
        on: Some(EngineKind::Kernel.to_string()),
        workload: Some("sequential".to_string()),
        file_size: Some(SizeText::of(FILE_BYTES)),
        fraction: Some(1.0),
        sparse: Some(true),
        memory_max: limit_bytes.map(SizeText::of),
        ..JobSpec::default()
    };
    host::resolve(&mut spec)?;
    Ok(spec.validate(input::host_release().as_deref())?)
}

fn page_ns(run: &Run) -> f64 {
    run.phases[0].elapsed_ns.unwrap_or(0) as f64 / pages()
}

fn pages() -> f64 {
    (FILE_BYTES / filemap_kernel::page_size()) as f64
}
