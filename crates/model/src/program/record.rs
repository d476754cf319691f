//! The record of a program: sums over what its threads did.

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::FileId;
use filemap_job::program::{Job, ProgramStep, Rounds};
use filemap_job::{Counters, FileRun, MappingRun, PhaseRun, Run, ThreadRun};

use super::cursor::Cursor;
use super::done::Done;
use super::running::Running;
use super::spent::Spent;
use crate::census;
use crate::tally::Tally;
use crate::world::Timing;

/// The record of a program whose threads have done their steps.
pub fn of<C: PageCache, L: Log>(
    running: &mut Running<'_, '_, C, L>,
    threads_done: &[Cursor<'_>],
) -> Run {
    let job = running.job;
    let timed = running.world.timing == Timing::Device;
    let mut in_all = Sum::default();
    let mut by_file = vec![Sum::default(); job.files.len()];
    let mut by_mapping = vec![Sum::default(); job.mappings.len()];
    let mut threads = Vec::with_capacity(job.threads.len());
    let mut phases = Vec::with_capacity(job.steps().count());
    for (thread, done) in job.threads.iter().zip(threads_done) {
        let rounds = (thread.rounds != Rounds::Times(1)).then_some(done.rounds);
        let mut by_thread = Sum { rounds, ..Sum::default() };
        for (step, done) in thread.steps.iter().zip(&done.done) {
            let sum = Sum::of(job, step, thread.process, done);
            by_thread.add(&sum);
            if let Some(file) = job.file_of(step) {
                by_file[file].add(&sum);
            }
            if let Some(mapping) = step.touched() {
                by_mapping[mapping].add(&sum);
            }
            phases.push(PhaseRun {
                thread: thread.name.clone(),
                does: job.shown(step),
                elapsed_ns: timed.then_some(done.elapsed_ns),
                counters: Counters {
                    mmap_miss: job.open_of(step).map(|_| done.mmap_miss.into()),
                    ..sum.counters()
                },
            });
        }
        in_all.add(&Sum { rounds: rounds.filter(|_| thread.has_accesses()), ..by_thread });
        threads.push(ThreadRun {
            name: thread.name.clone(),
            elapsed_ns: done.ended_ns.filter(|_| timed),
            counters: by_thread.counters(),
        });
    }
    let mapped = job.mapped_parts();
    let files = job.files.iter().zip(&by_file).enumerate().map(|(number, (named, sum))| {
        let file = running.world.memory.cache.file(FileId::new(number as u32));
        let parts = census::cached(&mapped[number], &file);
        let cached = parts.pages().expect("the model counts all");
        let Tally { pages_read, major_faults, .. } = sum.tally;
        FileRun {
            name: named.name.clone(),
            data_pages_read: Some(pages_read),
            major_faults: Some(major_faults),
            // What was read and is not there was reclaimed, or dropped on advice.
            evicted_pages: Some(pages_read - cached),
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
    let spent = running.spent.as_ref();
    let elapsed_ns = threads.iter().filter_map(|thread| thread.elapsed_ns).max();
    Run {
        seed: job.seed,
        elapsed_ns,
        counters: in_all.counters(),
        cached: FileRun::cached_of(&files),
        files,
        mappings: mappings.collect(),
        threads,
        phases,
        waits: spent.map_or(Vec::new(), Spent::waits),
        calls: spent.map_or(Vec::new(), Spent::calls),
        traced_ns: None,
        vmstat: None,
    }
}

/// What steps counted together.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    tally: Tally,
    /// What the device read for them.
    bytes_read: u64,
    /// Rounds of threads that repeat their steps.
    rounds: Option<u64>,
    /// Some could wait for locks.
    has_locks: bool,
    /// It has several threads.
    has_others: bool,
    /// Some call code.
    calls: bool,
}

impl Sum {
    fn of(job: &Job, step: &ProgramStep, process: usize, done: &Done) -> Sum {
        // Holes are filled without the device.
        let is_read = job.file_of(step).is_some_and(|file| !job.files[file].file.sparse);
        let read = done.tally.pages_read * job.page_size() + done.tally.direct_bytes;
        let bytes_read = if is_read { read } else { 0 };
        let has_locks = job.waits_for_locks(process);
        let has_others = job.threads.len() > 1;
        let calls = step.calls();
        Sum { tally: done.tally, bytes_read, rounds: None, has_locks, has_others, calls }
    }

    fn add(&mut self, other: &Sum) {
        self.tally = self.tally.with(&other.tally);
        self.bytes_read += other.bytes_read;
        self.rounds = match (self.rounds, other.rounds) {
            (Some(rounds), Some(others)) => Some(rounds + others),
            (rounds, others) => rounds.or(others),
        };
        self.has_locks |= other.has_locks;
        self.has_others |= other.has_others;
        self.calls |= other.calls;
    }

    /// As the counters of a record.
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
