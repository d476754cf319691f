//! From the entries of tapes to the events of a recording: addresses become mappings and pages,
//! numbers of open files become open files, and clocks become waits.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::rc::Rc;

use filemap_control::layout::Reason;
use filemap_control::tape::Kind;
use filemap_recording::{Event, Pages, What};

use super::firsts::Firsts;
use super::space::{Mapped, Space};
use super::stacks::Stacks;
use super::tapes::{Image, Told};
use crate::symbols::{self, Identity};

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
    /// Where pages are told again that are mapped anew: those that were told.
    firsts: Option<Firsts>,
    events: Vec<Event>,
    /// Touches behind these, of which there may be too many to keep: a thread, and the pages of
    /// mappings in order.
    touches: (u32, bool, Vec<(u32, Pages)>),
    stacks: Stacks,
    /// Entries that name what was not told before, as what had told it was lost.
    pub unknown: u64,
    /// The paths of all files.
    pub paths: Vec<OsString>,
    /// Processes that have ended, or stopped to tell.
    ended: HashSet<Image>,
    /// The first of those that stopped to tell before their end, and why.
    pub stopped: Option<(u32, Reason)>,
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
    file: u32,
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
    /// PROT_ bits and MAP_ bits of its next mapping, and the number of who calls to make it.
    mode: (u32, u32, u32),
}

fn next(count: &mut u32) -> u32 {
    *count += 1;
    *count - 1
}

impl Assembly {
    /// An assembly of first touches. Those that are `repeated`, as each new entry in a page table
    /// is told, are left out.
    pub fn new(page_bytes: u64, repeated: bool) -> Assembly {
        Assembly {
            page_bytes,
            processes: HashMap::new(),
            forked: HashMap::new(),
            opens: HashMap::new(),
            files: HashMap::new(),
            sizes: Vec::new(),
            counts: Counts::default(),
            firsts: repeated.then(Firsts::default),
            events: Vec::new(),
            touches: (0, false, Vec::new()),
            stacks: Stacks::default(),
            unknown: 0,
            paths: Vec::new(),
            ended: HashSet::new(),
            stopped: None,
        }
    }

    /// Takes what was told next, and returns the events that it is: one after the other, as a call
    /// may have read any number of pages.
    pub fn take(&mut self, told: &Told) -> impl Iterator<Item = Event> + use<> {
        if told.entry.kind == Kind::Begin {
            self.begin(told);
        }
        if self.processes.contains_key(&told.process) {
            self.of_process(told);
        } else if !self.ended.contains(&told.process) {
            self.unknown += 1;
        }
        let (thread, is_write, parts) = std::mem::take(&mut self.touches);
        let touches = parts.into_iter().flat_map(move |(mapping, pages)| {
            (pages.first..pages.first + pages.pages).map(move |page| Event {
                thread,
                wait_ns: 0,
                what: What::Touch { mapping, page, is_write },
            })
        });
        std::mem::take(&mut self.events).into_iter().chain(touches)
    }

    fn begin(&mut self, told: &Told) {
        let [parent, fork, ..] = told.entry.values;
        let parent = u32::try_from(parent).unwrap_or(0);
        let index = next(&mut self.counts.processes);
        let inherited = self.forked.remove(&(parent, fork)).unwrap_or_default();
        let parents = self.processes.iter().filter(|((pid, _), _)| *pid == parent);
        let parent = parents.max_by_key(|((_, image), _)| *image).map(|(_, process)| process.index);
        let program = path_of(&told.text);
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
        let entry = &told.entry;
        let process = self.processes.get_mut(&told.process).expect("it was looked for");
        let user_ns = entry.user_ns;
        if let Some(thread) = process.threads.get_mut(&entry.thread) {
            let wait_ns = user_ns.saturating_sub(thread.user_ns);
            thread.user_ns = user_ns;
            return (thread.index, wait_ns);
        }
        let index = next(&mut self.counts.threads);
        process.threads.insert(entry.thread, Thread { index, user_ns, mode: (0, 0, 0) });
        let what = What::Thread { process: process.index, tid: entry.thread };
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
        let [a, b, c, d] = told.entry.values;
        match told.entry.kind {
            Kind::Text | Kind::Begin => {}
            Kind::Open => self.open(told),
            Kind::Mode => {
                self.thread(told);
                let stack = self.stacks.number(&told.text);
                let process = self.processes.get_mut(&told.process).expect("it was looked for");
                if let Some(thread) = process.threads.get_mut(&told.entry.thread) {
                    thread.mode = (a as u32, b as u32, stack);
                }
            }
            Kind::Module => {
                let process = self.processes[&told.process].index;
                let path = path_of(&told.text);
                let Identity { build_id, modified_ns } = symbols::identity(&path);
                let module = What::Module {
                    process,
                    path,
                    address: a,
                    length_bytes: b,
                    build_id,
                    modified_ns,
                };
                self.tell(told, module);
            }
            Kind::Map => self.new_mapping(told),
            Kind::Unmap => self.unmap(told, a, b),
            Kind::Move => self.move_to(told, (a, b), (c, d)),
            Kind::Protect => {
                self.each_part(told, a, b, |mapping, pages| What::Protect {
                    mapping,
                    pages,
                    protection: c as u32,
                });
            }
            Kind::Madvise => {
                self.each_part(told, a, b, |mapping, pages| What::Madvise {
                    mapping,
                    pages,
                    advice: c as u32,
                });
            }
            Kind::Touch => {
                let page_bytes = self.page_bytes;
                if let Some((mapping, page)) = self.space(told).page_at(a, page_bytes) {
                    let is_write = b != 0;
                    let is_first = |firsts: &mut Firsts| firsts.is_first(mapping, page, is_write);
                    if self.firsts.as_mut().is_none_or(is_first) {
                        self.tell(told, What::Touch { mapping, page, is_write });
                    }
                }
            }
            Kind::TouchByCall => {
                let is_write = c != 0;
                let mut parts = self.parts(told, a, b);
                // The time since what the thread did before is in the first of them.
                if let Some((mapping, pages)) = parts.first_mut() {
                    let (mapping, page) = (*mapping, pages.first);
                    (pages.first, pages.pages) = (page + 1, pages.pages - 1);
                    self.tell(told, What::Touch { mapping, page, is_write });
                    self.touches = (self.thread(told).0, is_write, parts);
                }
            }
            Kind::Read => {
                self.of_open(told, |open| What::Read { open, offset_bytes: b, length_bytes: c })
            }
            Kind::Fadvise => self.of_open(told, |open| What::Fadvise {
                open,
                offset_bytes: b,
                length_bytes: c,
                advice: d as u32,
            }),
            Kind::Readahead => self.of_open(told, |open| What::Readahead {
                open,
                offset_bytes: b,
                length_bytes: c,
            }),
            Kind::Size => self.resize(told),
            Kind::Fork => {
                let space = self.processes[&told.process].space.clone();
                self.forked.insert((told.process.0, a), space);
            }
            Kind::End => {
                let process = self.processes[&told.process].index;
                self.tell(told, What::Exit { process });
                self.processes.remove(&told.process);
                self.ended.insert(told.process);
                let reason = Reason::of(a).filter(|reason| *reason != Reason::None);
                self.stopped = self.stopped.or(reason.map(|reason| (told.process.0, reason)));
                self.forked.retain(|(pid, _), _| *pid != told.process.0);
            }
        }
    }

    fn open(&mut self, told: &Told) {
        let [number, device, inode, size_bytes] = told.entry.values;
        let known = self.files.get(&(device, inode)).copied();
        let file = known.unwrap_or_else(|| {
            let file = next(&mut self.counts.files);
            self.files.insert((device, inode), file);
            file
        });
        if known.is_none() {
            let path = path_of(&told.text);
            self.paths.push(path.clone().into_os_string());
            self.sizes.push(size_bytes);
            self.tell(told, What::File { path, size_bytes, device, inode });
        }
        let open = next(&mut self.counts.opens);
        self.opens.insert(number, Open { index: open, file });
        self.tell(told, What::Open { file });
    }

    /// A file has another size. Each descriptor of it tells that.
    fn resize(&mut self, told: &Told) {
        let [number, size_bytes, ..] = told.entry.values;
        let Some(Open { file, .. }) = self.opens.get(&number).copied() else {
            self.unknown += 1;
            return;
        };
        let known = &mut self.sizes[file as usize];
        if std::mem::replace(known, size_bytes) != size_bytes {
            self.tell(told, What::Truncate { file, size_bytes });
        }
    }

    fn of_open(&mut self, told: &Told, what: impl FnOnce(u32) -> What) {
        match self.opens.get(&told.entry.values[0]).copied() {
            Some(open) => self.tell(told, what(open.index)),
            None => self.unknown += 1,
        }
    }

    fn new_mapping(&mut self, told: &Told) {
        let [address, length, offset_bytes, number] = told.entry.values;
        let Some(Open { index: open, .. }) = self.opens.get(&number).copied() else {
            self.unknown += 1;
            return;
        };
        let process = &self.processes[&told.process];
        let thread = process.threads.get(&told.entry.thread);
        let (protection, flags, stack) = thread.map_or((0, 0, 0), |thread| thread.mode);
        let of = Mapped {
            address,
            length,
            offset_bytes,
            open,
            protection,
            flags,
            stack,
            ..Mapped::default()
        };
        self.map(told, address, length, &of);
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
                callers: self.stacks.callers(of.stack),
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

fn path_of(text: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(text.to_vec()))
}

#[cfg(test)]
mod tests {
    use filemap_control::tape::Entry;

    use super::*;

    const PAGE: u64 = 4096;

    fn told(process: Image, kind: Kind, values: [u64; 4]) -> Told {
        let (thread, user_ns) = (process.0, values[0] % 1000);
        let entry = Entry { kind, thread, time_ns: 0, user_ns, values };
        Told { process, entry, text: b"/a".to_vec() }
    }

    fn of(assembly: &mut Assembly, process: Image, kind: Kind, values: [u64; 4]) -> Vec<What> {
        assembly.take(&told(process, kind, values)).map(|event| event.what).collect()
    }

    /// A mapping has those who called before it, and so has that of a child; those of another
    /// thread do not count.
    #[test]
    fn callers_are_those_of_the_mapping() {
        let mut assembly = Assembly::new(PAGE, false);
        of(&mut assembly, (7, 0), Kind::Begin, [1, 0, 0, 0]);
        of(&mut assembly, (7, 0), Kind::Open, [55, 1, 2, 1 << 20]);
        for callers in [&[0x1234_u64, 0x5678][..], &[]] {
            let text = callers.iter().flat_map(|address| address.to_ne_bytes()).collect();
            assembly.take(&Told { text, ..told((7, 0), Kind::Mode, [1, 2, 0, 0]) }).for_each(drop);
            let other = Entry { thread: 99, ..told((7, 0), Kind::Mode, [3, 4, 0, 0]).entry };
            assembly
                .take(&Told { entry: other, ..told((7, 0), Kind::Mode, [0; 4]) })
                .for_each(drop);
            let mapped = of(&mut assembly, (7, 0), Kind::Map, [100 * PAGE, PAGE, 0, 55]);
            let [What::Map { protection: 1, flags: 2, callers: found, .. }] = &mapped[..] else {
                panic!("{mapped:?}");
            };
            assert_eq!(found, callers);
            of(&mut assembly, (7, 0), Kind::Fork, [1, 0, 0, 0]);
            let pid = 8 + callers.len() as u32;
            let child = of(&mut assembly, (pid, 0), Kind::Begin, [7, 1, 0, 0]);
            let is_so =
                |what: &What| matches!(what, What::Map { callers: of, .. } if of == callers);
            assert!(child.iter().any(is_so), "{child:?}");
        }
    }

    fn touch(assembly: &mut Assembly, process: Image, page: u64) -> Option<(u32, u64)> {
        match of(assembly, process, Kind::Touch, [page * PAGE + 5, 0, 0, 0]).pop() {
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
        assert_eq!(of(all, parent, Kind::Begin, [1, 0, 0, 0]).len(), 1);
        assert_eq!(of(all, parent, Kind::Open, [55, 1, 2, 1 << 20]).len(), 3);
        // A second open file of the same file.
        assert_eq!(of(all, parent, Kind::Open, [56, 1, 2, 1 << 20]), [What::Open { file: 0 }]);
        assert_eq!(of(all, parent, Kind::Mode, [1, 2, 0, 0]), []);
        let mapped = of(all, parent, Kind::Map, [100 * PAGE, 16 * PAGE, 4 * PAGE, 56]);
        assert!(matches!(&mapped[..], [What::Map { open: 1, protection: 1, flags: 2, .. }]));
        assert_eq!(touch(all, parent, 101), Some((0, 1)));
        assert_eq!(touch(all, parent, 116), None);
        // A call that read 5 bytes more than 3 pages, in two mappings.
        let other = [116 * PAGE, 2 * PAGE, 0, 55];
        assert_eq!(of(all, parent, Kind::Map, other).len(), 1);
        let by_call = of(all, parent, Kind::TouchByCall, [114 * PAGE, 3 * PAGE + 5, 0, 0]);
        let pages = [(0, 14), (0, 15), (1, 0), (1, 1)];
        let touches = pages.map(|(mapping, page)| What::Touch { mapping, page, is_write: false });
        assert_eq!(by_call, touches);
        assert_eq!(of(all, parent, Kind::Unmap, [116 * PAGE, 2 * PAGE, 0, 0]).len(), 1);
        assert_eq!(of(all, parent, Kind::Fork, [1, 0, 0, 0]), []);
        let unmapped = of(all, parent, Kind::Unmap, [104 * PAGE, 2 * PAGE, 0, 0]);
        let part = Some(Pages { first: 4, pages: 2 });
        assert_eq!(unmapped, [What::Unmap { mapping: 0, part }]);
        assert_eq!((touch(all, parent, 104), touch(all, parent, 106)), (None, Some((0, 6))));
        // What is behind the hole moves, and is a mapping of its own.
        let moved = of(all, parent, Kind::Move, [106 * PAGE, 10 * PAGE, 300 * PAGE, 10 * PAGE]);
        let [What::Unmap { .. }, What::Map { offset_bytes, .. }] = moved[..] else {
            panic!("{moved:?}");
        };
        assert_eq!(offset_bytes, 10 * PAGE);
        assert_eq!(touch(all, parent, 309), Some((2, 9)));
        // The child begins late, with all 16 pages.
        assert_eq!(of(all, child, Kind::Begin, [7, 1, 0, 0]).len(), 3);
        assert_eq!(touch(all, child, 105), Some((3, 5)));
        assert_eq!(
            of(all, child, Kind::Unmap, [0, 1000 * PAGE, 0, 0]),
            [What::Unmap { mapping: 3, part: None }]
        );
        assert_eq!(assembly.unknown, 0);
        assert_eq!(of(&mut assembly, (9, 0), Kind::Touch, [0; 4]), []);
        assert_eq!(assembly.unknown, 1);
    }
}
