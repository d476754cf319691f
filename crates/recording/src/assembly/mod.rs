//! Turns observations of processes into the events of a recording: addresses become mappings and
//! pages, the observer's numbers of open files become indexes, and CPU times become waits.

mod observation;
mod space;
mod touch_filter;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use crate::event::{Event, EventKind, MappingPages};
use space::{MappedPart, MappedSpace};
use touch_filter::{FirstTouches, TouchFilter};

pub use observation::{Action, Observation, ObservedFile, ProcessImage};

/// The state of the recorded processes.
pub struct Assembly {
    page_bytes: u64,
    processes: HashMap<ProcessImage, AssembledProcess>,
    /// By PID of the parent and number of its fork: the address space that the child inherits,
    /// until the child starts.
    forked: HashMap<(u32, u64), Rc<MappedSpace>>,
    opens: HashMap<u64, OpenDescription>,
    files: HashMap<(u64, u64), u32>,
    /// The last observed size of each file, in bytes.
    sizes: Vec<u64>,
    counts: NextIndexes,
    touches: TouchFilter,
    events: Vec<Event>,
    /// Observations that refer to a process or open file whose own observation was lost.
    pub unknown: u64,
    /// The paths of all files, by index.
    pub paths: Vec<OsString>,
    /// Processes that have exited.
    exited: HashSet<ProcessImage>,
}

/// The next free index of each kind.
#[derive(Default)]
struct NextIndexes {
    processes: u32,
    threads: u32,
    files: u32,
    opens: u32,
    mappings: u32,
}

/// An open file description of the recording.
#[derive(Clone, Copy)]
struct OpenDescription {
    index: u32,
}

struct AssembledProcess {
    index: u32,
    space: Rc<MappedSpace>,
    threads: HashMap<u32, AssembledThread>,
}

#[derive(Clone, Copy)]
struct AssembledThread {
    index: u32,
    user_ns: u64,
}

fn take_index(count: &mut u32) -> u32 {
    *count += 1;
    *count - 1
}

impl Assembly {
    /// Assembles every change of page if `has_changes`, otherwise first touches only.
    pub fn new(page_bytes: u64, has_changes: bool) -> Assembly {
        Assembly {
            page_bytes,
            processes: HashMap::new(),
            forked: HashMap::new(),
            opens: HashMap::new(),
            files: HashMap::new(),
            sizes: Vec::new(),
            counts: NextIndexes::default(),
            touches: if has_changes {
                TouchFilter::Changes(HashMap::new())
            } else {
                TouchFilter::Firsts(FirstTouches::default())
            },
            events: Vec::new(),
            unknown: 0,
            paths: Vec::new(),
            exited: HashSet::new(),
        }
    }

    /// Adds the next observation. Returns the resulting events.
    pub fn add(&mut self, observation: &Observation) -> Vec<Event> {
        if let Action::Start { parent, fork, program } = &observation.action {
            self.on_start(observation, *parent, *fork, program.clone());
        }
        if self.processes.contains_key(&observation.process) {
            self.on_action(observation);
        } else if !self.exited.contains(&observation.process) {
            self.unknown += 1;
        }
        std::mem::take(&mut self.events)
    }

    fn on_start(&mut self, observation: &Observation, parent: u32, fork: u64, program: PathBuf) {
        let index = take_index(&mut self.counts.processes);
        let inherited = self.forked.remove(&(parent, fork)).unwrap_or_default();
        let parents = self.processes.iter().filter(|((pid, _), _)| *pid == parent);
        let parent = parents.max_by_key(|((_, image), _)| *image).map(|(_, process)| process.index);
        self.events.push(Event {
            thread: 0,
            wait_ns: 0,
            kind: EventKind::Process { pid: observation.process.0, parent, program },
        });
        let space = Rc::new(MappedSpace::default());
        self.processes.insert(
            observation.process,
            AssembledProcess { index, space, threads: HashMap::new() },
        );
        // A child's mappings are mappings of their own in the recording; they refer to the open
        // files of the parent.
        for mapped in inherited.all() {
            self.add_mapping(observation, mapped.address, mapped.length, mapped);
        }
    }

    /// The index of the observed thread, introduced by an event if it is new, and its user time
    /// since its last event.
    fn thread_index(&mut self, observation: &Observation) -> (u32, u64) {
        let process = self.processes.get_mut(&observation.process).expect("it was looked for");
        let user_ns = observation.user_ns;
        if let Some(thread) = process.threads.get_mut(&observation.thread) {
            let wait_ns = user_ns.saturating_sub(thread.user_ns);
            thread.user_ns = user_ns;
            return (thread.index, wait_ns);
        }
        let index = take_index(&mut self.counts.threads);
        process.threads.insert(observation.thread, AssembledThread { index, user_ns });
        let thread_event = EventKind::Thread { process: process.index, tid: observation.thread };
        self.events.push(Event { thread: index, wait_ns: 0, kind: thread_event });
        (index, 0)
    }

    fn push_event(&mut self, observation: &Observation, kind: EventKind) {
        let (thread, wait_ns) = self.thread_index(observation);
        self.events.push(Event { thread, wait_ns, kind });
    }

    fn space(&mut self, observation: &Observation) -> &mut MappedSpace {
        let process = self.processes.get_mut(&observation.process).expect("it was looked for");
        Rc::make_mut(&mut process.space)
    }

    fn on_action(&mut self, observation: &Observation) {
        match &observation.action {
            Action::Start { .. } => {}
            Action::Open { number, file } => self.on_open(observation, *number, file),
            Action::Map { open, address, length, offset_bytes, protection, flags } => {
                let Some(OpenDescription { index: open, .. }) = self.opens.get(open).copied()
                else {
                    self.unknown += 1;
                    return;
                };
                let (offset_bytes, protection, flags) = (*offset_bytes, *protection, *flags);
                let part =
                    MappedPart { offset_bytes, open, protection, flags, ..MappedPart::default() };
                self.add_mapping(observation, *address, *length, &part);
            }
            Action::Unmap { address, length } => self.remove_range(observation, *address, *length),
            Action::Move { from, to } => self.move_range(observation, *from, *to),
            &Action::Protect { address, length, protection } => {
                self.each_part(observation, address, length, |mapping, pages| EventKind::Protect {
                    mapping,
                    pages,
                    protection,
                });
            }
            &Action::Madvise { address, length, advice } => {
                self.each_part(observation, address, length, |mapping, pages| EventKind::Madvise {
                    mapping,
                    pages,
                    advice,
                });
            }
            &Action::Unseen { address, length } => {
                self.each_part(observation, address, length, |mapping, pages| EventKind::Unseen {
                    mapping,
                    pages,
                });
            }
            Action::Touch { address, is_write } => {
                let (page_bytes, is_write) = (self.page_bytes, *is_write);
                if let Some((mapping, page)) = self.space(observation).page_at(*address, page_bytes)
                    && self.touches.accepts(observation.thread, (mapping, page, is_write))
                {
                    self.push_event(observation, EventKind::Touch { mapping, page, is_write });
                }
            }
            Action::Read { open, offset_bytes, length } => {
                let (offset_bytes, length_bytes) = (*offset_bytes, *length);
                self.on_open_file(observation, *open, |open| EventKind::Read {
                    open,
                    offset_bytes,
                    length_bytes,
                });
            }
            Action::Fadvise { open, offset_bytes, length, advice } => {
                let (offset_bytes, length_bytes, advice) = (*offset_bytes, *length, *advice);
                self.on_open_file(observation, *open, |open| EventKind::Fadvise {
                    open,
                    offset_bytes,
                    length_bytes,
                    advice,
                });
            }
            Action::Readahead { open, offset_bytes, length } => {
                let (offset_bytes, length_bytes) = (*offset_bytes, *length);
                self.on_open_file(observation, *open, |open| EventKind::Readahead {
                    open,
                    offset_bytes,
                    length_bytes,
                });
            }
            Action::Resize { file: ObservedFile { device, inode, size_bytes, .. } } => {
                if let Some(file) = self.files.get(&(*device, *inode)).copied() {
                    self.on_resize(observation, file, *size_bytes);
                }
            }
            Action::Cached { device, inode, ranges } => {
                let Some(file) = self.files.get(&(*device, *inode)).copied() else { return };
                let ranges = if ranges.is_empty() { &[[0, 0]] } else { ranges.as_slice() };
                self.events.extend(ranges.iter().map(|[first, pages]| {
                    let kind = EventKind::Cached { file, first: *first, pages: *pages };
                    Event { thread: 0, wait_ns: 0, kind }
                }));
            }
            &Action::Memory { anonymous_bytes, peak_bytes } => {
                let process = self.processes[&observation.process].index;
                let kind = EventKind::Memory { process, anonymous_bytes, peak_bytes };
                self.events.push(Event { thread: 0, wait_ns: 0, kind });
            }
            Action::Fork { fork } => {
                let space = self.processes[&observation.process].space.clone();
                self.forked.insert((observation.process.0, *fork), space);
            }
            Action::Exit => {
                let process = self.processes[&observation.process].index;
                self.push_event(observation, EventKind::Exit { process });
                self.processes.remove(&observation.process);
                self.exited.insert(observation.process);
                self.forked.retain(|(pid, _), _| *pid != observation.process.0);
            }
        }
    }

    fn on_open_file(
        &mut self,
        observation: &Observation,
        number: u64,
        make_kind: impl FnOnce(u32) -> EventKind,
    ) {
        match self.opens.get(&number).copied() {
            Some(OpenDescription { index }) => self.push_event(observation, make_kind(index)),
            None => self.unknown += 1,
        }
    }

    fn on_open(&mut self, observation: &Observation, number: u64, stored: &ObservedFile) {
        let ObservedFile { path, device, inode, size_bytes } = stored.clone();
        let known = self.files.get(&(device, inode)).copied();
        let file = known.unwrap_or_else(|| {
            let file = take_index(&mut self.counts.files);
            self.files.insert((device, inode), file);
            file
        });
        if known.is_none() {
            self.paths.push(path.clone().into_os_string());
            self.sizes.push(size_bytes);
            self.push_event(observation, EventKind::File { path, size_bytes, device, inode });
        } else {
            self.on_resize(observation, file, size_bytes);
        }
        let index = take_index(&mut self.counts.opens);
        self.opens.insert(number, OpenDescription { index });
        self.push_event(observation, EventKind::Open { file });
    }

    /// Records the size of a known file, if it has changed.
    fn on_resize(&mut self, observation: &Observation, file: u32, size_bytes: u64) {
        if std::mem::replace(&mut self.sizes[file as usize], size_bytes) != size_bytes {
            self.push_event(observation, EventKind::Truncate { file, size_bytes });
        }
    }

    /// Adds a mapping with the open file, offset, protection and flags of `part`.
    fn add_mapping(
        &mut self,
        observation: &Observation,
        address: u64,
        length: u64,
        part: &MappedPart,
    ) {
        let index = take_index(&mut self.counts.mappings);
        let mapped = MappedPart { address, length, index, first_page: 0, ..*part };
        self.push_event(
            observation,
            EventKind::Map {
                open: part.open,
                address,
                length_bytes: length,
                offset_bytes: part.offset_bytes,
                protection: part.protection,
                flags: part.flags,
            },
        );
        self.space(observation).add(mapped);
    }

    fn parts(
        &mut self,
        observation: &Observation,
        address: u64,
        length: u64,
    ) -> Vec<(u32, MappingPages)> {
        let page_bytes = self.page_bytes;
        self.space(observation).parts(address, length, page_bytes)
    }

    fn each_part(
        &mut self,
        observation: &Observation,
        address: u64,
        length: u64,
        make_kind: impl Fn(u32, MappingPages) -> EventKind,
    ) {
        for (mapping, pages) in self.parts(observation, address, length) {
            self.push_event(observation, make_kind(mapping, pages));
        }
    }

    fn remove_range(&mut self, observation: &Observation, address: u64, length: u64) {
        let parts = self.parts(observation, address, length);
        let page_bytes = self.page_bytes;
        let mut gone = HashSet::new();
        self.space(observation).remove(address, length, page_bytes, |mapping| {
            gone.insert(mapping);
        });
        for (mapping, pages) in parts {
            let is_whole = gone.contains(&mapping);
            self.push_event(
                observation,
                EventKind::Unmap { mapping, part: (!is_whole).then_some(pages) },
            );
        }
    }

    fn move_range(&mut self, observation: &Observation, from: (u64, u64), to: (u64, u64)) {
        // mremap(2) is mostly used on anonymous memory, which is not tracked.
        let Some(mapped) = self.space(observation).part_at(from.0).copied() else {
            self.remove_range(observation, to.0, to.1);
            return;
        };
        let is_whole = (mapped.address, mapped.length) == from && mapped.first_page == 0;
        if is_whole {
            let page_bytes = self.page_bytes;
            self.space(observation).remove(from.0, from.1, page_bytes, |_| ());
            self.remove_range(observation, to.0, to.1);
            let kind = EventKind::Move { mapping: mapped.index, to: to.0, length_bytes: to.1 };
            self.push_event(observation, kind);
            self.space(observation).add(MappedPart { address: to.0, length: to.1, ..mapped });
        } else {
            // A part that moves becomes a mapping of its own.
            let skipped = from.0 - mapped.address;
            let offset_bytes = mapped.offset_bytes + skipped;
            self.remove_range(observation, from.0, from.1);
            self.remove_range(observation, to.0, to.1);
            self.add_mapping(observation, to.0, to.1, &MappedPart { offset_bytes, ..mapped });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn add_action(assembly: &mut Assembly, process: ProcessImage, did: Action) -> Vec<EventKind> {
        let observation = Observation { process, thread: process.0, user_ns: 0, action: did };
        assembly.add(&observation).into_iter().map(|event| event.kind).collect()
    }

    fn begin(parent: u32, fork: u64) -> Action {
        Action::Start { parent, fork, program: "/p".into() }
    }

    fn open(number: u64) -> Action {
        let file = ObservedFile { path: "/a".into(), device: 1, inode: 2, size_bytes: 1 << 20 };
        Action::Open { number, file }
    }

    fn map(open: u64, first: u64, pages: u64, offset: u64) -> Action {
        Action::Map {
            open,
            address: first * PAGE,
            length: pages * PAGE,
            offset_bytes: offset * PAGE,
            protection: 1,
            flags: 2,
        }
    }

    fn unmap(first: u64, pages: u64) -> Action {
        Action::Unmap { address: first * PAGE, length: pages * PAGE }
    }

    fn touch(assembly: &mut Assembly, process: ProcessImage, page: u64) -> Option<(u32, u64)> {
        match add_action(
            assembly,
            process,
            Action::Touch { address: page * PAGE + 5, is_write: false },
        )
        .pop()
        {
            Some(EventKind::Touch { mapping, page, is_write: false }) => Some((mapping, page)),
            _ => None,
        }
    }

    /// A process maps 16 pages of a file at page 100 and forks. Then its mapping is cut and moved,
    /// while the child keeps the mapping as it was at the fork.
    #[test]
    fn addresses_become_pages_of_mappings() {
        let (parent, child) = ((7, 0), (8, 0));
        let mut assembly = Assembly::new(PAGE, false);
        let all = &mut assembly;
        assert_eq!(add_action(all, parent, begin(1, 0)).len(), 1);
        assert_eq!(add_action(all, parent, open(55)).len(), 3);
        // A second open file description of the same file.
        assert_eq!(add_action(all, parent, open(56)), [EventKind::Open { file: 0 }]);
        let mapped = add_action(all, parent, map(56, 100, 16, 4));
        assert!(matches!(&mapped[..], [EventKind::Map { open: 1, protection: 1, flags: 2, .. }]));
        assert_eq!(touch(all, parent, 101), Some((0, 1)));
        // No longer a first touch.
        assert_eq!(touch(all, parent, 101), None);
        assert_eq!(touch(all, parent, 116), None);
        assert_eq!(add_action(all, parent, Action::Fork { fork: 1 }), []);
        let part = Some(MappingPages { first: 4, pages: 2 });
        assert_eq!(add_action(all, parent, unmap(104, 2)), [EventKind::Unmap { mapping: 0, part }]);
        assert_eq!((touch(all, parent, 104), touch(all, parent, 106)), (None, Some((0, 6))));
        // The part after the hole moves and becomes a mapping of its own.
        let (from, to) = ((106 * PAGE, 10 * PAGE), (300 * PAGE, 10 * PAGE));
        let moved = add_action(all, parent, Action::Move { from, to });
        let [EventKind::Unmap { .. }, EventKind::Map { offset_bytes, .. }] = moved[..] else {
            panic!("{moved:?}");
        };
        assert_eq!(offset_bytes, 10 * PAGE);
        assert_eq!(touch(all, parent, 309), Some((1, 9)));
        // The child starts late, with all 16 pages.
        assert_eq!(add_action(all, child, begin(7, 1)).len(), 3);
        assert_eq!(touch(all, child, 105), Some((2, 5)));
        assert_eq!(
            add_action(all, child, unmap(0, 1000)),
            [EventKind::Unmap { mapping: 2, part: None }]
        );
        assert_eq!(assembly.unknown, 0);
        assert_eq!(add_action(&mut assembly, (9, 0), Action::Fork { fork: 0 }), []);
        assert_eq!(assembly.unknown, 1);
    }
}
