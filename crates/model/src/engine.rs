//! The engine: a job's runs, and the record of them.

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::FileId;
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::{Counters, Engine, EngineKind, Job, Machine, Phase, Ready, Run, Work};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::census::cached;
use crate::device::Device;
use crate::drive;
use crate::extents::ExtentCache;
use crate::flushes::Flushes;
use crate::governor::{Governed, Governor};
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

/// A job of a form that the model runs.
pub trait Modelled: Work {
    /// Refuses, before any job runs, what is too large for the model.
    ///
    /// # Errors
    /// Such a job.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Runs it once on a machine with `profile`, where it flushes statistics with these `flushes`.
    ///
    /// # Errors
    /// When the memory is too small to hold what one access needs, and others of its form.
    fn run_once(&self, profile: &Profile, flushes: Flushes) -> Result<Self::Run, Error>;
}

impl<W: Modelled> Engine<W> for Model {
    type Error = Error;
    type Ready = ReadyModel<W>;

    fn prepare_all(&self, jobs: &[&W]) -> Result<Vec<ReadyModel<W>>, Error> {
        jobs.iter().try_for_each(|job| job.check())?;
        let ready = |job: &&W| ReadyModel {
            job: (*job).clone(),
            profile: self.profile,
            flushes: Vec::new(),
        };
        Ok(jobs.iter().map(ready).collect())
    }
}

/// A job of the model.
#[derive(Clone, Debug)]
pub struct ReadyModel<W> {
    job: W,
    profile: Profile,
    /// Those that each run has, where they are not predicted.
    flushes: Vec<Flushes>,
}

impl<W: Modelled> Ready for ReadyModel<W> {
    type Error = Error;
    type Run = W::Run;
    type Record = W::Record;

    fn seed(&self) -> u64 {
        self.job.seed()
    }

    fn take_turn(&mut self, seed: u64) -> Result<Vec<W::Run>, Error> {
        let job = self.job.with_seed(seed);
        if self.flushes.is_empty() {
            // Runs differ in nothing, so one stands for all of them.
            let run = job.run_once(&self.profile, Flushes::TIMED)?;
            return Ok(vec![run; job.runs() as usize]);
        }
        self.flushes.iter().map(|flushes| job.run_once(&self.profile, flushes.clone())).collect()
    }

    fn flush_as(&mut self, runs: &[Vec<u64>]) {
        self.flushes = runs.iter().map(|run| Flushes::seen(run)).collect();
    }

    fn record(self, runs: Vec<W::Run>) -> W::Record {
        let mut environment = environment(self.job.machine(), &self.profile);
        if !self.flushes.is_empty() {
            environment.insert("flushes".into(), Flushes::SEEN.into());
        }
        self.job.record(EngineKind::Model, environment, runs)
    }
}

impl Modelled for Job {
    fn run_once(&self, profile: &Profile, flushes: Flushes) -> Result<Run, Error> {
        let cache = ExtentCache::new(self.machine.cache_limit);
        let flushed = (MAX_MODEL_BYTES, flushes);
        Ok(trace_within(flushed, self, profile, Timing::Device, cache, &mut ())?.run)
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
    trace_within((MAX_MODEL_BYTES, Flushes::TIMED), job, profile, timing, cache, log)
}

/// [`trace_on`], which takes at most `most_bytes` of memory itself, with these `flushes`.
fn trace_within<C: PageCache>(
    (most_bytes, flushes): (u64, Flushes),
    job: &Job,
    profile: &Profile,
    timing: Timing,
    cache: C,
    log: &mut impl Log,
) -> Result<Traced<C>, Error> {
    if job.mapping.advice.is_huge() && !profile.huge_pages {
        return Err(Error::NoHugePages);
    }
    let mut memory = Memory::new(&job.machine, job.rules, 1, cache, flushes);
    let mut mappings = setup::mappings(job);
    let mut governed = match mappings.as_mut_slice() {
        [only] if job.is_governed() => {
            let governed = Governed::advise(only);
            Some((governed, Governor::new(profile, job.page_size(), job.machine.cache_limit)))
        }
        _ => None,
    };
    let mut row = Row::map(&mappings, memory.mappings.of_mut(FileId::FIRST));
    let mut open = setup::open(job, profile);
    let device = Device::new(setup::device(job.file.sparse, profile), job.page_size());
    let mut world = World::new(profile, timing, memory, vec![device], Journal::new(log));
    world.bound(most_bytes, job.phases.iter().map(|phase| phase.accesses));
    let mut process = Process::new(Tlb::new(profile.itlb, job.page_size()));
    let mut phases = Vec::with_capacity(job.phases.len());
    for phase in &job.phases {
        let (began_ns, tlb) = (world.now_ns(), process.tlb.counts());
        let before = world.begin_phase(open.ra.mmap_miss);
        let mut task = Task { world: &mut world, process: &mut process };
        drive::phase(job, phase, &mut row, &mut governed, &mut open, &mut task)?;
        phases.push(PhaseRun {
            elapsed_ns: world.now_ns() - began_ns,
            tally: world.tally.since(&before),
            tlb: process.tlb.counts().since(&tlb),
            mmap_miss: open.ra.mmap_miss,
        });
    }
    let cached = cached(job, &world.memory.cache.file(FileId::FIRST));
    let highest = phases.iter().map(|phase| phase.tally.mmap_miss_max).max();
    let whole = PhaseRun {
        elapsed_ns: world.now_ns(),
        tally: Tally { mmap_miss_max: highest.unwrap_or(0), ..world.tally },
        tlb: process.tlb.counts(),
        mmap_miss: open.ra.mmap_miss,
    };
    let counters = counters(job, &whole, job.phases.iter().any(Phase::is_exec));
    // The time of a run whose device waits is nobody's.
    let elapsed_ns = (timing == Timing::Device).then(|| world.now_ns());
    let mut run = Run { seed: job.seed, elapsed_ns, counters, cached, ..Run::default() };
    if let [_, _, ..] = phases.as_slice() {
        let ran = job.phases.iter().zip(&phases);
        run.phases = ran.map(|(phase, ran)| in_record(job, phase, ran, timing)).collect();
    }
    Ok(Traced { run, cache: world.memory.cache, phases })
}

fn in_record(job: &Job, phase: &Phase, ran: &PhaseRun, timing: Timing) -> filemap_job::PhaseRun {
    filemap_job::PhaseRun {
        workload: phase.name(),
        elapsed_ns: (timing == Timing::Device).then_some(ran.elapsed_ns),
        counters: counters(job, ran, phase.is_exec()),
    }
}

fn counters(job: &Job, ran: &PhaseRun, calls: bool) -> Counters {
    let tlb = calls.then_some(ran.tlb);
    // Holes are filled without the device.
    let bytes_read = if job.file.sparse { 0 } else { ran.tally.pages_read * job.page_size() };
    Counters {
        bytes_read: Some(bytes_read),
        mmap_miss: Some(ran.mmap_miss.into()),
        itlb_misses: tlb.map(|tlb| tlb.misses),
        itlb_walks: tlb.map(|tlb| tlb.walks),
        ..ran.tally.counters()
    }
}

fn environment(machine: &Machine, profile: &Profile) -> Map<String, Value> {
    let scope = "classic LRU; no NUMA, writeback, truncation or swap";
    let environment = json!({
        "filemap": env!("CARGO_PKG_VERSION"),
        "scope": scope,
        "elapsed": "predicted from the machine profile",
        "profile_from": machine.profile.as_deref().unwrap_or("default"),
        "profile": profile,
    });
    match environment {
        Value::Object(map) => map,
        _ => unreachable!("an object literal"),
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::Decision;
    use filemap_job::JobSpec;

    use super::*;

    /// The number of the last access.
    #[derive(Default)]
    struct Last(u64);

    impl Log for Last {
        fn record(&mut self, _: Decision) {}

        fn access(&mut self, number: u64) {
            self.0 = number;
        }
    }

    /// How a job of 10,000 accesses ends that may take so much memory, and its last access.
    fn ended(most_bytes: u64, more: &str) -> (Option<Error>, u64) {
        let spec = format!("workload = 'random'\nfile_size = '1p'\naccesses = 10000\n{more}");
        let job = JobSpec::from_toml(&spec).unwrap().validate(None).unwrap();
        let cache = ExtentCache::new(job.machine.cache_limit);
        let mut last = Last::default();
        let (profile, timing) = (Profile::DEFAULT, Timing::Device);
        let traced =
            trace_within((most_bytes, Flushes::TIMED), &job, &profile, timing, cache, &mut last);
        (traced.err(), last.0)
    }

    #[test]
    fn a_job_that_takes_more_memory_than_allowed_ends() {
        let (error, last) = ended(4 << 20, "");
        assert!((1000..6000).contains(&last), "{last} accesses in 4 MiB");
        // All of them take some 8 MiB, and whole GiB are told.
        assert_eq!(error, Some(Error::TooLarge { needed_gib: 1, most_gib: 0 }));
        // A limit of the cache bounds that too: what is evicted is forgotten in the end.
        assert_eq!(ended(10 << 20, "ram = '16m'"), (None, 9_999));
    }
}
