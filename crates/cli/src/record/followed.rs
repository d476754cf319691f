//! What the kernel tells of programs into which nothing is loaded, as the library would tell it.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_attach::trace_points::{Event, TracePoints, What};
use filemap_attach::{FileId, MappedRange};
use filemap_control::IN_MEMORY;
use filemap_control::tape::{Entry, Kind};

use super::Source;
use super::tapes::Told;

/// Reads of files whose path is not known yet: so many are kept of a process.
const MOST_HELD: usize = 4096;

/// Which files are recorded.
pub struct WantedFiles {
    /// Bytes of the smallest.
    pub min_bytes: u64,
    /// Patterns, one of which their path matches; any where there is none.
    pub patterns: Vec<OsString>,
}

/// A file that is recorded.
#[derive(Clone)]
struct Stored {
    path: PathBuf,
    device: u64,
    inode: u64,
    size_bytes: u64,
}

/// The processes that are followed.
pub struct Followed {
    following: TracePoints,
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
    lost: u64,
}

/// A process, as long as it is one program.
#[derive(Default)]
struct Process {
    image: u32,
    parent: u32,
    /// Its path, as far as it is known.
    program: Vec<u8>,
    /// It was told that it begins.
    is_told: bool,
    is_in_exec: bool,
    threads: HashSet<u32>,
    /// The numbers of its open files: one for each file, as descriptors are not told.
    opens: HashMap<FileId, u64>,
    /// Reads of files whose path is not known yet, and all reads while it becomes another program.
    held: Vec<Event>,
    forks: u64,
}

impl Followed {
    pub fn new(following: TracePoints, page_bytes: u64, wanted: WantedFiles) -> Followed {
        Followed {
            following,
            page_bytes,
            wanted,
            files: HashMap::new(),
            processes: HashMap::new(),
            images: HashMap::new(),
            opens: 0,
            calls: HashMap::new(),
            reads: HashMap::new(),
            told: Vec::new(),
            lost: 0,
        }
    }

    fn take(&mut self, seen: Event) {
        let pid = seen.pid;
        match seen.what {
            What::Lost { records } => self.lost += records,
            What::Begin { parent } => self.begin(&seen, parent),
            What::End => self.end(&seen),
            What::CallsExec => self.process(pid).is_in_exec = true,
            What::ExecReturns => self.release(pid),
            What::Exec => self.exec(&seen),
            What::Fault { address, is_write } => {
                self.tell_if_begun(&seen, Kind::Touch, [address, is_write.into(), 0, 0]);
            }
            What::Read { file, first, last } => self.read(&seen, file, first, last),
            What::Map(ref map) => self.map(&seen, map),
            What::CallsMap { .. } | What::CallsMove { .. } => {
                self.calls.insert(seen.tid, seen.what);
            }
            What::Moved { result } => self.moved(&seen, result),
            What::Unmap { address, length_bytes } => {
                self.tell_if_begun(&seen, Kind::Unmap, [address, length_bytes, 0, 0]);
            }
            What::Advise { address, length_bytes, advice } => {
                self.tell_if_begun(&seen, Kind::Madvise, [address, length_bytes, advice, 0]);
            }
            What::Advised { .. } | What::AdviseFile { .. } | What::ReadAhead { .. } => {}
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
    fn tell_if_begun(&mut self, seen: &Event, kind: Kind, values: [u64; 4]) {
        if self.process(seen.pid).is_told {
            self.tell(seen, kind, values, b"");
        }
    }

    fn tell(&mut self, seen: &Event, kind: Kind, values: [u64; 4], text: &[u8]) {
        let image = self.process(seen.pid).image;
        // Nobody tells how much time of a thread was its own.
        let entry = Entry { kind, thread: seen.tid, time_ns: seen.at_ns, user_ns: 0, values };
        self.told.push(Told { process: (seen.pid, image), entry, text: text.to_vec() });
    }

    /// A thread was made, or a process.
    fn begin(&mut self, seen: &Event, parent: u32) {
        if parent == seen.pid {
            self.process(parent).threads.insert(seen.tid);
            return;
        }
        let made_by = self.process(parent);
        made_by.forks += 1;
        let (fork, is_told) = (made_by.forks, made_by.is_told);
        let (opens, program) = (made_by.opens.clone(), made_by.program.clone());
        let image = next_image(&mut self.images, seen.pid);
        let threads = HashSet::from([seen.tid]);
        let text = program.clone();
        let process =
            Process { image, parent, program, is_told, threads, opens, ..Process::default() };
        self.processes.insert(seen.pid, process);
        if is_told {
            let forks = Event { pid: parent, tid: parent, ..seen.clone() };
            self.tell(&forks, Kind::Fork, [fork, 0, 0, 0], b"");
            self.tell(seen, Kind::Begin, [parent.into(), fork, 0, 0], &text);
        }
    }

    fn end(&mut self, seen: &Event) {
        let process = self.process(seen.pid);
        process.threads.remove(&seen.tid);
        self.calls.remove(&seen.tid);
        self.reads.remove(&seen.tid);
        if self.process(seen.pid).threads.is_empty() {
            self.tell_if_begun(seen, Kind::End, [0; 4]);
            self.processes.remove(&seen.pid);
        }
    }

    /// A process is another program now. What the kernel has read for that is this program's.
    fn exec(&mut self, seen: &Event) {
        self.tell_if_begun(seen, Kind::End, [0; 4]);
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

    fn read(&mut self, seen: &Event, file: FileId, first: u64, last: u64) {
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

    fn hold(&mut self, seen: &Event) {
        let held = &mut self.process(seen.pid).held;
        if held.len() < MOST_HELD {
            held.push(seen.clone());
        }
    }

    fn tell_read(&mut self, seen: &Event, file: FileId, first: u64, last: u64) {
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
            self.tell(seen, Kind::Read, [open, offset, end - offset, 0], b"");
        }
    }

    fn map(&mut self, seen: &Event, map: &MappedRange) {
        let called = self.calls.remove(&seen.tid);
        self.tell_if_begun(seen, Kind::Unmap, [map.address, map.length_bytes, 0, 0]);
        let Some(mapped) = &map.file else { return };
        let (file, path) = (&mapped.id, &mapped.path);
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
        let mut flags = if map.is_shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE } as u64;
        if let Some(What::CallsMap { flags: called }) = called {
            flags |= called & (libc::MAP_POPULATE | libc::MAP_LOCKED) as u64;
        }
        self.tell(seen, Kind::Mode, [map.protection.into(), flags, 0, 0], b"");
        let MappedRange { address, length_bytes, offset_bytes, .. } = *map;
        self.tell(seen, Kind::Map, [address, length_bytes, offset_bytes, open], b"");
    }

    fn moved(&mut self, seen: &Event, result: i64) {
        let called = self.calls.remove(&seen.tid);
        if let Some(What::CallsMove { address, length_bytes, new_length_bytes }) = called
            && let Ok(to) = u64::try_from(result)
        {
            let values = [address, length_bytes, to, new_length_bytes];
            self.tell_if_begun(seen, Kind::Move, values);
        }
    }

    /// Looks at a file whose path is known now.
    fn know(&mut self, file: FileId, path: &Path) {
        let stored = self.wanted.look(file, path);
        self.files.insert(file, stored);
    }

    /// The number of a file of a process, which begins with it if it has not begun.
    fn open(&mut self, seen: &Event, file: FileId, stored: &Stored) -> u64 {
        let process = self.process(seen.pid);
        if let Some(open) = process.opens.get(&file) {
            return *open;
        }
        let (parent, is_told) = (process.parent, process.is_told);
        process.is_told = true;
        if !is_told {
            // It maps itself before all others.
            let mut program = program_of(seen.pid);
            if program.is_empty() {
                program = stored.path.as_os_str().as_bytes().to_vec();
            }
            self.process(seen.pid).program.clone_from(&program);
            self.tell(seen, Kind::Begin, [parent.into(), 0, 0, 0], &program);
        }
        self.opens += 1;
        let open = self.opens;
        self.process(seen.pid).opens.insert(file, open);
        let values = [open, stored.device, stored.inode, stored.size_bytes];
        self.tell(seen, Kind::Open, values, stored.path.as_os_str().as_bytes());
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
fn program_of(pid: u32) -> Vec<u8> {
    let link = fs::read_link(format!("/proc/{pid}/exe"));
    link.map(|path| path.as_os_str().as_bytes().to_vec()).unwrap_or_default()
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

impl WantedFiles {
    /// What is told of the file at `path`, if it is recorded.
    fn look(&self, file: FileId, path: &Path) -> Option<Stored> {
        let found = fs::metadata(path).ok()?;
        let is_it = found.is_file() && found.ino() == file.inode;
        let filesystem = rustix::fs::statfs(path).ok()?.f_type;
        let is_recorded = is_it
            && found.len() >= self.min_bytes.max(1)
            && !IN_MEMORY.contains(&filesystem)
            && self.matches(path);
        is_recorded.then(|| Stored {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
            size_bytes: found.len(),
        })
    }

    fn matches(&self, path: &Path) -> bool {
        let c_string = |text: &[u8]| CString::new(text).ok();
        let Some(path) = c_string(path.as_os_str().as_bytes()) else { return false };
        let mut patterns = self.patterns.iter().filter_map(|text| c_string(text.as_bytes()));
        // SAFETY: both texts end with a zero.
        let is_match =
            |pattern: CString| unsafe { libc::fnmatch(pattern.as_ptr(), path.as_ptr(), 0) == 0 };
        self.patterns.is_empty() || patterns.any(is_match)
    }
}

/// Whether `seen` is a read of `file`.
fn is_read_of(seen: &Event, file: FileId) -> bool {
    matches!(seen.what, What::Read { file: read, .. } if read == file)
}

impl Source for Followed {
    fn told(&mut self, is_over: bool) -> Vec<Told> {
        let mut seen = Vec::new();
        self.following.read(is_over, &mut |event| seen.push(event));
        seen.into_iter().for_each(|event| self.take(event));
        std::mem::take(&mut self.told)
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}
