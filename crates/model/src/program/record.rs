//! The record of a program: sums over the steps of its threads, and where threads spend their time.

use std::collections::BTreeMap;

use filemap_core::page_cache::PageCache;
use filemap_core::units::FileId;
use filemap_job::program::{Job, ProgramStep, Rounds};
use filemap_job::waits::{Call, Cause, Histogram, Latency, LatencyHistogram, Wait};
use filemap_job::{Counters, FileRun, MappingRun, PhaseRun, Run, ThreadRun};

use super::cursor::Cursor;
use super::cursor::StepStats;
use super::run::ProgramRun;
use crate::tally::Tally;
use crate::tally::cached;
use crate::world::Timing;

/// Builds the record of a finished program.
pub fn record_run<C: PageCache>(
    running: &mut ProgramRun<'_, '_, C>,
    threads_done: &[Cursor<'_>],
) -> Run {
    let job = running.job;
    let timed = running.world.timing == Timing::Device;
    let mut in_all = CounterSum::default();
    let mut by_file = vec![CounterSum::default(); job.files.len()];
    let mut by_mapping = vec![CounterSum::default(); job.mappings.len()];
    let mut threads = Vec::with_capacity(job.threads.len());
    let mut phases = Vec::with_capacity(job.steps().count());
    // A look at all steps of a process, which the steps of a long job cannot each take.
    let mut has_locks = BTreeMap::new();
    for (thread, done) in job.threads.iter().zip(threads_done) {
        let rounds = (thread.rounds != Rounds::Times(1)).then_some(done.rounds);
        let mut by_thread = CounterSum { rounds, ..CounterSum::default() };
        let has_locks =
            *has_locks.entry(thread.process).or_insert_with(|| job.waits_for_locks(thread.process));
        for (step, done) in thread.steps.iter().zip(&done.done) {
            let sum = CounterSum { has_locks, ..CounterSum::from_step(job, step, done) };
            by_thread.add(&sum);
            if let Some(file) = job.step_file(step) {
                by_file[file].add(&sum);
            }
            if let Some(mapping) = step.touched_mapping() {
                by_mapping[mapping].add(&sum);
            }
            phases.push(PhaseRun {
                thread: thread.name.clone(),
                does: job.describe_step(step),
                elapsed_ns: timed.then_some(done.elapsed_ns),
                counters: Counters {
                    mmap_miss: job.step_open(step).map(|_| done.mmap_miss.into()),
                    ..sum.counters()
                },
            });
        }
        in_all.add(&CounterSum { rounds: rounds.filter(|_| thread.has_accesses()), ..by_thread });
        threads.push(ThreadRun {
            name: thread.name.clone(),
            elapsed_ns: done.ended_ns.filter(|_| timed),
            counters: by_thread.counters(),
        });
    }
    let mapped = job.mapped_parts();
    let files = job.files.iter().zip(&by_file).enumerate().map(|(number, (named, sum))| {
        let file = running.world.memory.cache.file(FileId::new(number as u32));
        let parts = cached(&mapped[number], &file);
        let cached = parts.pages().expect("the model counts all");
        let Tally { pages_read, hole_pages, major_faults, .. } = sum.tally;
        FileRun {
            name: named.name.clone(),
            data_pages_read: Some(pages_read),
            hole_pages,
            major_faults: Some(major_faults),
            // Pages that are no longer cached were reclaimed or dropped on advice.
            evicted_pages: Some(running.start_pages[number] + pages_read - cached),
            cached: Some(cached),
            cached_parts: Some(parts),
        }
    });
    let files: Vec<FileRun> = files.collect();
    let mappings = job
        .mappings
        .iter()
        .zip(&by_mapping)
        .map(|(mapping, sum)| MappingRun { name: mapping.name.clone(), counters: sum.counters() });
    let spent = running.wait_times.as_ref();
    let elapsed_ns = threads.iter().filter_map(|thread| thread.elapsed_ns).max();
    Run {
        seed: job.seed,
        elapsed_ns,
        counters: in_all.counters(),
        cached: FileRun::sum_cached(&files),
        files,
        mappings: mappings.collect(),
        threads,
        phases,
        waits: spent.map_or(Vec::new(), WaitTimes::waits),
        calls: spent.map_or(Vec::new(), WaitTimes::calls),
        faults: Latency::from_histogram(&running.latencies.faults).filter(|_| timed),
        reads: Latency::from_histogram(&running.latencies.reads).filter(|_| timed),
        queries: Latency::from_histogram(&running.latencies.queries).filter(|_| timed),
        traced_ns: None,
        vmstat: None,
    }
}

/// The number of cached pages of each file when `job` begins.
pub(super) fn start_pages(job: &Job, cache: &mut impl PageCache) -> Vec<u64> {
    let mapped = job.mapped_parts();
    let files = mapped.iter().enumerate();
    let pages = files.map(|(number, mapped)| {
        if job.files[number].file.cached.is_empty() {
            return 0;
        }
        let pages = cached(mapped, &cache.file(FileId::new(number as u32))).pages();
        pages.expect("the model counts all")
    });
    pages.collect()
}

/// Sum over steps.
#[derive(Clone, Copy, Debug, Default)]
struct CounterSum {
    tally: Tally,
    /// Bytes read from the device.
    bytes_read: u64,
    /// Rounds of threads that repeat their steps.
    rounds: Option<u64>,
    /// Whether any of them can wait for locks.
    has_locks: bool,
    /// Whether the job has several threads.
    has_others: bool,
    /// Whether any of them calls code.
    calls: bool,
}

impl CounterSum {
    fn from_step(job: &Job, step: &ProgramStep, done: &StepStats) -> CounterSum {
        // Holes are zero-filled without the device.
        let pages_read = done.tally.pages_read - done.tally.hole_pages;
        let bytes_read = pages_read * job.page_size() + done.tally.direct_bytes;
        let has_others = job.threads.len() > 1;
        let calls = step.calls();
        let tally = done.tally;
        CounterSum { tally, bytes_read, has_others, calls, ..CounterSum::default() }
    }

    fn add(&mut self, other: &CounterSum) {
        self.tally = self.tally.plus(&other.tally);
        self.bytes_read += other.bytes_read;
        self.rounds = match (self.rounds, other.rounds) {
            (Some(rounds), Some(others)) => Some(rounds + others),
            (rounds, others) => rounds.or(others),
        };
        self.has_locks |= other.has_locks;
        self.has_others |= other.has_others;
        self.calls |= other.calls;
    }

    /// The counters of a record.
    fn counters(&self) -> Counters {
        Counters {
            bytes_read: Some(self.bytes_read),
            rounds: self.rounds,
            throttled: Some(self.tally.throttled).filter(|times| *times > 0),
            retry_arrival: self.has_locks.then_some(self.tally.retries),
            vma_lock_refused: self.has_locks.then_some(self.tally.refused),
            mmap_lock_shared: self.has_others.then_some(self.tally.shared),
            itlb_misses: self.calls.then_some(self.tally.tlb.misses),
            itlb_walks: self.calls.then_some(self.tally.tlb.walks),
            mmap_lock_waits: self.has_others.then_some(self.tally.waits),
            ..self.tally.counters()
        }
    }
}

/// Latencies of the accesses of a program.
#[derive(Debug, Default)]
pub(super) struct AccessLatencies {
    /// Faults.
    pub(super) faults: LatencyHistogram,
    /// `read(2)` calls.
    pub(super) reads: LatencyHistogram,
    /// What threads did between two sleeps.
    pub(super) queries: LatencyHistogram,
}

const CAUSE_COUNT: usize = Cause::ALL.len();

/// Histograms of time by cause.
#[derive(Debug)]
pub(super) struct WaitTimes {
    spans: [Histogram; CAUSE_COUNT],
    /// Durations of system calls that change mappings.
    calls: [Histogram; Call::ALL.len()],
    /// Per thread, the current wait for a lock. It is recorded when it ends, since a thread may be
    /// woken several times during one wait.
    lock_waits: Vec<Option<(Cause, u64)>>,
}

impl WaitTimes {
    /// Empty statistics.
    pub(super) fn new(threads: usize) -> WaitTimes {
        let (spans, calls) = ([Histogram::default(); CAUSE_COUNT], Default::default());
        WaitTimes { spans, calls, lock_waits: vec![None; threads] }
    }

    /// Attributes the time of `thread` from `from_ns` to `to_ns` to `cause`.
    pub(super) fn add(&mut self, thread: usize, cause: Cause, from_ns: u64, to_ns: u64) {
        if from_ns >= to_ns {
            return;
        }
        let ns = to_ns - from_ns;
        if cause.is_lock() {
            let so_far = self.lock_waits[thread].map_or(0, |(_, ns)| ns);
            self.lock_waits[thread] = Some((cause, so_far + ns));
        } else {
            self.spans[cause as usize].add(ns);
        }
    }

    /// Ends the lock wait of `thread`.
    pub(super) fn end_lock_wait(&mut self, thread: usize) {
        if let Some((cause, ns)) = self.lock_waits[thread].take() {
            self.spans[cause as usize].add(ns);
        }
    }

    /// Records a system call that took `ns`.
    pub(super) fn record_call(&mut self, call: Call, ns: u64) {
        self.calls[call as usize].add(ns);
    }

    /// Durations of system calls, by name.
    pub(super) fn calls(&self) -> Vec<Wait> {
        let calls = Call::ALL.iter().zip(&self.calls);
        calls.filter_map(|(call, spans)| Wait::from_histogram(call.name(), spans)).collect()
    }

    /// Time by cause.
    pub(super) fn waits(&self) -> Vec<Wait> {
        let spans = Cause::ALL.iter().zip(&self.spans);
        spans.filter_map(|(cause, spans)| Wait::from_histogram(cause.name(), spans)).collect()
    }
}
