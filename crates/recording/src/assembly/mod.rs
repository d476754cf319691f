//! From what processes did to the events of a recording: addresses become mappings and pages,
//! numbers of open files become open files, and clocks become waits.

mod firsts;
mod space;
mod told;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use crate::event::{Event, Pages, What};
use firsts::Firsts;
use space::{Mapped, Space};

pub use told::{Did, Image, Stored, Told};

/// What is known of the processes that are recorded.
pub struct Assembly {
    page_bytes: u64,
    processes: HashMap<Image, Process>,
    /// The address spaces that forked processes have got, until they are seen.
    forked: HashMap<(u32, u64), Rc<Space>>,
    opens: HashMap<u64, Open>,
    files: HashMap<(u64, u64), u32>,
    /// The size of each file, as it was told last.
    sizes: Vec<u64>,
    counts: Counts,
    touches: Touches,
    events: Vec<Event>,
    /// Events that name what was not told before, as what had told it was lost.
    pub unknown: u64,
    /// The paths of all files.
    pub paths: Vec<OsString>,
    /// Processes that have ended.
    ended: HashSet<Image>,
}

/// Which touches go into the recording.
enum Touches {
    /// The first of each page: one that is mapped anew is told again.
    Firsts(Firsts),
    /// All but those that each thread repeats: its last mapping, page, and whether it wrote.
    Changes(HashMap<u32, (u32, u64, bool)>),
}

impl Touches {
    fn is_told(&mut self, thread: u32, touch: (u32, u64, bool)) -> bool {
        let (mapping, page, is_write) = touch;
        match self {
            Touches::Firsts(firsts) => firsts.is_first(mapping, page, is_write),
            Touches::Changes(last) => last.insert(thread, touch) != Some(touch),
        }
    }
}

/// How many of each kind there are so far: the index of the next.
#[derive(Default)]
struct Counts {
    processes: u32,
    threads: u32,
    files: u32,
    opens: u32,
    mappings: u32,
}

/// An open file description.
#[derive(Clone, Copy)]
struct Open {
    index: u32,
}

struct Process {
    index: u32,
    space: Rc<Space>,
    threads: HashMap<u32, Thread>,
}

#[derive(Clone, Copy)]
struct Thread {
    index: u32,
    user_ns: u64,
}

fn next(count: &mut u32) -> u32 {
    *count += 1;
    *count - 1
}

impl Assembly {
    /// An assembly of first touches, or of each change of page.
    pub fn new(page_bytes: u64, has_changes: bool) -> Assembly {
        Assembly {
            page_bytes,
            processes: HashMap::new(),
            forked: HashMap::new(),
            opens: HashMap::new(),
            files: HashMap::new(),
            sizes: Vec::new(),
            counts: Counts::default(),
            touches: if has_changes {
                Touches::Changes(HashMap::new())
            } else {
                Touches::Firsts(Firsts::default())
            },
            events: Vec::new(),
            unknown: 0,
            paths: Vec::new(),
            ended: HashSet::new(),
        }
    }

    /// Takes what was told next, and returns the events that it is.
    pub fn take(&mut self, told: &Told) -> Vec<Event> {
        if let Did::Begin { parent, fork, program } = &told.did {
            self.begin(told, *parent, *fork, program.clone());
        }
        if self.processes.contains_key(&told.process) {
            self.of_process(told);
        } else if !self.ended.contains(&told.process) {
            self.unknown += 1;
        }
        std::mem::take(&mut self.events)
    }

    fn begin(&mut self, told: &Told, parent: u32, fork: u64, program: PathBuf) {
        let index = next(&mut self.counts.processes);
        let inherited = self.forked.remove(&(parent, fork)).unwrap_or_default();
        let parents = self.processes.iter().filter(|((pid, _), _)| *pid == parent);
        let parent = parents.max_by_key(|((_, image), _)| *image).map(|(_, process)| process.index);
        self.events.push(Event {
            thread: 0,
            wait_ns: 0,
            what: What::Process { pid: told.process.0, parent, program },
        });
        let space = Rc::new(Space::default());
        self.processes.insert(told.process, Process { index, space, threads: HashMap::new() });
        // A child has mappings of its own, of the open files of its parent.
        for mapped in inherited.all() {
            self.map(told, mapped.address, mapped.length, mapped);
        }
    }

    /// The thread of an entry, which is told of where it is new, and its wait.
    fn thread(&mut self, told: &Told) -> (u32, u64) {
        let process = self.processes.get_mut(&told.process).expect("it was looked for");
        let user_ns = told.user_ns;
        if let Some(thread) = process.threads.get_mut(&told.thread) {
            let wait_ns = user_ns.saturating_sub(thread.user_ns);
            thread.user_ns = user_ns;
            return (thread.index, wait_ns);
        }
        let index = next(&mut self.counts.threads);
        process.threads.insert(told.thread, Thread { index, user_ns });
        let what = What::Thread { process: process.index, tid: told.thread };
        self.events.push(Event { thread: index, wait_ns: 0, what });
        (index, 0)
    }

    fn tell(&mut self, told: &Told, what: What) {
        let (thread, wait_ns) = self.thread(told);
        self.events.push(Event { thread, wait_ns, what });
    }

    fn space(&mut self, told: &Told) -> &mut Space {
        let process = self.processes.get_mut(&told.process).expect("it was looked for");
        Rc::make_mut(&mut process.space)
    }

    fn of_process(&mut self, told: &Told) {
        match &told.did {
            Did::Begin { .. } => {}
            Did::Open { number, file } => self.open(told, *number, file),
            Did::Map { open, address, length, offset_bytes, protection, flags } => {
                let Some(Open { index: open, .. }) = self.opens.get(open).copied() else {
                    self.unknown += 1;
                    return;
                };
                let (offset_bytes, protection, flags) = (*offset_bytes, *protection, *flags);
                let of = Mapped { offset_bytes, open, protection, flags, ..Mapped::default() };
                self.map(told, *address, *length, &of);
            }
            Did::Unmap { address, length } => self.unmap(told, *address, *length),
            Did::Move { from, to } => self.move_to(told, *from, *to),
            &Did::Protect { address, length, protection } => {
                self.each_part(told, address, length, |mapping, pages| What::Protect {
                    mapping,
                    pages,
                    protection,
                });
            }
            &Did::Madvise { address, length, advice } => {
                self.each_part(told, address, length, |mapping, pages| What::Madvise {
                    mapping,
                    pages,
                    advice,
                });
            }
            Did::Touch { address, is_write } => {
                let (page_bytes, is_write) = (self.page_bytes, *is_write);
                if let Some((mapping, page)) = self.space(told).page_at(*address, page_bytes)
                    && self.touches.is_told(told.thread, (mapping, page, is_write))
                {
                    self.tell(told, What::Touch { mapping, page, is_write });
                }
            }
            Did::Read { open, offset_bytes, length } => {
                let (offset_bytes, length_bytes) = (*offset_bytes, *length);
                self.of_open(told, *open, |open| What::Read { open, offset_bytes, length_bytes });
            }
            Did::Fadvise { open, offset_bytes, length, advice } => {
                let (offset_bytes, length_bytes, advice) = (*offset_bytes, *length, *advice);
                self.of_open(told, *open, |open| What::Fadvise {
                    open,
                    offset_bytes,
                    length_bytes,
                    advice,
                });
            }
            Did::Readahead { open, offset_bytes, length } => {
                let (offset_bytes, length_bytes) = (*offset_bytes, *length);
                self.of_open(told, *open, |open| What::Readahead {
                    open,
                    offset_bytes,
                    length_bytes,
                });
            }
            Did::Resize { file: Stored { device, inode, size_bytes, .. } } => {
                if let Some(file) = self.files.get(&(*device, *inode)).copied() {
                    self.resize(told, file, *size_bytes);
                }
            }
            Did::Fork { fork } => {
                let space = self.processes[&told.process].space.clone();
                self.forked.insert((told.process.0, *fork), space);
            }
            Did::End => {
                let process = self.processes[&told.process].index;
                self.tell(told, What::Exit { process });
                self.processes.remove(&told.process);
                self.ended.insert(told.process);
                self.forked.retain(|(pid, _), _| *pid != told.process.0);
            }
        }
    }

    fn of_open(&mut self, told: &Told, number: u64, what: impl FnOnce(u32) -> What) {
        match self.opens.get(&number).copied() {
            Some(Open { index }) => self.tell(told, what(index)),
            None => self.unknown += 1,
        }
    }

    fn open(&mut self, told: &Told, number: u64, stored: &Stored) {
        let Stored { path, device, inode, size_bytes } = stored.clone();
        let known = self.files.get(&(device, inode)).copied();
        let file = known.unwrap_or_else(|| {
            let file = next(&mut self.counts.files);
            self.files.insert((device, inode), file);
            file
        });
        if known.is_none() {
            self.paths.push(path.clone().into_os_string());
            self.sizes.push(size_bytes);
            self.tell(told, What::File { path, size_bytes, device, inode });
        } else {
            self.resize(told, file, size_bytes);
        }
        let index = next(&mut self.counts.opens);
        self.opens.insert(number, Open { index });
        self.tell(told, What::Open { file });
    }

    /// A file that is known has so many bytes now.
    fn resize(&mut self, told: &Told, file: u32, size_bytes: u64) {
        if std::mem::replace(&mut self.sizes[file as usize], size_bytes) != size_bytes {
            self.tell(told, What::Truncate { file, size_bytes });
        }
    }

    /// A mapping of the open file of `of`, and of the same kind, is made.
    fn map(&mut self, told: &Told, address: u64, length: u64, of: &Mapped) {
        let index = next(&mut self.counts.mappings);
        let mapped = Mapped { address, length, index, first_page: 0, ..*of };
        self.tell(
            told,
            What::Map {
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

    fn parts(&mut self, told: &Told, address: u64, length: u64) -> Vec<(u32, Pages)> {
        let page_bytes = self.page_bytes;
        self.space(told).parts(address, length, page_bytes)
    }

    fn each_part(
        &mut self,
        told: &Told,
        address: u64,
        length: u64,
        what: impl Fn(u32, Pages) -> What,
    ) {
        for (mapping, pages) in self.parts(told, address, length) {
            self.tell(told, what(mapping, pages));
        }
    }

    fn unmap(&mut self, told: &Told, address: u64, length: u64) {
        let parts = self.parts(told, address, length);
        let page_bytes = self.page_bytes;
        let mut gone = HashSet::new();
        self.space(told).remove(address, length, page_bytes, |mapping| {
            gone.insert(mapping);
        });
        for (mapping, pages) in parts {
            let is_whole = gone.contains(&mapping);
            self.tell(told, What::Unmap { mapping, part: (!is_whole).then_some(pages) });
        }
    }

    fn move_to(&mut self, told: &Told, from: (u64, u64), to: (u64, u64)) {
        // Most memory that moves is no file's.
        let Some(mapped) = self.space(told).at(from.0).copied() else {
            self.unmap(told, to.0, to.1);
            return;
        };
        let is_whole = (mapped.address, mapped.length) == from && mapped.first_page == 0;
        if is_whole {
            let page_bytes = self.page_bytes;
            self.space(told).remove(from.0, from.1, page_bytes, |_| ());
            self.unmap(told, to.0, to.1);
            let what = What::Move { mapping: mapped.index, to: to.0, length_bytes: to.1 };
            self.tell(told, what);
            self.space(told).add(Mapped { address: to.0, length: to.1, ..mapped });
        } else {
            // A part that moves is a mapping of its own from here on.
            let skipped = from.0 - mapped.address;
            let offset_bytes = mapped.offset_bytes + skipped;
            self.unmap(told, from.0, from.1);
            self.unmap(told, to.0, to.1);
            self.map(told, to.0, to.1, &Mapped { offset_bytes, ..mapped });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn of(assembly: &mut Assembly, process: Image, did: Did) -> Vec<What> {
        let told = Told { process, thread: process.0, user_ns: 0, did };
        assembly.take(&told).into_iter().map(|event| event.what).collect()
    }

    fn begin(parent: u32, fork: u64) -> Did {
        Did::Begin { parent, fork, program: "/p".into() }
    }

    fn open(number: u64) -> Did {
        let file = Stored { path: "/a".into(), device: 1, inode: 2, size_bytes: 1 << 20 };
        Did::Open { number, file }
    }

    fn map(open: u64, first: u64, pages: u64, offset: u64) -> Did {
        Did::Map {
            open,
            address: first * PAGE,
            length: pages * PAGE,
            offset_bytes: offset * PAGE,
            protection: 1,
            flags: 2,
        }
    }

    fn unmap(first: u64, pages: u64) -> Did {
        Did::Unmap { address: first * PAGE, length: pages * PAGE }
    }

    fn touch(assembly: &mut Assembly, process: Image, page: u64) -> Option<(u32, u64)> {
        match of(assembly, process, Did::Touch { address: page * PAGE + 5, is_write: false }).pop()
        {
            Some(What::Touch { mapping, page, is_write: false }) => Some((mapping, page)),
            _ => None,
        }
    }

    /// A process maps 16 pages of a file at page 100, and forks; then its mapping is cut and moved,
    /// and its child has what was there before.
    #[test]
    fn addresses_become_pages_of_mappings() {
        let (parent, child) = ((7, 0), (8, 0));
        let mut assembly = Assembly::new(PAGE, false);
        let all = &mut assembly;
        assert_eq!(of(all, parent, begin(1, 0)).len(), 1);
        assert_eq!(of(all, parent, open(55)).len(), 3);
        // A second open file of the same file.
        assert_eq!(of(all, parent, open(56)), [What::Open { file: 0 }]);
        let mapped = of(all, parent, map(56, 100, 16, 4));
        assert!(matches!(&mapped[..], [What::Map { open: 1, protection: 1, flags: 2, .. }]));
        assert_eq!(touch(all, parent, 101), Some((0, 1)));
        // It is no first touch any more.
        assert_eq!(touch(all, parent, 101), None);
        assert_eq!(touch(all, parent, 116), None);
        assert_eq!(of(all, parent, Did::Fork { fork: 1 }), []);
        let part = Some(Pages { first: 4, pages: 2 });
        assert_eq!(of(all, parent, unmap(104, 2)), [What::Unmap { mapping: 0, part }]);
        assert_eq!((touch(all, parent, 104), touch(all, parent, 106)), (None, Some((0, 6))));
        // What is after the hole moves, and is a mapping of its own.
        let (from, to) = ((106 * PAGE, 10 * PAGE), (300 * PAGE, 10 * PAGE));
        let moved = of(all, parent, Did::Move { from, to });
        let [What::Unmap { .. }, What::Map { offset_bytes, .. }] = moved[..] else {
            panic!("{moved:?}");
        };
        assert_eq!(offset_bytes, 10 * PAGE);
        assert_eq!(touch(all, parent, 309), Some((1, 9)));
        // The child begins late, with all 16 pages.
        assert_eq!(of(all, child, begin(7, 1)).len(), 3);
        assert_eq!(touch(all, child, 105), Some((2, 5)));
        assert_eq!(of(all, child, unmap(0, 1000)), [What::Unmap { mapping: 2, part: None }]);
        assert_eq!(assembly.unknown, 0);
        assert_eq!(of(&mut assembly, (9, 0), Did::Fork { fork: 0 }), []);
        assert_eq!(assembly.unknown, 1);
    }
}
