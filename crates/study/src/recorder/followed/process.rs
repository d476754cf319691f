//! The processes that are followed, each as long as it is one program.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use filemap_attach::FileId;
use filemap_attach::trace_points::Event as Seen;
use filemap_recording::assembly::Did;

use super::Followed;

/// A process, as long as it is one program.
#[derive(Default)]
pub(super) struct Process {
    pub(super) image: u32,
    pub(super) parent: u32,
    /// Its path, as far as it is known.
    pub(super) program: PathBuf,
    /// It was told that it begins.
    pub(super) is_told: bool,
    pub(super) is_in_exec: bool,
    pub(super) threads: HashSet<u32>,
    /// The numbers of its open files: one for each file, as descriptors are not told.
    pub(super) opens: HashMap<FileId, u64>,
    /// Reads of files whose path is not known yet, and all reads while it becomes another program.
    pub(super) held: Vec<Seen>,
    pub(super) forks: u64,
    pub(super) maps: Vec<Known>,
}

/// A mapping of a file, as it was told last.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) address: u64,
    pub(super) end: u64,
    pub(super) offset_bytes: u64,
    pub(super) file: FileId,
    pub(super) protection: u32,
}

impl Followed {
    pub(super) fn process(&mut self, pid: u32) -> &mut Process {
        let images = &mut self.images;
        self.processes.entry(pid).or_insert_with(|| Process {
            image: next_image(images, pid),
            threads: HashSet::from([pid]),
            ..Process::default()
        })
    }

    /// A thread was made, or a process.
    pub(super) fn begin(&mut self, seen: &Seen, parent: u32) {
        if parent == seen.pid {
            self.process(parent).threads.insert(seen.tid);
            return;
        }
        let made_by = self.process(parent);
        made_by.forks += 1;
        let (fork, is_told) = (made_by.forks, made_by.is_told);
        let (opens, program) = (made_by.opens.clone(), made_by.program.clone());
        let maps = made_by.maps.clone();
        let image = next_image(&mut self.images, seen.pid);
        let threads = HashSet::from([seen.tid]);
        let begun = program.clone();
        let process =
            Process { image, parent, program, is_told, threads, opens, maps, ..Process::default() };
        self.processes.insert(seen.pid, process);
        if is_told {
            let forks = Seen { pid: parent, tid: parent, ..seen.clone() };
            self.tell(&forks, Did::Fork { fork });
            self.tell(seen, Did::Begin { parent, fork, program: begun });
        }
    }

    pub(super) fn end(&mut self, seen: &Seen) {
        let process = self.process(seen.pid);
        process.threads.remove(&seen.tid);
        self.calls.remove(&seen.tid);
        self.reads.remove(&seen.tid);
        if self.process(seen.pid).threads.is_empty() {
            self.tell_if_begun(seen, Did::End);
            self.processes.remove(&seen.pid);
            // Threads that were there before may go on: what was advised is restored all the same.
            self.forget_changes(seen.pid);
        }
    }

    pub(super) fn forget_changes(&mut self, pid: u32) {
        if let Some(changes) = &mut self.changes {
            changes.forget(pid);
        }
    }

    /// A process is another program now. What the kernel has read for that is this program's.
    pub(super) fn exec(&mut self, seen: &Seen) {
        self.tell_if_begun(seen, Did::End);
        let before = self.processes.remove(&seen.pid).unwrap_or_default();
        let image = next_image(&mut self.images, seen.pid);
        let threads = HashSet::from([seen.pid]);
        let (parent, held) = (before.parent, before.held);
        let process = Process { image, parent, held, threads, ..Process::default() };
        self.processes.insert(seen.pid, process);
    }
}

/// A number for what the process `pid` is now: it counts its programs.
fn next_image(images: &mut HashMap<u32, u32>, pid: u32) -> u32 {
    let next = images.entry(pid).or_insert(0);
    *next += 1;
    *next - 1
}

/// The path of the program of a process; empty where it is gone.
pub(super) fn program_of(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default()
}
