//! What the kernel tells of processes, as it goes into a recording.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_attach::trace_points::{Event as Seen, What};
use filemap_attach::{FileId, MappedFile, MappedRange};

use super::changes::Changes;
use super::single_pages::SinglePages;
use super::source::Source;
use super::told::{Did, Stored, Told};
use super::wanted::WantedFiles;
use crate::error::Error;

/// Reads of files whose path is not known yet: so many are kept of a process.
const MOST_HELD: usize = 4096;

/// The processes that are followed.
pub struct Followed {
    source: Source,
    single: SinglePages,
    /// Where each change of page is recorded.
    changes: Option<Changes>,
    page_bytes: u64,
    wanted: WantedFiles,
    /// The files that were looked at; nothing for those that are not recorded.
    files: HashMap<FileId, Option<Stored>>,
    processes: HashMap<u32, Process>,
    /// How many programs each number of a process has stood for.
    images: HashMap<u32, u32>,
    opens: u64,
    /// What each thread is about to do, until it has done it.
    calls: HashMap<u32, What>,
    /// The last read of each thread.
    reads: HashMap<u32, (FileId, u64, u64)>,
    told: Vec<Told>,
    /// Advice that was given from here: the process and the time.
    own_advice: Vec<(u32, u64)>,
    /// The files that were advised by a descriptor: the thread and the time.
    descriptors: HashMap<(u32, u64), FileId>,
    /// The sizes of files that had another one when mapped again: the thread and the time.
    sizes: HashMap<(u32, u64), u64>,
    lost: u64,
}

/// A process, as long as it is one program.
#[derive(Default)]
struct Process {
    image: u32,
    parent: u32,
    /// Its path, as far as it is known.
    program: PathBuf,
    /// It was told that it begins.
    is_told: bool,
    is_in_exec: bool,
    threads: HashSet<u32>,
    /// The numbers of its open files: one for each file, as descriptors are not told.
    opens: HashMap<FileId, u64>,
    /// Reads of files whose path is not known yet, and all reads while it becomes another program.
    held: Vec<Seen>,
    forks: u64,
    maps: Vec<Known>,
}

/// A mapping of a file, as it was told last.
#[derive(Clone, Copy)]
struct Known {
    address: u64,
    end: u64,
    offset_bytes: u64,
    file: FileId,
    protection: u32,
}

impl Followed {
    pub fn new(
        source: Source,
        single: SinglePages,
        page_bytes: u64,
        wanted: WantedFiles,
    ) -> Followed {
        Followed {
            source,
            single,
            changes: None,
            page_bytes,
            wanted,
            files: HashMap::new(),
            processes: HashMap::new(),
            images: HashMap::new(),
            opens: 0,
            calls: HashMap::new(),
            reads: HashMap::new(),
            told: Vec::new(),
            own_advice: Vec::new(),
            descriptors: HashMap::new(),
            sizes: HashMap::new(),
            lost: 0,
        }
    }

    /// Has each change of page told, not first touches only.
    pub fn tell_changes(&mut self) {
        self.source.keep_faults();
        self.changes = Some(Changes::default());
    }

    /// What was told since this was asked last, in order of time. Nothing is told any more where it
    /// `is_over`.
    pub fn told(&mut self, is_over: bool) -> Result<Vec<Told>, Error> {
        if !is_over {
            self.source.wait()?;
        }
        self.source.pull()?;
        self.act_on_all(is_over)?;
        self.take_pages();
        let files = &self.files;
        let path_of = |file: &FileId| files.get(file)?.as_ref().map(|stored| stored.path.clone());
        self.single.try_again(&mut self.source, path_of);
        // What that did itself has come meanwhile, and is to be known as ours.
        self.act_on_all(is_over)?;
        for seen in self.source.take(is_over) {
            self.take(seen);
        }
        Ok(std::mem::take(&mut self.told))
    }

    /// Acts on what has come, and on what comes meanwhile: to act takes long.
    fn act_on_all(&mut self, is_over: bool) -> Result<(), Error> {
        loop {
            let mut fresh = self.source.fresh();
            if fresh.is_empty() {
                return Ok(());
            }
            // What is read ahead there is most.
            fresh.sort_by_key(|seen| match &seen.what {
                What::Map(range) => Reverse(range.length_bytes),
                _ => Reverse(u64::MAX),
            });
            fresh.iter().for_each(|seen| self.act(seen, is_over));
            self.source.pull()?;
        }
    }

    /// Has pages that were touched go again, where each change of page is recorded.
    fn take_pages(&mut self) {
        let Some(changes) = &mut self.changes else { return };
        for (pid, tid, address) in self.source.faulted() {
            if self.single.may_be_taken(pid, address) {
                changes.touched(pid, tid, address);
            }
        }
        changes.take();
    }

    /// Has the pages of a mapping that was just made come one at a time.
    fn act(&mut self, seen: &Seen, is_over: bool) {
        match &seen.what {
            What::Map(map) if !is_over => {
                self.single.replaced(seen.pid, map);
                let Some(MappedFile { id: file, path }) = &map.file else { return };
                if !self.files.contains_key(file) {
                    self.know(*file, path);
                }
                if let Some(stored) = self.files.get(file).cloned().flatten() {
                    let size = stored.size_now().filter(|size| *size != stored.size_bytes);
                    self.sizes.extend(size.map(|size| ((seen.tid, seen.at_ns), size)));
                    self.single.mapped(&mut self.source, seen, map, &stored.path);
                }
            }
            What::Exec => {
                self.single.forget(seen.pid);
                self.forget_changes(seen.pid);
            }
            What::Begin { parent } if *parent != seen.pid => {
                self.single.forked(*parent, seen.pid);
            }
            What::Advise { address, length_bytes, advice } => {
                if self.single.is_own(seen, *address, *advice) {
                    self.own_advice.push((seen.pid, seen.at_ns));
                } else if !is_over {
                    self.single.program_advised(seen, (*address, *length_bytes), *advice);
                }
            }
            What::AdviseFile { fd, .. } | What::ReadAhead { fd, .. } => {
                let path = format!("/proc/{}/fd/{fd}", seen.pid);
                let of = fs::metadata(path).ok().filter(fs::Metadata::is_file);
                let file = of.and_then(|of| {
                    let is_it = |(_, stored): &(&FileId, &Option<Stored>)| {
                        let place = stored.as_ref().map(|stored| (stored.device, stored.inode));
                        place == Some((of.dev(), of.ino()))
                    };
                    self.files.iter().find(is_it).map(|(file, _)| *file)
                });
                self.descriptors.extend(file.map(|file| ((seen.tid, seen.at_ns), file)));
            }
            _ => {}
        }
    }

    /// The open file that the program advised by a descriptor, if it is recorded.
    fn advised(&mut self, seen: &Seen) -> Option<u64> {
        let file = self.descriptors.remove(&(seen.tid, seen.at_ns))?;
        let stored = self.files.get(&file).cloned().flatten()?;
        Some(self.open(seen, file, &stored))
    }

    /// Ends what was done to the processes. Returns the mappings of which it could not be ended.
    pub fn end_advice(&mut self) -> Vec<(u32, MappedRange)> {
        self.single.restore()
    }

    /// Mappings of which pages came with others that were touched, and how many pages these were,
    /// as far as that is known.
    pub fn late(&self) -> (u64, u64) {
        (self.single.late(), self.single.late_pages())
    }

    /// Touches whose page stayed in its process where each change is recorded, and the first
    /// refusal to take pages.
    pub fn stayed(&self) -> (u64, Option<String>) {
        let Some(changes) = &self.changes else { return (0, None) };
        (changes.stayed, changes.refused.as_ref().map(ToString::to_string))
    }

    /// The first refusal to have pages come one at a time.
    pub fn refused(&self) -> Option<String> {
        self.single.refused.as_ref().map(ToString::to_string)
    }

    /// Records of the kernel that were lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn take(&mut self, seen: Seen) {
        let pid = seen.pid;
        match seen.what {
            What::Lost { records } => self.lost += records,
            What::Begin { parent } => self.begin(&seen, parent),
            What::End => self.end(&seen),
            What::CallsExec => self.process(pid).is_in_exec = true,
            What::ExecReturns => self.release(pid),
            What::Exec => self.exec(&seen),
            What::Fault { address, is_write } => {
                self.tell_if_begun(&seen, Did::Touch { address, is_write });
            }
            What::Read { file, first, last } => self.read(&seen, file, first, last),
            What::Map(ref map) => self.map(&seen, map),
            What::AdviseFile { offset_bytes, length_bytes: length, advice, .. } => {
                if let (Some(open), Ok(advice)) = (self.advised(&seen), u32::try_from(advice)) {
                    self.tell(&seen, Did::Fadvise { open, offset_bytes, length, advice });
                }
            }
            What::ReadAhead { offset_bytes, length_bytes: length, .. } => {
                if let Some(open) = self.advised(&seen) {
                    self.tell(&seen, Did::Readahead { open, offset_bytes, length });
                }
            }
            // What is told of it is that it is about to.
            What::Advised { .. } => {}
            What::CallsMap { .. } | What::CallsMove { .. } => {
                self.calls.insert(seen.tid, seen.what);
            }
            What::Moved { result } => self.moved(&seen, result),
            What::Unmap { address, length_bytes } => {
                self.tell_if_begun(&seen, Did::Unmap { address, length: length_bytes });
            }
            What::Advise { address, length_bytes: length, advice } => {
                let own = (seen.pid, seen.at_ns);
                let at = self.own_advice.iter().position(|of| *of == own);
                match (at, u32::try_from(advice)) {
                    (Some(at), _) => drop(self.own_advice.swap_remove(at)),
                    (None, Ok(advice)) => {
                        self.tell_if_begun(&seen, Did::Madvise { address, length, advice });
                    }
                    (None, Err(_)) => {}
                }
            }
        }
    }

    fn process(&mut self, pid: u32) -> &mut Process {
        let images = &mut self.images;
        self.processes.entry(pid).or_insert_with(|| Process {
            image: next_image(images, pid),
            threads: HashSet::from([pid]),
            ..Process::default()
        })
    }

    /// Tells something of a process that has begun to be recorded.
    fn tell_if_begun(&mut self, seen: &Seen, did: Did) {
        if self.process(seen.pid).is_told {
            self.tell(seen, did);
        }
    }

    fn tell(&mut self, seen: &Seen, did: Did) {
        let process = (seen.pid, self.process(seen.pid).image);
        self.told.push(Told { process, thread: seen.tid, user_ns: 0, did });
    }

    /// A thread was made, or a process.
    fn begin(&mut self, seen: &Seen, parent: u32) {
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

    fn end(&mut self, seen: &Seen) {
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

    fn forget_changes(&mut self, pid: u32) {
        if let Some(changes) = &mut self.changes {
            changes.forget(pid);
        }
    }

    /// A process is another program now. What the kernel has read for that is this program's.
    fn exec(&mut self, seen: &Seen) {
        self.tell_if_begun(seen, Did::End);
        let before = self.processes.remove(&seen.pid).unwrap_or_default();
        let image = next_image(&mut self.images, seen.pid);
        let threads = HashSet::from([seen.pid]);
        let (parent, held) = (before.parent, before.held);
        let process = Process { image, parent, held, threads, ..Process::default() };
        self.processes.insert(seen.pid, process);
    }

    /// A process has not become another program: what was read is its own.
    fn release(&mut self, pid: u32) {
        let process = self.process(pid);
        process.is_in_exec = false;
        for seen in std::mem::take(&mut process.held) {
            if let What::Read { file, first, last } = seen.what {
                self.tell_read(&seen, file, first, last);
            }
        }
    }

    fn read(&mut self, seen: &Seen, file: FileId, first: u64, last: u64) {
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

    fn hold(&mut self, seen: &Seen) {
        let held = &mut self.process(seen.pid).held;
        if held.len() < MOST_HELD {
            held.push(seen.clone());
        }
    }

    fn tell_read(&mut self, seen: &Seen, file: FileId, first: u64, last: u64) {
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

    fn map(&mut self, seen: &Seen, map: &MappedRange) {
        let called = self.calls.remove(&seen.tid);
        let MappedRange { address, length_bytes: length, offset_bytes, protection, .. } = *map;
        if self.protects(seen, map) {
            return self.tell_if_begun(seen, Did::Protect { address, length, protection });
        }
        self.tell_if_begun(seen, Did::Unmap { address, length });
        let Some(MappedFile { id: file, path }) = &map.file else { return };
        if !self.files.contains_key(file) {
            self.know(*file, path);
        }
        let held = std::mem::take(&mut self.process(seen.pid).held);
        let (own, others): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|held| is_read_of(held, *file));
        self.process(seen.pid).held = others;
        let Some(stored) = self.files.get(file).cloned().flatten() else { return };
        let open = self.open(seen, *file, &stored);
        for read in own {
            if let What::Read { file, first, last } = read.what {
                self.tell_read(&read, file, first, last);
            }
        }
        if let Some(size_bytes) = self.sizes.remove(&(seen.tid, seen.at_ns)) {
            let resized = Stored { size_bytes, ..stored };
            self.files.insert(*file, Some(resized.clone()));
            self.tell(seen, Did::Resize { file: resized });
        }
        let shared = if map.is_shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        let mut flags = shared.cast_unsigned();
        if let Some(What::CallsMap { flags: called }) = called {
            let of_call = libc::MAP_POPULATE | libc::MAP_LOCKED;
            flags |= called as u32 & of_call.cast_unsigned();
        }
        self.tell(seen, Did::Map { open, address, length, offset_bytes, protection, flags });
        if let Some(advice) = self.single.taken_over(seen.pid, address) {
            self.tell(seen, Did::Madvise { address, length, advice });
        }
    }

    /// Whether what is told as a mapping is another protection of one that is there.
    fn protects(&mut self, seen: &Seen, map: &MappedRange) -> bool {
        let MappedRange { address, length_bytes, offset_bytes, protection, .. } = *map;
        let file = map.file.as_ref().map(|file| file.id);
        let maps = &mut self.process(seen.pid).maps;
        let end = address.saturating_add(length_bytes);
        let before = maps.iter().find(|of| of.address <= address && end <= of.end).copied();
        let is_same = |of: &Known| {
            Some(of.file) == file
                && of.protection != protection
                && of.offset_bytes + (address - of.address) == offset_bytes
        };
        if let Some(before) = before.filter(is_same) {
            // Where a part has another protection, the whole is known as it was.
            if (before.address, before.end) == (address, end) {
                maps.retain(|of| of.address != address);
                maps.push(Known { protection, ..before });
            }
            return true;
        }
        maps.retain(|of| of.end <= address || end <= of.address);
        maps.extend(file.map(|file| Known { address, end, offset_bytes, file, protection }));
        false
    }

    fn moved(&mut self, seen: &Seen, result: i64) {
        let called = self.calls.remove(&seen.tid);
        if let Some(What::CallsMove { address, length_bytes, new_length_bytes }) = called
            && let Ok(to) = u64::try_from(result)
        {
            let (from, to) = ((address, length_bytes), (to, new_length_bytes));
            self.tell_if_begun(seen, Did::Move { from, to });
        }
    }

    /// Looks at a file whose path is known now.
    fn know(&mut self, file: FileId, path: &Path) {
        let stored = self.wanted.look(file, path);
        self.files.insert(file, stored);
    }

    /// The number of a file of a process, which begins with it if it has not begun.
    fn open(&mut self, seen: &Seen, file: FileId, stored: &Stored) -> u64 {
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

/// A number for what the process `pid` is now: it counts its programs.
fn next_image(images: &mut HashMap<u32, u32>, pid: u32) -> u32 {
    let next = images.entry(pid).or_insert(0);
    *next += 1;
    *next - 1
}

/// The path of the program of a process; empty where it is gone.
fn program_of(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default()
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
fn is_read_of(seen: &Seen, file: FileId) -> bool {
    matches!(seen.what, What::Read { file: read, .. } if read == file)
}
