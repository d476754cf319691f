//! Sums the waits of a job's threads by cause.

use std::collections::BTreeMap;

use filemap_core::decision::TaskWait;
use filemap_job::Job;

use super::history::{INTERVALS, MAX_THREADS, ThreadWaits, WaitHistory};
use super::origin::Origin;

/// Why a thread waits, in the order of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WaitCause {
    Page(Origin),
    OtherFiles,
    Memory,
    Cpu,
    Phase,
    Lock,
}

impl WaitCause {
    fn key(self) -> &'static str {
        match self {
            WaitCause::Page(origin) => origin.key(),
            WaitCause::OtherFiles => "other-files",
            WaitCause::Memory => "memory",
            WaitCause::Cpu => "cpu",
            WaitCause::Phase => "phase",
            WaitCause::Lock => "lock",
        }
    }
}

/// Sums the waits of all threads by cause.
pub(super) struct WaitRecorder {
    intervals: usize,
    threads: usize,
    /// The current interval.
    pub(super) interval: u64,
    /// Nanoseconds per interval and per thread, by cause.
    sums: BTreeMap<WaitCause, (Vec<u64>, Vec<u64>)>,
}

impl WaitRecorder {
    pub(super) fn new(accesses: u64, threads: usize) -> Self {
        let intervals = accesses.clamp(1, INTERVALS) as usize;
        WaitRecorder { intervals, threads, interval: 0, sums: BTreeMap::new() }
    }

    /// Adds a wait of a thread. `origin` is the origin of the page that it waited for, if its file
    /// is followed.
    pub(super) fn add(&mut self, thread: usize, wait: TaskWait, origin: Option<Origin>, ns: u64) {
        let cause = match wait {
            TaskWait::Page(..) => origin.map_or(WaitCause::OtherFiles, WaitCause::Page),
            TaskWait::Room => WaitCause::Memory,
            TaskWait::Cpu => WaitCause::Cpu,
            TaskWait::Step => WaitCause::Phase,
            TaskWait::MmapRead | TaskWait::MmapWrite | TaskWait::VmaFaults => WaitCause::Lock,
        };
        let zeros = || (vec![0; self.intervals], vec![0; self.threads]);
        let (intervals, threads) = self.sums.entry(cause).or_insert_with(zeros);
        intervals[self.interval as usize] += ns;
        threads[thread] += ns;
    }

    /// The waits of the first threads, and of all threads along the run.
    pub(super) fn finish(self, job: &Job) -> (Vec<ThreadWaits>, Vec<WaitHistory>) {
        let threads = job.threads.iter().take(MAX_THREADS).enumerate();
        let threads = threads.map(|(number, thread)| ThreadWaits {
            name: thread.name.clone(),
            ns: self.sums.values().map(|(_, threads)| threads[number]).collect(),
        });
        let threads = threads.collect();
        let waits = self.sums.into_iter();
        let waits =
            waits.map(|(cause, (ns, _))| WaitHistory { cause: cause.key().to_string(), ns });
        (threads, waits.collect())
    }
}
