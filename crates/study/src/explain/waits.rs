//! What the threads of a job wait for while it runs.

use std::collections::BTreeMap;

use filemap_core::decision::Wait;
use filemap_job::Job;
use filemap_job::program::ProgramStep;

use super::courses::{MOST_THREADS, ThreadWaits, WaitHistory};
use super::history::INTERVALS;
use super::origin::Origin;

/// What is waited for, in the order of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WaitedFor {
    Page(Origin),
    OtherFiles,
    Memory,
    Cpu,
    Phase,
    Lock,
}

impl WaitedFor {
    fn key(self) -> &'static str {
        match self {
            WaitedFor::Page(origin) => origin.key(),
            WaitedFor::OtherFiles => "other-files",
            WaitedFor::Memory => "memory",
            WaitedFor::Cpu => "cpu",
            WaitedFor::Phase => "phase",
            WaitedFor::Lock => "lock",
        }
    }
}

/// The waits of all threads.
pub(super) struct Waits {
    intervals: usize,
    threads: usize,
    /// The interval at hand.
    pub(super) interval: u64,
    /// By what is waited for: of each interval, and of each thread, in nanoseconds.
    of: BTreeMap<WaitedFor, (Vec<u64>, Vec<u64>)>,
}

impl Waits {
    pub(super) fn new(job: &Job) -> Self {
        let accesses = job.steps().map(ProgramStep::accesses).fold(0, u64::saturating_add);
        let intervals = accesses.clamp(1, INTERVALS) as usize;
        Waits { intervals, threads: job.threads.len(), interval: 0, of: BTreeMap::new() }
    }

    /// A thread waited. A page that it waited for was brought in `by`, where that is known.
    pub(super) fn add(&mut self, thread: usize, wait: Wait, by: Option<Origin>, ns: u64) {
        let waited_for = match wait {
            Wait::Page(..) => by.map_or(WaitedFor::OtherFiles, WaitedFor::Page),
            Wait::Room => WaitedFor::Memory,
            Wait::Cpu => WaitedFor::Cpu,
            Wait::Step => WaitedFor::Phase,
            Wait::MmapRead | Wait::MmapWrite | Wait::VmaFaults => WaitedFor::Lock,
        };
        let none = || (vec![0; self.intervals], vec![0; self.threads]);
        let (intervals, threads) = self.of.entry(waited_for).or_insert_with(none);
        intervals[self.interval as usize] += ns;
        threads[thread] += ns;
    }

    /// What the first threads waited for, and what all of them did.
    pub(super) fn finish(self, job: &Job) -> (Vec<ThreadWaits>, Vec<WaitHistory>) {
        let threads = job.threads.iter().take(MOST_THREADS).enumerate();
        let threads = threads.map(|(number, thread)| ThreadWaits {
            name: thread.name.clone(),
            ns: self.of.values().map(|(_, threads)| threads[number]).collect(),
        });
        let threads = threads.collect();
        let waits = self
            .of
            .into_iter()
            .map(|(waited_for, (ns, _))| WaitHistory { cause: waited_for.key().to_string(), ns });
        (threads, waits.collect())
    }
}
