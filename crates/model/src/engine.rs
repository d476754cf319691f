//! The engine: a job's runs, and the record of them.

use filemap_core::address::vma::Advice;
use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::FileId;
use filemap_job::{Counters, Engine, Job, Phase, Record, Run};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::census::cached;
use crate::device::Device;
use crate::drive;
use crate::extents::ExtentCache;
use crate::journal::Journal;
use crate::memory::Memory;
use crate::process::{Process, Row};
use crate::profile::Profile;
use crate::setup;
use crate::tally::Tally;
use crate::task::Task;
use crate::tlb::{self, Tlb};
use crate::world::{Timing, World};

/// The model as an engine.
#[derive(Clone, Debug)]
pub struct Model {
    /// The machine whose times are predicted.
    pub profile: Profile,
}

impl Engine for Model {
    type Error = Error;

    fn run(&mut self, job: &Job) -> Result<Record, Error> {
        let run = trace(job, &self.profile, &mut ())?.run;
        // Runs differ in nothing, so one stands for all of them.
        let runs = vec![run; job.runs as usize];
        Ok(Record::new(job, "model", environment(&self.profile), runs))
    }
}

/// One run with the cache as it was left.
#[derive(Clone, Debug)]
pub struct Traced<C> {
    /// Counters and times.
    pub run: Run,
    /// The page cache at the end.
    pub cache: C,
    /// What each phase did, in order.
    pub phases: Vec<PhaseRun>,
}

/// One phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseRun {
    /// Predicted time.
    pub elapsed_ns: u64,
    /// What it counted.
    pub tally: Tally,
    /// What the instruction TLB counted.
    pub tlb: tlb::Counts,
}

/// Runs `job` once on a cache of the kind that engines use, sending its decisions to `log`.
///
/// # Errors
/// When the memory is too small to hold what one access needs.
pub fn trace(
    job: &Job,
    profile: &Profile,
    log: &mut impl Log,
) -> Result<Traced<ExtentCache>, Error> {
    trace_on(job, profile, Timing::Device, ExtentCache::new(job.machine.cache_limit), log)
}

/// [`trace`] with [`Timing::Settled`].
///
/// # Errors
/// As for [`trace`].
pub fn trace_settled(job: &Job, profile: &Profile, log: &mut impl Log) -> Result<Run, Error> {
    let cache = ExtentCache::new(job.machine.cache_limit);
    Ok(trace_on(job, profile, Timing::Settled, cache, log)?.run)
}

/// [`trace`] with this timing on a given empty cache.
///
/// # Errors
/// As for [`trace`].
pub fn trace_on<C: PageCache>(
    job: &Job,
    profile: &Profile,
    timing: Timing,
    cache: C,
    log: &mut impl Log,
) -> Result<Traced<C>, Error> {
    if job.mapping.advice == Advice::HugePage && !profile.huge_pages {
        return Err(Error::NoHugePages);
    }
    let mut memory = Memory::new(&job.machine, 1, cache);
    let row = Row::map(&setup::mappings(job), memory.mappings.of_mut(FileId::FIRST));
    let mut open = setup::open(job, profile);
    let device = Device::new(setup::device(job.file.sparse, profile), job.page_size());
    let mut world = World::new(profile, timing, memory, vec![device], Journal::new(log));
    let mut process = Process::new(Tlb::new(profile.itlb, job.page_size()));
    let mut phases = Vec::with_capacity(job.phases.len());
    for phase in &job.phases {
        let (began_ns, before, tlb) = (world.now_ns(), world.tally, process.tlb.counts());
        let mut task = Task { world: &mut world, process: &mut process };
        drive::phase(job, phase, &row, &mut open, &mut task)?;
        phases.push(PhaseRun {
            elapsed_ns: world.now_ns() - began_ns,
            tally: world.tally.since(&before),
            tlb: process.tlb.counts().since(&tlb),
        });
    }
    let cached = cached(job, &world.memory.cache.file(FileId::FIRST));
    let tlb = job.phases.iter().any(Phase::is_exec).then_some(process.tlb.counts());
    // Holes are filled without the device.
    let bytes_read = if job.file.sparse { 0 } else { world.tally.pages_read * job.page_size() };
    let counters = Counters {
        bytes_read: Some(bytes_read),
        mmap_miss: Some(open.ra.mmap_miss.into()),
        itlb_misses: tlb.map(|tlb| tlb.misses),
        itlb_walks: tlb.map(|tlb| tlb.walks),
        ..world.tally.counters()
    };
    // The time of a run whose device waits is nobody's.
    let elapsed_ns = (timing == Timing::Device).then(|| world.now_ns());
    let run = Run { seed: job.seed, elapsed_ns, counters, cached, vmstat: None };
    Ok(Traced { run, cache: world.memory.cache, phases })
}

pub(crate) fn environment(profile: &Profile) -> Map<String, Value> {
    let scope = "classic LRU; no NUMA, writeback, truncation or swap";
    let environment = json!({
        "filemap": env!("CARGO_PKG_VERSION"),
        "scope": scope,
        "elapsed": "predicted from the machine profile",
        "profile": profile,
    });
    match environment {
        Value::Object(map) => map,
        _ => unreachable!("an object literal"),
    }
}
