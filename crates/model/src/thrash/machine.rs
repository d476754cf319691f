//! The machine: tasks take turns as their time comes.

use filemap_core::address::page_table::PageTables;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::cache::FolioRun;
use filemap_core::decision::{Lock, Log};
use filemap_core::lru::statistics::FLUSH_NS;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount};
use filemap_job::xorshift64;

use super::cgroup::Cgroup;
use super::cpus::Cpus;
use super::ending::{Ending, Error};
use super::events::{Event, Events};
use super::job::Thrash;
use super::outcome::{Counts, Outcome};
use super::task::{Flow, Kind, Task};
use super::turns::{TICK_NS, Turns};
use super::waits::{Cause, Waits};
use super::words::WordCache;
use crate::charge::Charge as Index;
use crate::device::Device;
use crate::extents::ExtentCache;
use crate::mm::mmap_lock::{MmapLock, TaskId, Woken};
use crate::mm::vma_lock::VmaLocks;
use crate::open::OpenFile;

/// Pages of a kernel stack.
const STACK_PAGES: u64 = 4;

/// All that the tasks share.
pub struct Machine<'a, C, L> {
    pub job: &'a Thrash,
    pub now_ns: u64,
    pub events: Events,
    pub tasks: Vec<Task>,
    pub cpus: Cpus,
    pub turns: Turns,
    pub mmap_lock: MmapLock,
    pub vma_locks: VmaLocks,
    /// The writer that waits for faults inside of its VMA.
    pub vma_writer: Option<TaskId>,
    pub cgroup: Cgroup,
    pub cache: C,
    pub mappings: ReverseMap,
    pub tables: PageTables,
    pub opens: Vec<OpenFile>,
    /// Tasks that reclaim: they share the lists' lock.
    pub reclaimers: u64,
    pub device: Device,
    /// When it is looked for arrivals next.
    pub arrival_ns: Option<u64>,
    /// Pages that are locked, and windows that lock them.
    pub locked_pages: u64,
    pub windows: u64,
    /// Windows that are read under `mmap_lock`.
    pub windows_under_lock: u64,
    /// Pages that are evicted and not uncharged yet, and charged and not added yet.
    pub freeing_pages: u64,
    pub charged_pages: u64,
    pub counts: Counts,
    pub log: &'a mut L,
    /// Time that the task at work has spent besides: on waking others.
    pub extra_ns: u64,
    /// And on the lists' lock.
    pub spun_ns: u64,
    pub woken: Vec<Woken>,
    pub ending: Option<Ending>,
    index: Index,
    kernel_pages: u64,
    stack_pages: u64,
    /// Events that let a task go on.
    pub live: u64,
    before: Counts,
    pub waits: Waits,
    random: u64,
    pub checks: bool,
}

/// Runs `job`.
///
/// # Errors
/// For a job that makes no sense, and for a deadlock.
pub fn run(job: &Thrash, log: &mut impl Log) -> Result<Outcome, Error> {
    match job.max_folio {
        None => {
            run_on(job, WordCache::new(job.threads, job.file_pages, job.capacity()), log, false)
        }
        Some(_) => run_on(job, ExtentCache::new(job.capacity()), log, false),
    }
}

/// [`run`] on a given empty cache. Where it `checks`, the invariants are checked after each event.
///
/// # Errors
/// As for [`run`].
///
/// # Panics
/// When an invariant does not hold.
pub fn run_on<C: PageCache>(
    job: &Thrash,
    cache: C,
    log: &mut impl Log,
    checks: bool,
) -> Result<Outcome, Error> {
    job.check()?;
    let mut machine = Machine::new(job, cache, log, checks);
    machine.begin();
    machine.go()?;
    Ok(machine.outcome())
}

impl<'a, C: PageCache, L: Log> Machine<'a, C, L> {
    fn new(job: &'a Thrash, cache: C, log: &'a mut L, checks: bool) -> Machine<'a, C, L> {
        let limits = job.limits();
        let size = job.file_pages.bytes(job.arch.page_size);
        let open = |number| OpenFile::new(FileId::new(number as u32), size, 0, limits);
        let kinds = [
            (Kind::Reader, job.threads),
            (Kind::Writer, job.writers),
            (Kind::Noise, job.noise_threads),
        ];
        let tasks = kinds.iter().flat_map(|(kind, count)| (0..*count).map(|_| Task::new(*kind)));
        let in_pages = |limit: Option<PageCount>| limit.map(|pages| pages.0);
        let process = (job.threads + job.writers) as u64;
        Machine {
            job,
            now_ns: 0,
            events: Events::default(),
            tasks: tasks.collect(),
            cpus: Cpus::new(job.cpus),
            turns: Turns::new(job.cpus),
            mmap_lock: MmapLock::new(job.mechanisms.manner()),
            vma_locks: VmaLocks::new(),
            vma_writer: None,
            cgroup: Cgroup::new(in_pages(job.high), in_pages(job.max), job.cpus),
            cache,
            mappings: ReverseMap::new(job.threads),
            tables: PageTables::default(),
            opens: (0..job.threads).map(open).collect(),
            reclaimers: 0,
            device: Device::new(job.device, job.arch.page_size),
            arrival_ns: None,
            locked_pages: 0,
            windows: 0,
            windows_under_lock: 0,
            freeing_pages: 0,
            charged_pages: 0,
            counts: Counts::default(),
            log,
            extra_ns: 0,
            spun_ns: 0,
            woken: Vec::new(),
            ending: None,
            index: Index::default(),
            kernel_pages: 0,
            stack_pages: if job.mechanisms.charges_kernel { process * STACK_PAGES } else { 0 },
            live: 0,
            before: Counts::default(),
            waits: Waits::new(job.warm_up_ns, job.end_ns()),
            random: job.seed.max(1),
            checks,
        }
    }

    fn begin(&mut self) {
        self.cgroup.force(self.stack_pages);
        if self.job.warm_up_ns > 0 {
            self.events.add(self.job.warm_up_ns, Event::WarmedUp);
        }
        self.events.add(self.job.end_ns(), Event::End);
        self.events.add(FLUSH_NS, Event::Flush);
        if self.job.costs.in_turn {
            // The ticks of the CPUs are spread over half of their period.
            let apart_ns = TICK_NS / 2 / self.job.cpus as u64;
            for cpu in 0..self.job.cpus {
                self.events.add(TICK_NS + apart_ns * cpu as u64, Event::Tick(cpu));
            }
        }
        for task in 0..self.tasks.len() {
            let at_ns = match self.job.stagger_ns {
                0 => 0,
                stagger_ns => self.draw() % stagger_ns,
            };
            self.tasks[task].waits = Some((Cause::Idle, 0));
            self.wake_at(at_ns, task);
        }
    }

    fn go(&mut self) -> Result<(), Error> {
        while self.ending.is_none() {
            if self.live == 0 {
                return Err(self.deadlock());
            }
            let (at_ns, event) = self.events.take().expect("live events are among them");
            assert!(at_ns >= self.now_ns, "time runs forward");
            self.now_ns = at_ns;
            match event {
                Event::Run(task) => {
                    self.live -= 1;
                    self.turn(task);
                }
                Event::Turn(turn) => {
                    self.live -= 1;
                    if let Some(task) = self.turns.done(turn) {
                        self.turn(task);
                    }
                }
                Event::Tick(cpu) => {
                    self.events.add(at_ns + TICK_NS, Event::Tick(cpu));
                    if self.turns.is_busy(cpu) {
                        let turn = self.turns.interrupt(at_ns);
                        self.begin_turn(turn);
                    }
                }
                Event::Wake(task) => {
                    self.live -= 1;
                    self.counts.events += 1;
                    self.wake(task);
                }
                Event::Arrival => {
                    self.live -= 1;
                    self.counts.events += 1;
                    self.arrivals();
                }
                Event::Flush => {
                    self.cache.flush_statistics();
                    self.events.add(at_ns + FLUSH_NS, Event::Flush);
                }
                Event::WarmedUp => self.before = self.counts,
                Event::End => self.ending = Some(Ending::Complete),
            }
            if self.checks {
                self.check();
            }
        }
        Ok(())
    }

    fn outcome(mut self) -> Outcome {
        // What is under way at the end has taken its time until then.
        for task in 0..self.tasks.len() {
            self.end_wait(task);
            self.end_busy(task);
        }
        let has_warmed_up = self.now_ns >= self.job.warm_up_ns;
        let before = if has_warmed_up { self.before } else { self.counts };
        Outcome {
            counts: self.counts.since(&before),
            waits: self.waits,
            ended_ns: self.now_ns,
            elapsed_ns: self.now_ns.saturating_sub(self.job.warm_up_ns),
            has_warmed_up,
            ending: self.ending.expect("the job has ended"),
        }
    }

    /// What `task` does next: the innermost of what it has under way.
    pub fn advance(&mut self, task: TaskId) -> Flow {
        let of = &self.tasks[task];
        if of.reclaim.is_some() {
            self.go_on_with_reclaim(task)
        } else if of.repay.is_some() {
            self.go_on_with_repaying(task)
        } else if of.charge.is_some() {
            self.go_on_with_charge(task)
        } else if of.window.is_some() {
            self.go_on_with_window(task)
        } else if of.fault.is_some() {
            self.go_on_with_fault(task)
        } else {
            match of.kind {
                Kind::Reader => self.go_on_with_round(task),
                Kind::Writer => self.go_on_with_protecting(task),
                Kind::Noise => Flow::Takes(self.job.costs.slice_ns, Cause::Work),
            }
        }
    }

    /// Data will arrive at `at_ns`.
    pub fn arrive_at(&mut self, at_ns: u64) {
        self.live += 1;
        self.arrival_ns = Some(at_ns);
        self.events.add(at_ns, Event::Arrival);
    }

    /// Wakes those that the last call of `mmap_lock` woke, one behind the other.
    pub fn wake_woken(&mut self) {
        let mut woken = std::mem::take(&mut self.woken);
        for Woken { task, has_lock } in woken.drain(..) {
            if has_lock {
                let fault = self.tasks[task].fault.as_mut().expect("readers are faults");
                fault.held = Some(Lock::Mmap);
            }
            self.extra_ns += self.job.costs.wake_ns;
            self.wake_at(self.now_ns + self.extra_ns, task);
        }
        self.woken = woken;
    }

    /// The kernel's own memory is charged as it is now.
    pub fn charge_kernel(&mut self) {
        if !self.job.mechanisms.charges_kernel {
            return;
        }
        let pages = self.index.pages(self.tables.pages(), &self.cache, self.job.arch.page_size).0;
        if pages > self.kernel_pages {
            self.cgroup.force(pages - self.kernel_pages);
        } else {
            self.cgroup.uncharge(self.kernel_pages - pages);
        }
        self.kernel_pages = pages;
    }

    /// Folios are in the cache: the index has nodes for them.
    pub fn note_added(&mut self, file: FileId, run: FolioRun) {
        self.index.add(file, run);
        self.charge_kernel();
    }

    /// Pages cached.
    pub fn cached(&self) -> u64 {
        (self.cache.inactive() + self.cache.active()).0
    }

    /// Pages charged for the kernel's own memory.
    pub fn kernel_and_stacks(&self) -> u64 {
        self.kernel_pages + self.stack_pages
    }

    /// The next number that the seed gives.
    pub fn draw(&mut self) -> u64 {
        self.random = xorshift64(self.random);
        self.random
    }
}
