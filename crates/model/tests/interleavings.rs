//! Every interleaving of a few faults, one writer, and one who evicts: the locks of a fault.
//!
//! A scene is played from the beginning for every order in which its actors can take their steps.
//! Where orders lead to the same state, what follows is the same, and is played once.

use std::collections::HashMap;

use filemap_core::address::entries::{Layer, MappedFile};
use filemap_core::address::mapping::Mapping;
use filemap_core::address::page_table::PageTables;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::address::vma::{Advice, Vma};
use filemap_core::cache::{FileCache, FolioRun};
use filemap_core::decision::Lock;
use filemap_core::fault::{Access, Fault, Step, View};
use filemap_core::lru::lists::{Lists, Scan};
use filemap_core::page_cache::PageCache;
use filemap_core::plain::PlainCache;
use filemap_core::readahead::layout::Layout;
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::series::{Series, Switch};
use filemap_core::units::{FileId, Order, PageCount, PageIndex, Vpn};
use filemap_model::thrash::mmap_lock::{Manner, MmapLock, Woken};
use filemap_model::thrash::vma_lock::VmaLocks;

const FILE_PAGES: u64 = 4;

/// What somebody does.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// A fault on page 0 through a VMA.
    Fault(usize),
    /// `mprotect(2)` of a VMA.
    Protect(usize),
    /// Evicts what can be.
    Evict,
}

#[derive(Debug)]
struct Actor {
    part: Part,
    fault: Option<Fault>,
    held: Option<Lock>,
    asked: Option<Step>,
    stage: u32,
    is_waiting: bool,
    is_done: bool,
}

struct Scene {
    limits: Limits,
    lock: MmapLock,
    vmas: VmaLocks,
    vma_writer: Option<usize>,
    cache: PlainCache,
    mappings: ReverseMap,
    ra: [ReadaheadState; 2],
    tables: PageTables,
    actors: Vec<Actor>,
    /// Misses of tries that kept their lock.
    misses_under_lock: u32,
    refused: u32,
}

fn file(vma: usize) -> FileId {
    FileId::new(vma as u32)
}

fn vma(number: usize) -> Vma {
    Vma {
        start: Vpn(512 * number as u64),
        pgoff: PageIndex(0),
        pages: PageCount(FILE_PAGES),
        advice: Advice::NORMAL,
        executable: false,
    }
}

impl Scene {
    fn new(parts: &[Part], series: Series) -> Scene {
        let actor = |&part: &Part| Actor {
            part,
            fault: match part {
                At(_) => Some(Fault::new(PageIndex(0), Access::Read)),
                _ => None,
            },
            held: None,
            asked: None,
            stage: 0,
            is_waiting: false,
            is_done: false,
        };
        let mut mappings = ReverseMap::new(2);
        for number in 0..2 {
            mappings.of_mut(file(number)).insert(Mapping::new(vma(number), None));
        }
        Scene {
            limits: Limits {
                rules: Rules::new(Kernel::V6_12, series),
                arch: Arch::new(Family::X86_64, 4096).unwrap(),
                ra_pages: PageCount(4),
                io_pages: PageCount(4),
                fault_around: PageCount(1),
                max_folio: None,
                file_pages: PageCount(FILE_PAGES),
            },
            lock: MmapLock::new(Manner::KERNEL),
            vmas: VmaLocks::new(2),
            vma_writer: None,
            cache: PlainCache::new(None),
            mappings,
            ra: [ReadaheadState::NEW; 2],
            tables: PageTables::default(),
            actors: parts.iter().map(actor).collect(),
            misses_under_lock: 0,
            refused: 0,
        }
    }

    /// All that what follows depends on, and what was counted.
    fn state(&self) -> String {
        let Scene { limits: _, lock, vmas, vma_writer, cache, mappings, ra, tables, .. } = self;
        let Scene { actors, misses_under_lock, refused, .. } = self;
        let shared = (lock, vmas, vma_writer, cache, mappings, ra, tables);
        format!("{shared:?} {:?}", (actors, misses_under_lock, refused))
    }

    fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        let is_ready = |(_, actor): &(usize, &Actor)| !actor.is_waiting && !actor.is_done;
        self.actors.iter().enumerate().filter(is_ready).map(|(number, _)| number)
    }

    fn step(&mut self, number: usize) {
        match self.actors[number].part {
            At(vma) => self.step_fault(number, vma),
            Protect(vma) => self.step_writer(number, vma),
            Evict => {
                self.cache.shrink(Scan::until(PageCount(100)), &self.mappings, &mut ());
                self.cache.shrink(Scan::until(PageCount(100)), &self.mappings, &mut ());
                self.actors[number].is_done = true;
            }
        }
        self.lock.check();
        let to_read = |actor: &&Actor| actor.held == Some(Lock::Mmap);
        let readers = self.actors.iter().filter(to_read).count();
        assert_eq!(self.lock.readers() as usize, readers);
        assert!(self.lock.writer().is_none() || readers == 0);
    }

    fn wake(&mut self, woken: Vec<Woken>) {
        for Woken { task, has_lock } in woken {
            self.actors[task].is_waiting = false;
            if has_lock {
                self.actors[task].held = Some(Lock::Mmap);
            }
        }
    }

    fn step_writer(&mut self, number: usize, vma: usize) {
        let stage = self.actors[number].stage;
        let mut woken = Vec::new();
        match stage {
            0 | 1 => {
                let has = match stage {
                    0 => self.lock.write(number, 0),
                    _ => self.lock.write_again(number, 0),
                };
                self.actors[number].stage = if has { 2 } else { 1 };
                self.actors[number].is_waiting = !has;
            }
            2 => {
                self.actors[number].stage = 3;
                if !self.vmas.mark(vma) {
                    self.vma_writer = Some(number);
                    self.actors[number].is_waiting = true;
                }
            }
            _ => {
                assert_eq!(self.vmas.readers(vma), 0, "no fault is inside of what is changed");
                self.vmas.end_write();
                self.lock.release_write(number, &mut woken);
                self.actors[number].is_done = true;
            }
        }
        self.wake(woken);
    }

    fn step_fault(&mut self, number: usize, of: usize) {
        let step = match self.actors[number].asked.take() {
            Some(step) => step,
            None => self.next_step(number, of),
        };
        match step {
            Step::Lock(Lock::Vma) => {
                if self.vmas.read(of) {
                    self.actors[number].held = Some(Lock::Vma);
                } else {
                    self.refused += 1;
                    self.actors[number].fault.as_mut().unwrap().refused();
                }
            }
            Step::Lock(Lock::Mmap) if self.actors[number].held.is_some() => {}
            Step::Lock(Lock::Mmap) => {
                let mut woken = Vec::new();
                if self.lock.read(number, 0, &mut woken) {
                    self.actors[number].held = Some(Lock::Mmap);
                } else {
                    self.actors[number].asked = Some(step);
                    self.actors[number].is_waiting = true;
                }
                self.wake(woken);
            }
            Step::Unlock => self.unlock(number, of),
            Step::Read(window) => {
                self.misses_under_lock += u32::from(self.actors[number].held.is_some());
                let ra = &mut self.ra[of];
                let mut layout = Layout::new(window, &self.limits, ra, &mut ());
                loop {
                    let next = layout.next(&self.cache.file(file(of)), &mut ());
                    let Some(run) = next else { break };
                    self.cache.add(file(of), run);
                    self.cache.unlock(file(of), run.start, run.pages());
                }
            }
            // What was evicted as soon as it was read is read by itself, and waited for.
            Step::ReadPage(start) => {
                let run = FolioRun { start, order: Order(0), folios: 1, marked: None };
                self.cache.add(file(of), run);
            }
            Step::Wait(index) => self.cache.unlock(file(of), index, PageCount(1)),
            Step::Done(_) => {
                self.unlock(number, of);
                let mut pages = self.cache.mapped(file(of), Layer::FIRST);
                assert!(pages.folio(PageIndex(0)).is_some(), "it is served with its page");
                assert!(pages.touch(PageIndex(0)), "which is mapped");
                self.actors[number].is_done = true;
            }
        }
    }

    fn next_step(&mut self, number: usize, of: usize) -> Step {
        self.actors[number].fault.as_mut().unwrap().step(&mut View {
            limits: &self.limits,
            vma: &vma(of),
            ra: &mut self.ra[of],
            tables: &mut self.tables,
            cache: &mut self.cache.mapped(file(of), Layer::FIRST),
            log: &mut (),
        })
    }

    fn unlock(&mut self, number: usize, of: usize) {
        let mut woken = Vec::new();
        match self.actors[number].held.take().expect("it has a lock") {
            Lock::Mmap => self.lock.release_read(&mut woken),
            Lock::Vma => {
                if self.vmas.release(of)
                    && let Some(writer) = self.vma_writer.take()
                {
                    self.actors[writer].is_waiting = false;
                }
            }
        }
        self.wake(woken);
    }
}

/// What all interleavings of a scene came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    interleavings: u64,
    /// Those in which a retry missed and kept its lock, and in which a VMA's lock was refused.
    with_miss_under_lock: u64,
    with_refusal: u64,
    /// Most tries of a fault.
    tries: u32,
}

impl Seen {
    /// Of a scene in which nobody has a step left.
    fn at_the_end(scene: &Scene, order: &[usize]) -> Seen {
        let all_done = scene.actors.iter().all(|actor| actor.is_done);
        assert!(all_done, "nobody waits for ever: {:?} in order {order:?}", scene.actors);
        assert!(scene.lock.readers() == 0 && scene.lock.writer().is_none());
        assert!((0..2).all(|vma| scene.vmas.readers(vma) == 0));
        let tries = scene.actors.iter().filter_map(|actor| Some(actor.fault.as_ref()?.tries()));
        Seen {
            interleavings: 1,
            with_miss_under_lock: u64::from(scene.misses_under_lock > 0),
            with_refusal: u64::from(scene.refused > 0),
            tries: tries.max().unwrap_or(0),
        }
    }

    fn add(&mut self, other: Seen) {
        self.interleavings += other.interleavings;
        self.with_miss_under_lock += other.with_miss_under_lock;
        self.with_refusal += other.with_refusal;
        self.tries = self.tries.max(other.tries);
    }
}

/// All orders of the steps of `parts`.
struct Orders<'a> {
    parts: &'a [Part],
    series: Series,
    /// What follows from each state that was met; `None` plays every order to its end.
    known: Option<HashMap<String, Seen>>,
}

impl<'a> Orders<'a> {
    fn new(parts: &'a [Part], switches: &[Switch]) -> Orders<'a> {
        let series = switches.iter().fold(Series::BASELINE, |all, switch| all.with(*switch));
        Orders { parts, series, known: Some(HashMap::new()) }
    }

    /// What all orders come to that begin with `order`: the actor of each step.
    fn play(&mut self, order: &mut Vec<usize>) -> Seen {
        let mut scene = Scene::new(self.parts, self.series);
        order.iter().for_each(|&number| scene.step(number));
        let state = self.known.is_some().then(|| scene.state());
        if let (Some(known), Some(state)) = (&self.known, &state)
            && let Some(seen) = known.get(state)
        {
            return *seen;
        }
        let ready: Vec<usize> = scene.ready().collect();
        let mut seen = Seen::default();
        if ready.is_empty() {
            seen = Seen::at_the_end(&scene, order);
        }
        for number in ready {
            order.push(number);
            seen.add(self.play(order));
            order.pop();
        }
        if let (Some(known), Some(state)) = (&mut self.known, state) {
            known.insert(state, seen);
        }
        seen
    }
}

/// Plays `parts` in every order.
fn explore(parts: &[Part], switches: &[Switch]) -> Seen {
    Orders::new(parts, switches).play(&mut Vec::new())
}

use self::Part::{Evict, Fault as At, Protect};

const VMA_RETRY: &[Switch] = &[Switch::VmaRetry];

#[test]
fn one_fault_and_a_writer() {
    for switches in [&[], VMA_RETRY] {
        let same = explore(&[At(0), Protect(0)], switches);
        assert!(same.interleavings > 10 && same.with_refusal > 0, "{same:?}");
        let other = explore(&[At(0), Protect(1)], switches);
        assert_eq!(other.with_refusal, 0, "a writer to another VMA refuses nothing");
        assert_eq!((same.tries, other.tries), (2, 2));
    }
}

#[test]
fn two_faults_and_a_writer_in_two_vmas() {
    for switches in [&[], VMA_RETRY] {
        for parts in [[At(0), At(1), Protect(0)], [At(0), At(1), Protect(1)]] {
            let seen = explore(&parts, switches);
            assert!(seen.interleavings > 1000 && seen.with_refusal > 0, "{seen:?}");
            assert_eq!(seen.with_miss_under_lock, 0, "nothing is evicted");
        }
    }
}

/// What is played once is what every order comes to by itself.
#[test]
fn orders_that_meet_are_counted_as_if_they_did_not() {
    for parts in [[At(0), At(1), Protect(0)], [At(0), Evict, Protect(0)]] {
        let each = Orders { known: None, ..Orders::new(&parts, VMA_RETRY) }.play(&mut Vec::new());
        assert_eq!(explore(&parts, VMA_RETRY), each);
    }
}

#[test]
fn three_faults_at_once() {
    for switches in [&[], VMA_RETRY] {
        for parts in [[At(0), At(0), At(0)], [At(0), At(0), At(1)]] {
            let seen = explore(&parts, switches);
            assert!(seen.interleavings > 100_000, "{seen:?}");
            assert_eq!((seen.with_refusal, seen.with_miss_under_lock), (0, 0), "{seen:?}");
        }
        for parts in [[At(0), At(0), At(0), Protect(0)], [At(0), At(0), At(1), Protect(1)]] {
            let seen = explore(&parts, switches);
            assert!(seen.with_refusal > 0 && seen.with_miss_under_lock == 0, "{seen:?}");
            assert!(seen.with_refusal < seen.interleavings, "{seen:?}");
        }
        let evicted = explore(&[At(0), At(0), At(1), Evict], switches);
        assert!(evicted.with_miss_under_lock > 0 && evicted.with_refusal == 0, "{evicted:?}");
    }
}

#[test]
fn two_faults_inside_one_vma_and_a_writer_to_it() {
    for switches in [&[], VMA_RETRY] {
        let seen = explore(&[At(0), At(0), Protect(0)], switches);
        assert!(seen.interleavings > 1000 && seen.with_refusal > 0, "{seen:?}");
    }
}

/// What is evicted behind a fault's back it reads again, under the lock of its retry.
#[test]
fn a_fault_a_writer_and_one_who_evicts() {
    for switches in [&[], VMA_RETRY] {
        for written in [0, 1] {
            let seen = explore(&[At(0), Protect(written), Evict], switches);
            assert!(seen.with_miss_under_lock > 0, "{seen:?}");
            assert!(seen.with_miss_under_lock < seen.interleavings, "{seen:?}");
            assert_eq!(seen.tries, 2, "the retry of a miss is the last");
        }
    }
}
