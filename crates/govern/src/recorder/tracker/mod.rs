//! Turns the events of followed processes into observations for a recording.

mod files;
mod mappings;
mod process;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use filemap_attach::tracepoints::{TraceEvent, TraceEventKind};
use filemap_attach::{Error, EventSource, FileId, MappedFile, MappedRange, PageReclaimer};
use filemap_recording::GapKind;
use filemap_recording::assembly::{Action, Observation, ObservedFile, ProcessImage};

use super::file_filter::{Exclusion, FileFilter, ProcessFile};
use super::single_pages::{LateMappings, MissedTouches, SinglePages, is_of_system};
use files::ReadCall;
use process::TrackedProcess;

/// `MAP_LOCKED` in the flags of a mapping.
const LOCKED: u32 = libc::MAP_LOCKED.cast_unsigned();

/// The flags of mmap(2) that read the whole mapping.
const POPULATING_FLAGS: u64 = (libc::MAP_POPULATE | libc::MAP_LOCKED).cast_unsigned() as u64;

/// The state of all followed processes.
///
/// An event is handled twice: `act` runs as soon as it is read, to advise new mappings in time, and
/// `translate` runs in order of time, to make observations.
pub struct ProcessTracker {
    source: EventSource,
    single: SinglePages,
    /// Unmaps touched pages again; only if every change of page is recorded.
    reclaimer: Option<PageReclaimer>,
    page_bytes: u64,
    filter: FileFilter,
    /// Files that the filter was applied to; `None` for those that are not recorded.
    files: HashMap<FileId, Option<ObservedFile>>,
    /// By device and inode: the cached pages of files that no process has opened yet.
    cached: HashMap<(u64, u64), Vec<[u64; 2]>>,
    /// Files that are not recorded, and why.
    excluded: Vec<(Exclusion, PathBuf)>,
    processes: HashMap<u32, TrackedProcess>,
    /// By PID: the number of programs that it has run.
    images: HashMap<u32, u32>,
    opens: u64,
    /// By thread: the entered system call whose return event is pending.
    calls: HashMap<u32, TraceEventKind>,
    /// By thread: the flags of its last mmap(2), if it reads the whole mapping before it returns.
    populating: HashMap<u32, u64>,
    /// Pages that were locked in memory, so that their touches cannot be seen.
    locked_pages: u64,
    /// The directories of the last files that were found, and the files that are in none of them.
    directories: Vec<PathBuf>,
    not_neighbours: HashSet<FileId>,
    /// By thread: file, first and last page of the last read.
    reads: HashMap<u32, (FileId, u64, u64)>,
    /// By thread: the read(2) or pread(2) that it entered, until its first lookup of a page.
    read_calls: HashMap<u32, ReadCall>,
    observations: Vec<Observation>,
    /// PID and time of the madvise(2) calls that this process injected.
    own_advice: Vec<(u32, u64)>,
    /// By thread and time of fadvise(2) or readahead(2): the file of the descriptor.
    advised_files: HashMap<(u32, u64), FileId>,
    /// By thread and time of mmap(2): the new size of the file in bytes, if it has changed.
    sizes: HashMap<(u32, u64), u64>,
    /// Calls of posix_fadvise(2) and readahead(2) whose descriptor was closed before its file could
    /// be looked up.
    unresolved_advice: u64,
    /// Reads of files that were closed before their path could be looked up.
    unresolved_reads: u64,
    lost: u64,
}

impl ProcessTracker {
    pub fn new(
        source: EventSource,
        single: SinglePages,
        page_bytes: u64,
        filter: FileFilter,
    ) -> ProcessTracker {
        ProcessTracker {
            source,
            single,
            reclaimer: None,
            page_bytes,
            filter,
            files: HashMap::new(),
            cached: HashMap::new(),
            excluded: Vec::new(),
            processes: HashMap::new(),
            images: HashMap::new(),
            opens: 0,
            calls: HashMap::new(),
            populating: HashMap::new(),
            locked_pages: 0,
            directories: Vec::new(),
            not_neighbours: HashSet::new(),
            reads: HashMap::new(),
            read_calls: HashMap::new(),
            observations: Vec::new(),
            own_advice: Vec::new(),
            advised_files: HashMap::new(),
            sizes: HashMap::new(),
            unresolved_advice: 0,
            unresolved_reads: 0,
            lost: 0,
        }
    }

    /// Sets the pages that were cached before the recording, by device and inode.
    pub fn set_cached(&mut self, cached: HashMap<(u64, u64), Vec<[u64; 2]>>) {
        self.cached = cached;
    }

    /// Observes each change of page instead of first touches only.
    pub fn record_changes(&mut self) {
        self.source.collect_faults();
        self.reclaimer = Some(PageReclaimer::default());
    }

    /// The observations since the last call, in order of time. `is_over` means that no more events
    /// come, so the events of the last millisecond are included too.
    pub fn observe(&mut self, is_over: bool) -> Result<Vec<Observation>, Error> {
        if !is_over {
            self.source.wait()?;
        }
        self.source.read_events()?;
        self.act_on_new_events(is_over)?;
        self.reclaim_pages();
        self.single.retry(&mut self.source);
        // Injected calls cause events themselves, which must be recognised as our own.
        self.act_on_new_events(is_over)?;
        for event in self.source.take_events(is_over) {
            self.add_unseen(event.at_ns);
            self.translate(event);
        }
        if is_over {
            self.add_unseen(u64::MAX);
        }
        Ok(std::mem::take(&mut self.observations))
    }

    /// Acts on the new events, and on those that arrive meanwhile: holding a thread takes long.
    fn act_on_new_events(&mut self, is_over: bool) -> Result<(), Error> {
        loop {
            let mut events = self.source.take_new_events();
            if events.is_empty() {
                return Ok(());
            }
            // Large mappings first: there the kernel reads ahead most before the advice arrives.
            events.sort_by_key(|event| match &event.kind {
                TraceEventKind::Map(range) => Reverse(range.length_bytes),
                _ => Reverse(u64::MAX),
            });
            events.iter().for_each(|event| self.act(event, is_over));
            self.source.read_events()?;
        }
    }

    /// Unmaps touched pages, so that their next touch faults.
    fn reclaim_pages(&mut self) {
        let Some(reclaimer) = &mut self.reclaimer else { return };
        for (pid, tid, address) in self.source.take_faults() {
            if self.single.may_reclaim(pid, address) {
                reclaimer.add_touch(pid, tid, address);
            }
        }
        reclaimer.reclaim();
    }

    /// Acts on an event before the events are sorted by time: a new mapping must be advised
    /// quickly.
    fn act(&mut self, event: &TraceEvent, is_over: bool) {
        match &event.kind {
            TraceEventKind::Map(map) => {
                self.single.on_replaced(event.pid, map);
                let Some(MappedFile { id: file, path }) = &map.file else { return };
                // Not again for each mapping of a file that is not recorded, such as a library.
                if matches!(self.files.get(file), Some(None)) {
                    return;
                }
                let found = ProcessFile::find(event.pid, *file, path, Some(map.address));
                if !self.files.contains_key(file) {
                    self.add_file(*file, &found);
                    self.look_up_cached(*file, &found);
                }
                let Some(stored) = self.files.get(file).cloned().flatten() else { return };
                let size = found.current_size_bytes(&stored);
                let size = size.filter(|size| *size != stored.size_bytes);
                self.sizes.extend(size.map(|size| ((event.tid, event.at_ns), size)));
                let flags = self.populating.remove(&event.tid);
                if flags.is_some_and(|flags| flags & u64::from(LOCKED) != 0) {
                    // Its pages cannot be unmapped.
                    return;
                }
                if is_over {
                    self.single.on_missed_mapping(&self.source, event, map);
                } else {
                    let (source, link) = (&mut self.source, &found.link);
                    self.single.on_mapping(source, event, map, link, flags.is_some());
                }
            }
            TraceEventKind::MmapCall { flags } => {
                if flags & POPULATING_FLAGS != 0 {
                    self.populating.insert(event.tid, *flags);
                } else {
                    self.populating.remove(&event.tid);
                }
            }
            TraceEventKind::Exec => {
                self.single.forget(event.pid);
                self.forget_touches(event.pid);
            }
            TraceEventKind::Fork { parent } if *parent != event.pid => {
                self.single.on_fork(event, *parent);
            }
            TraceEventKind::MadviseCall { address, length_bytes, advice } => {
                if self.single.is_own(event, *address, *advice) {
                    self.own_advice.push((event.pid, event.at_ns));
                } else if !is_over {
                    let range = (*address, *length_bytes);
                    self.single.on_program_advice(event, range, *advice);
                }
            }
            TraceEventKind::FadviseCall { fd, .. } | TraceEventKind::ReadaheadCall { fd, .. } => {
                match self.descriptor_file(event.pid, *fd) {
                    Ok(file) => {
                        let file = file.map(|file| ((event.tid, event.at_ns), file));
                        self.advised_files.extend(file);
                    }
                    Err(_) => self.unresolved_advice += 1,
                }
            }
            _ => {}
        }
    }

    /// The number of the recorded open file that the program advised by its descriptor.
    fn advised_open(&mut self, event: &TraceEvent) -> Option<u64> {
        let file = self.advised_files.remove(&(event.tid, event.at_ns))?;
        let stored = self.files.get(&file).cloned().flatten()?;
        let open = self.open_number(event, &stored);
        self.add_deferred_reads(event.pid, file);
        Some(open)
    }

    /// Restores the advice of all mappings. Returns those where that failed.
    pub fn restore_advice(&mut self) -> Vec<(u32, MappedRange)> {
        self.single.restore()
    }

    /// The mappings whose pages came together with others. Those of libraries and locales do not
    /// matter if other files were recorded.
    pub fn late(&self) -> LateMappings {
        let mut recorded = self.files.values().flatten();
        if recorded.any(|file| !is_of_system(&file.path)) {
            self.single.late().without_system_files()
        } else {
            self.single.late()
        }
    }

    /// Whether a fault maps cached pages around it.
    pub fn has_fault_around(&self) -> bool {
        self.single.has_fault_around()
    }

    /// The number of pages that could not be reclaimed in time, and the first error.
    pub fn unreclaimed(&self) -> (u64, Option<String>) {
        let Some(reclaimer) = &self.reclaimer else { return (0, None) };
        (reclaimer.stayed, reclaimer.refused.as_ref().map(ToString::to_string))
    }

    /// The files that are not recorded, with the most surprising reasons first.
    pub fn excluded(&self) -> Vec<(Exclusion, PathBuf)> {
        let mut excluded = self.excluded.clone();
        excluded.sort();
        excluded.dedup();
        excluded
    }

    /// Kinds and numbers of the events that could not be recorded.
    pub fn gaps(&self) -> Vec<(GapKind, u64)> {
        let deferred = self.processes.values().map(|process| process.deferred.len() as u64);
        let reads = self.unresolved_reads + deferred.sum::<u64>();
        let gaps = [
            (GapKind::SystemCalls, u64::from(!self.source.reports_syscalls())),
            (GapKind::Advice, self.unresolved_advice),
            (GapKind::ReadPages, reads),
            (GapKind::LockedPages, self.locked_pages),
            (GapKind::TouchedPages, self.late().pages()),
        ];
        gaps.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// The first lasting refusal to advise a mapping.
    pub fn refused(&self) -> Option<String> {
        self.single.refused.as_ref().map(ToString::to_string)
    }

    /// The processes with a recorded file that have not exited.
    pub fn recorded_processes(&self) -> Vec<ProcessImage> {
        let recorded = self.processes.iter().filter(|(_, process)| process.is_recorded);
        recorded.map(|(pid, process)| (*pid, process.image)).collect()
    }

    /// Records that the kernel dropped.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn translate(&mut self, event: TraceEvent) {
        let pid = event.pid;
        match event.kind {
            TraceEventKind::Lost { records } => self.lost += records,
            TraceEventKind::Fork { parent } => self.on_fork(&event, parent),
            TraceEventKind::Exit => self.on_exit(&event),
            TraceEventKind::ExecCall => self.process(pid).is_in_exec = true,
            TraceEventKind::ExecReturn => self.on_exec_return(pid),
            TraceEventKind::Exec => self.on_exec(&event),
            TraceEventKind::Fault { address, is_write } => {
                self.add_if_recorded(&event, Action::Touch { address, is_write });
            }
            TraceEventKind::Read { file, first, last } => self.on_read(&event, file, first, last),
            TraceEventKind::ReadCall { fd, length_bytes, offset_bytes } => {
                let call = ReadCall { fd, length_bytes, offset_bytes };
                self.read_calls.insert(event.tid, call);
            }
            TraceEventKind::Map(ref map) => self.on_map(&event, map),
            TraceEventKind::FadviseCall { offset_bytes, length_bytes: length, advice, .. } => {
                if let (Some(open), Ok(advice)) = (self.advised_open(&event), u32::try_from(advice))
                {
                    self.add(&event, Action::Fadvise { open, offset_bytes, length, advice });
                }
            }
            TraceEventKind::ReadaheadCall { offset_bytes, length_bytes: length, .. } => {
                if let Some(open) = self.advised_open(&event) {
                    self.add(&event, Action::Readahead { open, offset_bytes, length });
                }
            }
            // The call was observed when it was entered.
            TraceEventKind::MadviseReturn { .. } => {}
            TraceEventKind::MmapCall { .. } | TraceEventKind::MremapCall { .. } => {
                self.calls.insert(event.tid, event.kind);
            }
            TraceEventKind::LockCall { address, length_bytes, populates } => {
                self.on_lock(&event, (address, length_bytes), populates);
            }
            TraceEventKind::LockAllCall { flags } => self.on_lock_all(&event, flags),
            TraceEventKind::MremapReturn { result } => self.on_mremap_return(&event, result),
            TraceEventKind::MunmapCall { address, length_bytes } => {
                self.add_if_recorded(&event, Action::Unmap { address, length: length_bytes });
            }
            TraceEventKind::MadviseCall { address, length_bytes: length, advice } => {
                let key = (event.pid, event.at_ns);
                let own = self.own_advice.iter().position(|own| *own == key);
                match (own, u32::try_from(advice)) {
                    (Some(own), _) => drop(self.own_advice.swap_remove(own)),
                    (None, Ok(advice)) => {
                        self.add_if_recorded(&event, Action::Madvise { address, length, advice });
                    }
                    (None, Err(_)) => {}
                }
            }
        }
    }

    /// Adds the pages that may have been touched unseen until `at_ns`.
    fn add_unseen(&mut self, at_ns: u64) {
        for MissedTouches { pid, tid, pages } in self.single.take_unseen(at_ns) {
            let Some(process) = self.processes.get(&pid).filter(|known| known.is_recorded) else {
                continue;
            };
            let process = (pid, process.image);
            for range in pages.ranges {
                let action =
                    Action::Unseen { address: range.start, length: range.end - range.start };
                self.observations.push(Observation { process, thread: tid, user_ns: 0, action });
            }
        }
    }

    /// Adds an observation of a process that has a recorded file.
    fn add_if_recorded(&mut self, event: &TraceEvent, action: Action) {
        if self.process(event.pid).is_recorded {
            self.add(event, action);
        }
    }

    fn add(&mut self, event: &TraceEvent, action: Action) {
        let process = (event.pid, self.process(event.pid).image);
        self.observations.push(Observation { process, thread: event.tid, user_ns: 0, action });
    }
}
