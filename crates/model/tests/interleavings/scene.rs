//! Faults, one writer and one evictor, step by step.

use filemap_core::address::entries::{Layer, MappedFile};
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::page_table::PageTables;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::address::vma::{Advice, Vma};
use filemap_core::cache::{FileCache, FolioRun};
use filemap_core::decision::Lock;
use filemap_core::fault::{AccessKind, Fault, Step, View};
use filemap_core::lru::lists::{LruLists, Scan};
use filemap_core::page_cache::PageCache;
use filemap_core::plain::PlainCache;
use filemap_core::readahead::layout::Layout;
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::series::Series;
use filemap_core::units::{FileId, Order, PageCount, PageIndex, Vpn};
use filemap_model::mm::mmap_lock::{LockWakeup, MmapLock};
use filemap_model::mm::vma_lock::VmaLocks;

use self::Part::{Evict, Fault as At, Protect};

const FILE_PAGES: u64 = 4;

/// What an actor does.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// A fault on page 0 through a VMA.
    Fault(usize),
    /// `mprotect(2)` of a VMA.
    Protect(usize),
    /// Evicts all pages that can be evicted.
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

/// The state that the actors share.
pub struct Scene {
    limits: Limits,
    lock: MmapLock,
    vmas: VmaLocks,
    vma_writer: Option<usize>,
    cache: PlainCache,
    mappings: ReverseMap,
    ra: [ReadaheadState; 2],
    tables: PageTables,
    actors: Vec<Actor>,
    /// Misses of attempts that kept their lock.
    pub misses_under_lock: u32,
    pub refused: u32,
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
    pub fn new(parts: &[Part], series: Series) -> Scene {
        let actor = |&part: &Part| Actor {
            part,
            fault: match part {
                At(_) => Some(Fault::new(PageIndex(0), AccessKind::Read)),
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
            mappings.file_mut(file(number)).insert(FileMapping::new(vma(number), None));
        }
        Scene {
            limits: Limits {
                rules: Rules::new(Kernel::V6_12, series),
                arch: Arch::new(Family::X86_64, 4096).unwrap(),
                ra_pages: PageCount(4),
                io_pages: PageCount(4),
                fault_around: PageCount(1),
                max_folio: None,
                min_folio: Order(0),
                file_pages: PageCount(FILE_PAGES),
            },
            lock: MmapLock::default(),
            vmas: VmaLocks::new(),
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

    /// Everything that the continuation depends on, and the counts.
    pub fn state(&self) -> String {
        let Scene { limits: _, lock, vmas, vma_writer, cache, mappings, ra, tables, .. } = self;
        let Scene { actors, misses_under_lock, refused, .. } = self;
        let shared = (lock, vmas, vma_writer, cache, mappings, ra, tables);
        format!("{shared:?} {:?}", (actors, misses_under_lock, refused))
    }

    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        let is_ready = |(_, actor): &(usize, &Actor)| !actor.is_waiting && !actor.is_done;
        self.actors.iter().enumerate().filter(is_ready).map(|(number, _)| number)
    }

    pub fn step(&mut self, number: usize) {
        match self.actors[number].part {
            At(vma) => self.step_fault(number, vma),
            Protect(vma) => self.step_writer(number, vma),
            Evict => {
                self.cache.shrink(Scan::until(PageCount(100)), &self.mappings, &mut ());
                self.cache.shrink(Scan::until(PageCount(100)), &self.mappings, &mut ());
                self.actors[number].is_done = true;
            }
        }
        self.lock.assert_invariants();
        let to_read = |actor: &&Actor| actor.held == Some(Lock::Mmap);
        let readers = self.actors.iter().filter(to_read).count();
        assert_eq!(self.lock.readers() as usize, readers);
        assert!(self.lock.writer().is_none() || readers == 0);
    }

    /// Checks the invariants of a scene in which no actor has a step left.
    pub fn check_end(&self, order: &[usize]) {
        let all_done = self.actors.iter().all(|actor| actor.is_done);
        assert!(all_done, "nobody waits for ever: {:?} in order {order:?}", self.actors);
        assert!(self.lock.readers() == 0 && self.lock.writer().is_none());
        assert!((0..2).all(|vma| self.vmas.readers(vma) == 0));
    }

    /// Maximum number of attempts of a fault.
    pub fn tries(&self) -> u32 {
        let tries = self.actors.iter().filter_map(|actor| Some(actor.fault.as_ref()?.tries()));
        tries.max().unwrap_or(0)
    }

    fn wake(&mut self, woken: Vec<LockWakeup>) {
        for LockWakeup { task, has_lock } in woken {
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
                    0 => self.lock.lock_write(number, 0),
                    _ => self.lock.retry_write(number, 0),
                };
                self.actors[number].stage = if has { 2 } else { 1 };
                self.actors[number].is_waiting = !has;
            }
            2 => {
                self.actors[number].stage = 3;
                if !self.vmas.start_write(vma as u64) {
                    self.vma_writer = Some(number);
                    self.actors[number].is_waiting = true;
                }
            }
            _ => {
                assert_eq!(
                    self.vmas.readers(vma as u64),
                    0,
                    "no fault is inside of what is changed"
                );
                self.vmas.end_write_all();
                self.lock.release_write(number, 0, &mut woken);
                self.actors[number].is_done = true;
            }
        }
        self.wake(woken);
    }

    fn step_fault(&mut self, number: usize, task: usize) {
        let step = match self.actors[number].asked.take() {
            Some(step) => step,
            None => self.next_step(number, task),
        };
        match step {
            Step::Lock(Lock::Vma) => {
                if self.vmas.start_read(task as u64) {
                    self.actors[number].held = Some(Lock::Vma);
                } else {
                    self.refused += 1;
                    self.actors[number].fault.as_mut().unwrap().on_lock_refused();
                }
            }
            Step::Lock(Lock::Mmap) if self.actors[number].held.is_some() => {}
            Step::Lock(Lock::Mmap) => {
                let mut woken = Vec::new();
                if self.lock.lock_read(number, 0, &mut woken) {
                    self.actors[number].held = Some(Lock::Mmap);
                } else {
                    self.actors[number].asked = Some(step);
                    self.actors[number].is_waiting = true;
                }
                self.wake(woken);
            }
            Step::Unlock => self.unlock(number, task),
            Step::Read => {
                let window = *self.actors[number].fault.as_ref().unwrap().window();
                self.misses_under_lock += u32::from(self.actors[number].held.is_some());
                let ra = &mut self.ra[task];
                let mut layout = Layout::new(window, &self.limits, ra, &mut ());
                loop {
                    let next = layout.next(&self.cache.file(file(task)), &mut ());
                    let Some(run) = next else { break };
                    self.cache.add(file(task), run);
                    self.cache.unlock(file(task), run.start, run.pages());
                }
            }
            // A page that was evicted as soon as it was read is read alone, and waited for.
            Step::ReadPage(start) => {
                let run = FolioRun { start, order: Order(0), folios: 1, marked: None };
                self.cache.add(file(task), run);
            }
            Step::Wait(index) => self.cache.unlock(file(task), index, PageCount(1)),
            Step::Done(_) => {
                self.unlock(number, task);
                let mut pages = self.cache.mapped(file(task), Layer::FIRST);
                assert!(pages.folio(PageIndex(0)).is_some(), "it is served with its page");
                assert!(pages.touch(PageIndex(0)), "which is mapped");
                self.actors[number].is_done = true;
            }
        }
    }

    fn next_step(&mut self, number: usize, task: usize) -> Step {
        self.actors[number].fault.as_mut().unwrap().step(&mut View {
            limits: &self.limits,
            vma: &vma(task),
            ra: &mut self.ra[task],
            tables: &mut self.tables,
            cache: &mut self.cache.mapped(file(task), Layer::FIRST),
            log: &mut (),
        })
    }

    fn unlock(&mut self, number: usize, task: usize) {
        let mut woken = Vec::new();
        match self.actors[number].held.take().expect("it has a lock") {
            Lock::Mmap => self.lock.release_read(0, &mut woken),
            Lock::Vma => {
                if self.vmas.end_read(task as u64)
                    && let Some(writer) = self.vma_writer.take()
                {
                    self.actors[writer].is_waiting = false;
                }
            }
        }
        self.wake(woken);
    }
}
