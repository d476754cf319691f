//! What the kernel tells of processes, as it goes into a recording.

mod files;
mod maps;
mod process;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use filemap_attach::trace_points::{Event as Seen, What};
use filemap_attach::{Changes, FileId, MappedFile, MappedRange, Source};
use filemap_govern::SinglePages;
use filemap_recording::assembly::{Did, Stored, Told};

use super::wanted::WantedFiles;
use crate::error::Error;
use process::Process;

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
            What::Map(map) => {
                self.single.replaced(seen.pid, map);
                let Some(MappedFile { id: file, path }) = &map.file else { return };
                if !self.files.contains_key(file) {
                    self.know(*file, path);
                }
                let Some(stored) = self.files.get(file).cloned().flatten() else { return };
                let size = stored.size_now().filter(|size| *size != stored.size_bytes);
                self.sizes.extend(size.map(|size| ((seen.tid, seen.at_ns), size)));
                if is_over {
                    self.single.missed(&self.source, seen, map);
                } else {
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
}
