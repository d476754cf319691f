//! The engine: a job's runs, and the record of them.

use filemap_core::cache::PageCache;
use filemap_core::decision::Log;
use filemap_core::vma::Advice;
use filemap_job::{Counters, Engine, Job, Phase, Record, Run};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::census::cached;
use crate::extents::ExtentCache;
use crate::profile::Profile;
use crate::run::{self, Timing};
use crate::tally::Tally;
use crate::tlb;

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
        Ok(Record::new(job, "model", environment(job, &self.profile), runs))
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
    /// The counter of misses at its end.
    pub mmap_miss: u16,
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
    let mut state = run::Run::new(job, profile, timing, cache, log);
    let mut phases = Vec::with_capacity(job.phases.len());
    for phase in &job.phases {
        let before = whole(&state);
        state.phase(job, phase)?;
        let after = whole(&state);
        let highest = state.highest_miss();
        phases.push(PhaseRun {
            elapsed_ns: after.elapsed_ns - before.elapsed_ns,
            tally: Tally { mmap_miss_max: highest, ..after.tally.since(&before.tally) },
            tlb: after.tlb.since(&before.tlb),
            mmap_miss: after.mmap_miss,
        });
    }
    let cached = cached(job, &state.cache);
    let counters = counters(job, &whole(&state), job.phases.iter().any(Phase::is_exec));
    // The time of a run whose device waits is nobody's.
    let elapsed_ns = (timing == Timing::Device).then(|| state.elapsed_ns());
    let mut run = Run { seed: job.seed, elapsed_ns, counters, cached, ..Run::default() };
    if let [_, _, ..] = phases.as_slice() {
        let ran = job.phases.iter().zip(&phases);
        run.phases = ran.map(|(phase, ran)| in_record(job, phase, ran, timing)).collect();
    }
    Ok(Traced { run, cache: state.cache, phases })
}

/// All phases as one.
fn whole<C: PageCache, L: Log>(state: &run::Run<'_, C, L>) -> PhaseRun {
    PhaseRun {
        elapsed_ns: state.elapsed_ns(),
        tally: state.tally(),
        tlb: state.tlb(),
        mmap_miss: state.mmap_miss(),
    }
}

fn in_record(job: &Job, phase: &Phase, ran: &PhaseRun, timing: Timing) -> filemap_job::PhaseRun {
    filemap_job::PhaseRun {
        workload: phase.name(),
        elapsed_ns: (timing == Timing::Device).then_some(ran.elapsed_ns),
        counters: counters(job, ran, phase.is_exec()),
    }
}

fn counters(job: &Job, ran: &PhaseRun, calls: bool) -> Counters {
    let tally = ran.tally;
    let tlb = calls.then_some(ran.tlb);
    Counters {
        accesses: Some(tally.accesses),
        data_pages_read: Some(tally.pages_read),
        // Holes are filled without the device.
        bytes_read: Some(if job.file.sparse { 0 } else { tally.pages_read * job.page_size() }),
        major_faults: Some(tally.major_faults),
        minor_faults: Some(tally.minor_faults),
        readahead_calls: Some(tally.readahead_calls),
        read_around: Some(tally.read_around),
        async_readahead: Some(tally.async_readahead),
        evicted_pages: Some(tally.evicted_pages),
        mmap_miss: Some(ran.mmap_miss.into()),
        mmap_miss_max: Some(tally.mmap_miss_max.into()),
        retry_mmap_drop: Some(tally.lock_drops),
        retry_io_miss: Some(tally.retry_misses),
        rounds: None,
        itlb_misses: tlb.map(|tlb| tlb.misses),
        itlb_walks: tlb.map(|tlb| tlb.walks),
    }
}

fn environment(job: &Job, profile: &Profile) -> Map<String, Value> {
    let scope = "classic LRU; no NUMA, writeback, truncation or swap";
    let environment = json!({
        "filemap": env!("CARGO_PKG_VERSION"),
        "scope": scope,
        "elapsed": "predicted from the machine profile",
        "profile_from": job.machine.profile.as_deref().unwrap_or("default"),
        "profile": profile,
    });
    match environment {
        Value::Object(map) => map,
        _ => unreachable!("an object literal"),
    }
}
