//! Tracks the open files of processes and handles read events.

use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};

use filemap_attach::FileId;
use filemap_attach::tracepoints::{TraceEvent, TraceEventKind};
use filemap_kernel::residency::cached_ranges;
use filemap_recording::assembly::{Action, ObservedFile};
use rustix::fs::{major, minor};

use super::ProcessTracker;
use super::process::program_path;
use crate::recorder::file_filter::ProcessFile;

/// Maximum deferred reads per process; a read is deferred until the path of its file is known.
const MAX_DEFERRED: usize = 4096;

/// Maximum number of directories, and of entries of each, in which a closed file is looked for.
const MAX_DIRECTORIES: usize = 16;
const MAX_NEIGHBOURS: usize = 4096;

/// Maximum files that are not recorded whose reason is kept.
const MAX_EXCLUDED: usize = 4096;

/// A read(2), or a pread(2) with its offset, that a thread entered.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadCall {
    pub fd: u64,
    pub length_bytes: u64,
    pub offset_bytes: Option<u64>,
}

impl ProcessTracker {
    /// execve(2) returned without a new program: the deferred reads are this program's own.
    pub(super) fn on_exec_return(&mut self, pid: u32) {
        let process = self.process(pid);
        process.is_in_exec = false;
        for event in std::mem::take(&mut process.deferred) {
            if let TraceEventKind::Read { file, first, last } = event.kind {
                self.add_read(&event, file, first, last);
            }
        }
    }

    pub(super) fn on_read(&mut self, event: &TraceEvent, file: FileId, first: u64, last: u64) {
        let call = self.read_calls.remove(&event.tid);
        let first = call.map_or(first, |call| self.read_start(call, event, (file, first, last)));
        let previous = self.reads.insert(event.tid, (file, first, last));
        // A read(2) in several steps is reported at each step, with the same last page.
        let is_continued = call.is_none()
            && previous.is_some_and(|(same, from, to)| (same, to) == (file, last) && from < first);
        if is_continued {
            return;
        }
        if self.process(event.pid).is_in_exec {
            self.defer(event);
        } else {
            self.add_read(event, file, first, last);
        }
    }

    /// The first page of a read whose first reported page is `first`.
    ///
    /// The kernel does not report the step of a read that ends at a page which is still being read,
    /// as the pages of a window that was read ahead are. What the system call asks for does not
    /// depend on that. read(2) does not have its offset: only its last byte's page is known, and
    /// the offset is taken to be the largest that ends there, as is exact for aligned reads.
    fn read_start(&self, call: ReadCall, event: &TraceEvent, read: (FileId, u64, u64)) -> u64 {
        let (file, first, last) = read;
        let end = (last + 1).saturating_mul(self.page_bytes);
        let start = match call.offset_bytes {
            Some(offset) if (offset + call.length_bytes).div_ceil(self.page_bytes) == last + 1 => {
                offset / self.page_bytes
            }
            Some(_) => return first,
            None => end.saturating_sub(call.length_bytes) / self.page_bytes,
        };
        // A read(2) may have been of something else before this lookup, such as a socket. If the
        // file is closed by now, reading on where the thread's last read ended is evidence too.
        let continues = || {
            let last_read = self.reads.get(&event.tid);
            last_read.is_some_and(|(of, _, to)| *of == file && *to + 1 == start)
        };
        let is_of_file = || {
            let data = || fs::metadata(format!("/proc/{}/fd/{}", event.pid, call.fd));
            call.offset_bytes.is_some()
                || continues()
                || data().is_ok_and(|data| data.is_file() && data.ino() == file.inode)
        };
        if start < first && is_of_file() { start } else { first }
    }

    pub(super) fn defer(&mut self, event: &TraceEvent) {
        let deferred = &mut self.process(event.pid).deferred;
        if deferred.len() < MAX_DEFERRED {
            deferred.push(event.clone());
        } else {
            self.unresolved_reads += 1;
        }
    }

    /// Counts the deferred reads of a process that ends: their files can no longer be found.
    pub(super) fn drop_deferred_reads(&mut self, pid: u32) {
        self.unresolved_reads += std::mem::take(&mut self.process(pid).deferred).len() as u64;
    }

    pub(super) fn add_read(&mut self, event: &TraceEvent, file: FileId, first: u64, last: u64) {
        if !self.files.contains_key(&file)
            && let Some(found) =
                open_file(event.pid, file).or_else(|| self.neighbour(event.pid, file))
        {
            self.add_file(file, &found);
        }
        if !self.files.contains_key(&file) {
            // Probably the dynamic loader, which maps the file right after this read: the mmap
            // event will have the path.
            self.defer(event);
            return;
        }
        let Some(stored) = self.files.get(&file).cloned().flatten() else { return };
        let open = self.open_number(event, &stored);
        let offset = first * self.page_bytes;
        let end = (last + 1).saturating_mul(self.page_bytes).min(stored.size_bytes);
        if offset < end {
            self.add(event, Action::Read { open, offset_bytes: offset, length: end - offset });
        }
    }

    /// Decides whether a file is recorded.
    pub(super) fn add_file(&mut self, file: FileId, found: &ProcessFile) {
        let stored = self.filter.recorded_file(file, found);
        if let Err(exclusion) = &stored
            && self.excluded.len() < MAX_EXCLUDED
        {
            self.excluded.push((exclusion.clone(), found.path.clone()));
        }
        self.files.insert(file, stored.ok());
        if let Some(directory) = found.path.parent()
            && self.directories.last().is_none_or(|last| last != directory)
        {
            self.directories.retain(|known| known != directory);
            self.directories.push(directory.to_owned());
            let old = self.directories.len().saturating_sub(MAX_DIRECTORIES);
            self.directories.drain(..old);
            self.not_neighbours.clear();
        }
    }

    /// Looks for a file that is closed by now in the directories of the files before it: servers
    /// open many files of a few directories, each for a single request.
    fn neighbour(&mut self, pid: u32, file: FileId) -> Option<ProcessFile> {
        if !self.not_neighbours.insert(file) {
            return None;
        }
        let is_it = |entry: &fs::DirEntry| {
            let device = |data: fs::Metadata| (major(data.dev()), minor(data.dev()));
            entry.ino() == file.inode
                && entry.metadata().is_ok_and(|data| device(data) == (file.major, file.minor))
        };
        let path = self.directories.iter().rev().find_map(|directory| {
            let entries = fs::read_dir(directory).ok()?.take(MAX_NEIGHBOURS).flatten();
            entries.into_iter().find(is_it).map(|entry| entry.path())
        })?;
        Some(ProcessFile { link: path.clone(), path, pid })
    }

    /// Looks up what of a recorded file is cached, unless that is known, before its pages are
    /// dropped.
    pub(super) fn look_up_cached(&mut self, file: FileId, found: &ProcessFile) {
        let Some(stored) = self.files.get(&file).cloned().flatten() else { return };
        let identity = (stored.device, stored.inode);
        if !self.cached.contains_key(&identity)
            && let Ok(file) = fs::File::open(&found.link)
            && let Some(ranges) = cached_ranges(&file)
        {
            self.cached.insert(identity, ranges);
        }
    }

    /// The regular file behind descriptor `fd` of process `pid`; `None` for anything else. A file
    /// that has been neither mapped nor read yet becomes known by this: programs advise a file
    /// right after opening it.
    ///
    /// # Errors
    /// The descriptor or the process is gone.
    pub(super) fn descriptor_file(&mut self, pid: u32, fd: u64) -> io::Result<Option<FileId>> {
        let link = format!("/proc/{pid}/fd/{fd}");
        let data = fs::metadata(&link)?;
        if !data.is_file() {
            return Ok(None);
        }
        let identity = (data.dev(), data.ino());
        let is_same = |stored: &Option<ObservedFile>| {
            stored.as_ref().is_some_and(|stored| (stored.device, stored.inode) == identity)
        };
        if let Some((file, _)) = self.files.iter().find(|(_, stored)| is_same(stored)) {
            return Ok(Some(*file));
        }
        // Where stat(2) has a device of its own, as on btrfs, mappings and reads of the file come
        // under another ID: `open_number` takes both for one file.
        let file = FileId { major: major(data.dev()), minor: minor(data.dev()), inode: data.ino() };
        let found = ProcessFile { path: fs::read_link(&link)?, link: link.into(), pid };
        if !self.files.contains_key(&file) {
            self.add_file(file, &found);
        }
        Ok(Some(file))
    }

    /// Adds the deferred reads of `file`, which is known now.
    pub(super) fn add_deferred_reads(&mut self, pid: u32, file: FileId) {
        let deferred = std::mem::take(&mut self.process(pid).deferred);
        for event in deferred {
            match event.kind {
                TraceEventKind::Read { file: read, first, last } if read == file => {
                    self.add_read(&event, file, first, last);
                }
                _ => self.process(pid).deferred.push(event),
            }
        }
    }

    /// The number of a file in its process. The first file of a process adds the process to the
    /// recording.
    pub(super) fn open_number(&mut self, event: &TraceEvent, stored: &ObservedFile) -> u64 {
        let process = self.process(event.pid);
        let identity = (stored.device, stored.inode);
        if let Some(open) = process.opens.get(&identity) {
            return *open;
        }
        let (parent, is_recorded) = (process.parent, process.is_recorded);
        process.is_recorded = true;
        if !is_recorded {
            let mut program = program_path(event.pid);
            if program.as_os_str().is_empty() {
                // The process has exited. The first file that a program maps is its own.
                program.clone_from(&stored.path);
            }
            self.process(event.pid).program.clone_from(&program);
            self.add(event, Action::Start { parent, fork: 0, program });
        }
        self.opens += 1;
        let open = self.opens;
        self.process(event.pid).opens.insert(identity, open);
        self.add(event, Action::Open { number: open, file: stored.clone() });
        if let Some(ranges) = self.cached.get_mut(&identity).map(std::mem::take) {
            let (device, inode) = identity;
            self.cached.remove(&identity);
            self.add(event, Action::Cached { device, inode, ranges });
        }
        open
    }
}

/// A file that a process has open.
fn open_file(pid: u32, file: FileId) -> Option<ProcessFile> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    descriptors.flatten().find_map(|entry| {
        let data = fs::metadata(entry.path()).ok()?;
        let is_file = data.is_file() && data.ino() == file.inode;
        let path = fs::read_link(entry.path()).ok().filter(|_| is_file)?;
        Some(ProcessFile { path, link: entry.path(), pid })
    })
}
