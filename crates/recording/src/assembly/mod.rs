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
    pub fn add(&mut self, told: &Observation) -> Vec<Event> {
        if let Action::Start { parent, fork, program } = &told.action {
            self.on_start(told, *parent, *fork, program.clone());
        }
        if self.processes.contains_key(&told.process) {
            self.on_action(told);
        } else if !self.exited.contains(&told.process) {
            self.unknown += 1;
        }
        std::mem::take(&mut self.events)
    }

    fn on_start(&mut self, told: &Observation, parent: u32, fork: u64, program: PathBuf) {
        let index = take_index(&mut self.counts.processes);
        let inherited = self.forked.remove(&(parent, fork)).unwrap_or_default();
        let parents = self.processes.iter().filter(|((pid, _), _)| *pid == parent);
        let parent = parents.max_by_key(|((_, image), _)| *image).map(|(_, process)| process.index);
        self.events.push(Event {
            thread: 0,
            wait_ns: 0,
            kind: EventKind::Process { pid: told.process.0, parent, program },
        });
        let space = Rc::new(MappedSpace::default());
        self.processes
            .insert(told.process, AssembledProcess { index, space, threads: HashMap::new() });
        // A child's mappings are mappings of their own in the recording; they refer to the open
        // files of the parent.
        for mapped in inherited.all() {
            self.add_mapping(told, mapped.address, mapped.length, mapped);
        }
    }

    /// The index of the observed thread, introduced by an event if it is new, and its user time
    /// since its last event.
    fn thread_index(&mut self, told: &Observation) -> (u32, u64) {
        let process = self.processes.get_mut(&told.process).expect("it was looked for");
        let user_ns = told.user_ns;
        if let Some(thread) = process.threads.get_mut(&told.thread) {
            let wait_ns = user_ns.saturating_sub(thread.user_ns);
            thread.user_ns = user_ns;
            return (thread.index, wait_ns);
        }
        let index = take_index(&mut self.counts.threads);
        process.threads.insert(told.thread, AssembledThread { index, user_ns });
        let what = EventKind::Thread { process: process.index, tid: told.thread };
        self.events.push(Event { thread: index, wait_ns: 0, kind: what });
        (index, 0)
    }

    fn push_event(&mut self, told: &Observation, what: EventKind) {
        let (thread, wait_ns) = self.thread_index(told);
        self.events.push(Event { thread, wait_ns, kind: what });
    }

    fn space(&mut self, told: &Observation) -> &mut MappedSpace {
        let process = self.processes.get_mut(&told.process).expect("it was looked for");
        Rc::make_mut(&mut process.space)
    }

    fn on_action(&mut self, told: &Observation) {
        match &told.action {
            Action::Start { .. } => {}
            Action::Open { number, file } => self.on_open(told, *number, file),
            Action::Map { open, address, length, offset_bytes, protection, flags } => {
                let Some(OpenDescription { index: open, .. }) = self.opens.get(open).copied()
                else {
                    self.unknown += 1;
                    return;
                };
                let (offset_bytes, protection, flags) = (*offset_bytes, *protection, *flags);
                let of =
                    MappedPart { offset_bytes, open, protection, flags, ..MappedPart::default() };
                self.add_mapping(told, *address, *length, &of);
            }
            Action::Unmap { address, length } => self.remove_range(told, *address, *length),
            Action::Move { from, to } => self.move_range(told, *from, *to),
            &Action::Protect { address, length, protection } => {
                self.each_part(told, address, length, |mapping, pages| EventKind::Protect {
                    mapping,
                    pages,
                    protection,
                });
            }
            &Action::Madvise { address, length, advice } => {
                self.each_part(told, address, length, |mapping, pages| EventKind::Madvise {
                    mapping,
                    pages,
                    advice,
                });
            }
            Action::Touch { address, is_write } => {
                let (page_bytes, is_write) = (self.page_bytes, *is_write);
                if let Some((mapping, page)) = self.space(told).page_at(*address, page_bytes)
                    && self.touches.accepts(told.thread, (mapping, page, is_write))
                {
                    self.push_event(told, EventKind::Touch { mapping, page, is_write });
                }
            }
            Action::Read { open, offset_bytes, length } => {
                let (offset_bytes, length_bytes) = (*offset_bytes, *length);
                self.on_open_file(told, *open, |open| EventKind::Read {
                    open,
                    offset_bytes,
                    length_bytes,
                });
            }
            Action::Fadvise { open, offset_bytes, length, advice } => {
                let (offset_bytes, length_bytes, advice) = (*offset_bytes, *length, *advice);
                self.on_open_file(told, *open, |open| EventKind::Fadvise {
                    open,
                    offset_bytes,
                    length_bytes,
                    advice,
                });
            }
            Action::Readahead { open, offset_bytes, length } => {
                let (offset_bytes, length_bytes) = (*offset_bytes, *length);
                self.on_open_file(told, *open, |open| EventKind::Readahead {
                    open,
                    offset_bytes,
                    length_bytes,
                });
            }
            Action::Resize { file: ObservedFile { device, inode, size_bytes, .. } } => {
                if let Some(file) = self.files.get(&(*device, *inode)).copied() {
                    self.on_resize(told, file, *size_bytes);
                }
            }
            Action::Fork { fork } => {
                let space = self.processes[&told.process].space.clone();
                self.forked.insert((told.process.0, *fork), space);
            }
            Action::Exit => {
                let process = self.processes[&told.process].index;
                self.push_event(told, EventKind::Exit { process });
                self.processes.remove(&told.process);
                self.exited.insert(told.process);
                self.forked.retain(|(pid, _), _| *pid != told.process.0);
            }
        }
    }

    fn on_open_file(
        &mut self,
        told: &Observation,
        number: u64,
        what: impl FnOnce(u32) -> EventKind,
    ) {
        match self.opens.get(&number).copied() {
            Some(OpenDescription { index }) => self.push_event(told, what(index)),
            None => self.unknown += 1,
        }
    }

    fn on_open(&mut self, told: &Observation, number: u64, stored: &ObservedFile) {
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
            self.push_event(told, EventKind::File { path, size_bytes, device, inode });
        } else {
            self.on_resize(told, file, size_bytes);
        }
        let index = take_index(&mut self.counts.opens);
        self.opens.insert(number, OpenDescription { index });
        self.push_event(told, EventKind::Open { file });
    }

    /// Records the size of a known file, if it has changed.
    fn on_resize(&mut self, told: &Observation, file: u32, size_bytes: u64) {
        if std::mem::replace(&mut self.sizes[file as usize], size_bytes) != size_bytes {
            self.push_event(told, EventKind::Truncate { file, size_bytes });
        }
    }

    /// Adds a mapping with the open file, offset, protection and flags of `of`.
    fn add_mapping(&mut self, told: &Observation, address: u64, length: u64, of: &MappedPart) {
        let index = take_index(&mut self.counts.mappings);
        let mapped = MappedPart { address, length, index, first_page: 0, ..*of };
        self.push_event(
            told,
            EventKind::Map {
                open: of.open,
                address,
                length_bytes: length,
                offset_bytes: of.offset_bytes,
                protection: of.protection,
                flags: of.flags,
                callers: Vec::new(),
            },
        );
        self.space(told).add(mapped);
    }

    fn parts(&mut self, told: &Observation, address: u64, length: u64) -> Vec<(u32, MappingPages)> {
        let page_bytes = self.page_bytes;
        self.space(told).parts(address, length, page_bytes)
    }

    fn each_part(
        &mut self,
        told: &Observation,
        address: u64,
        length: u64,
        what: impl Fn(u32, MappingPages) -> EventKind,
    ) {
        for (mapping, pages) in self.parts(told, address, length) {
            self.push_event(told, what(mapping, pages));
        }
    }

    fn remove_range(&mut self, told: &Observation, address: u64, length: u64) {
        let parts = self.parts(told, address, length);
        let page_bytes = self.page_bytes;
        let mut gone = HashSet::new();
        self.space(told).remove(address, length, page_bytes, |mapping| {
            gone.insert(mapping);
        });
        for (mapping, pages) in parts {
            let is_whole = gone.contains(&mapping);
            self.push_event(told, EventKind::Unmap { mapping, part: (!is_whole).then_some(pages) });
        }
    }

    fn move_range(&mut self, told: &Observation, from: (u64, u64), to: (u64, u64)) {
        // mremap(2) is mostly used on anonymous memory, which is not tracked.
        let Some(mapped) = self.space(told).part_at(from.0).copied() else {
            self.remove_range(told, to.0, to.1);
            return;
        };
        let is_whole = (mapped.address, mapped.length) == from && mapped.first_page == 0;
        if is_whole {
            let page_bytes = self.page_bytes;
            self.space(told).remove(from.0, from.1, page_bytes, |_| ());
            self.remove_range(told, to.0, to.1);
            let what = EventKind::Move { mapping: mapped.index, to: to.0, length_bytes: to.1 };
            self.push_event(told, what);
            self.space(told).add(MappedPart { address: to.0, length: to.1, ..mapped });
        } else {
            // A part that moves becomes a mapping of its own.
            let skipped = from.0 - mapped.address;
            let offset_bytes = mapped.offset_bytes + skipped;
            self.remove_range(told, from.0, from.1);
            self.remove_range(told, to.0, to.1);
            self.add_mapping(told, to.0, to.1, &MappedPart { offset_bytes, ..mapped });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn add_action(assembly: &mut Assembly, process: ProcessImage, did: Action) -> Vec<EventKind> {
        let told = Observation { process, thread: process.0, user_ns: 0, action: did };
        assembly.add(&told).into_iter().map(|event| event.kind).collect()
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
