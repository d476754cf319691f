//! Tracked processes. Each exec begins a new image.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use filemap_attach::FileId;
use filemap_attach::tracepoints::TraceEvent;
use filemap_recording::assembly::Action;

use super::ProcessTracker;

/// A process while it runs one program.
#[derive(Default)]
pub(super) struct TrackedProcess {
    pub(super) image: u32,
    pub(super) parent: u32,
    /// Path of the program; empty until a file of the process is recorded.
    pub(super) program: PathBuf,
    /// Its `Start` has been observed.
    pub(super) is_recorded: bool,
    pub(super) is_in_exec: bool,
    /// Its new mappings are locked in memory, by mlockall(2) with MCL_FUTURE.
    pub(super) locks_future: bool,
    pub(super) threads: HashSet<u32>,
    /// Numbers of its open files by device and inode: one per file, since the kernel does not
    /// report descriptors.
    pub(super) opens: HashMap<(u64, u64), u64>,
    /// Reads of files whose path is not known yet, and all reads during execve(2).
    pub(super) deferred: Vec<TraceEvent>,
    pub(super) forks: u64,
    pub(super) maps: Vec<TrackedMapping>,
}

/// The last reported state of a file mapping.
#[derive(Clone, Copy)]
pub(super) struct TrackedMapping {
    pub(super) address: u64,
    pub(super) end: u64,
    pub(super) offset_bytes: u64,
    pub(super) file: FileId,
    pub(super) protection: u32,
}

impl ProcessTracker {
    pub(super) fn process(&mut self, pid: u32) -> &mut TrackedProcess {
        let images = &mut self.images;
        self.processes.entry(pid).or_insert_with(|| TrackedProcess {
            image: next_image(images, pid),
            threads: HashSet::from([pid]),
            ..TrackedProcess::default()
        })
    }

    /// Handles a fork event: a new thread if `parent` is the process itself, otherwise a new
    /// process.
    pub(super) fn on_fork(&mut self, event: &TraceEvent, parent: u32) {
        if parent == event.pid {
            self.process(parent).threads.insert(event.tid);
            return;
        }
        let parent_process = self.process(parent);
        parent_process.forks += 1;
        let (fork, is_recorded) = (parent_process.forks, parent_process.is_recorded);
        let opens = parent_process.opens.clone();
        let program = parent_process.program.clone();
        let maps = parent_process.maps.clone();
        let child = TrackedProcess {
            image: next_image(&mut self.images, event.pid),
            parent,
            program: program.clone(),
            is_recorded,
            threads: HashSet::from([event.tid]),
            opens,
            maps,
            ..TrackedProcess::default()
        };
        self.processes.insert(event.pid, child);
        if is_recorded {
            let in_parent = TraceEvent { pid: parent, tid: parent, ..event.clone() };
            self.add(&in_parent, Action::Fork { fork });
            self.add(event, Action::Start { parent, fork, program });
        }
    }

    pub(super) fn on_exit(&mut self, event: &TraceEvent) {
        self.calls.remove(&event.tid);
        self.reads.remove(&event.tid);
        let process = self.process(event.pid);
        process.threads.remove(&event.tid);
        if process.threads.is_empty() {
            self.add_if_recorded(event, Action::Exit);
            self.drop_deferred_reads(event.pid);
            self.processes.remove(&event.pid);
            // Threads from before the recording may still run, so the advice is restored anyway.
            self.forget_touches(event.pid);
        }
    }

    pub(super) fn forget_touches(&mut self, pid: u32) {
        if let Some(reclaimer) = &mut self.reclaimer {
            reclaimer.forget(pid);
        }
    }

    /// The process has called execve(2). Files that the kernel read during the call belong to the
    /// new program.
    pub(super) fn on_exec(&mut self, event: &TraceEvent) {
        self.add_if_recorded(event, Action::Exit);
        let TrackedProcess { parent, deferred, .. } =
            self.processes.remove(&event.pid).unwrap_or_default();
        let image = next_image(&mut self.images, event.pid);
        let threads = HashSet::from([event.pid]);
        let process =
            TrackedProcess { image, parent, deferred, threads, ..TrackedProcess::default() };
        self.processes.insert(event.pid, process);
    }
}

/// The index of the next program that `pid` runs.
fn next_image(images: &mut HashMap<u32, u32>, pid: u32) -> u32 {
    let next = images.entry(pid).or_insert(0);
    *next += 1;
    *next - 1
}

/// Path of the program of a process; empty if it has exited.
pub(super) fn program_path(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default()
}
