//! The files that processes have open, and what they read of them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_attach::FileId;
use filemap_attach::trace_points::{Event as Seen, What};
use filemap_recording::assembly::{Did, Stored};

use super::Followed;
use super::process::program_of;

/// Reads of files whose path is not known yet: so many are kept of a process.
const MOST_HELD: usize = 4096;

impl Followed {
    /// A process has not become another program: what was read is its own.
    pub(super) fn release(&mut self, pid: u32) {
        let process = self.process(pid);
        process.is_in_exec = false;
        for seen in std::mem::take(&mut process.held) {
            if let What::Read { file, first, last } = seen.what {
                self.tell_read(&seen, file, first, last);
            }
        }
    }

    pub(super) fn read(&mut self, seen: &Seen, file: FileId, first: u64, last: u64) {
        let before = self.reads.insert(seen.tid, (file, first, last));
        // The next step of the same read.
        let goes_on =
            before.is_some_and(|(same, from, to)| (same, to) == (file, last) && from < first);
        if goes_on {
            return;
        }
        if self.process(seen.pid).is_in_exec {
            self.hold(seen);
        } else {
            self.tell_read(seen, file, first, last);
        }
    }

    pub(super) fn hold(&mut self, seen: &Seen) {
        let held = &mut self.process(seen.pid).held;
        if held.len() < MOST_HELD {
            held.push(seen.clone());
        }
    }

    pub(super) fn tell_read(&mut self, seen: &Seen, file: FileId, first: u64, last: u64) {
        if !self.files.contains_key(&file)
            && let Some(path) = open_path(seen.pid, file)
        {
            self.know(file, &path);
        }
        if !self.files.contains_key(&file) {
            // The loader maps what it has begun to read.
            self.hold(seen);
            return;
        }
        let Some(stored) = self.files.get(&file).cloned().flatten() else { return };
        let open = self.open(seen, file, &stored);
        let offset = first * self.page_bytes;
        let end = (last + 1).saturating_mul(self.page_bytes).min(stored.size_bytes);
        if offset < end {
            self.tell(seen, Did::Read { open, offset_bytes: offset, length: end - offset });
        }
    }

    /// Looks at a file whose path is known now.
    pub(super) fn know(&mut self, file: FileId, path: &Path) {
        let stored = self.wanted.look(file, path);
        self.files.insert(file, stored);
    }

    /// The number of a file of a process, which begins with it if it has not begun.
    pub(super) fn open(&mut self, seen: &Seen, file: FileId, stored: &Stored) -> u64 {
        let process = self.process(seen.pid);
        if let Some(open) = process.opens.get(&file) {
            return *open;
        }
        let (parent, is_told) = (process.parent, process.is_told);
        process.is_told = true;
        if !is_told {
            // It maps itself before all others.
            let mut program = program_of(seen.pid);
            if program.as_os_str().is_empty() {
                program.clone_from(&stored.path);
            }
            self.process(seen.pid).program.clone_from(&program);
            self.tell(seen, Did::Begin { parent, fork: 0, program });
        }
        self.opens += 1;
        let open = self.opens;
        self.process(seen.pid).opens.insert(file, open);
        self.tell(seen, Did::Open { number: open, file: stored.clone() });
        open
    }
}

/// The path of a file that a process has open.
fn open_path(pid: u32, file: FileId) -> Option<PathBuf> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    open.flatten().find_map(|entry| {
        let found = fs::metadata(entry.path()).ok()?;
        let is_it = found.is_file() && found.ino() == file.inode;
        if is_it { fs::read_link(entry.path()).ok() } else { None }
    })
}

/// Whether `seen` is a read of `file`.
pub(super) fn is_read_of(seen: &Seen, file: FileId) -> bool {
    matches!(seen.what, What::Read { file: read, .. } if read == file)
}
