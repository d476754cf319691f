//! The position of a thread in its steps, and the statistics of each step.

use filemap_core::decision::{Log, TaskWork};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount, PageIndex};
use filemap_job::program::{Madvise, ProgramStep, Thread};

use super::access::{PopulateLoop, ReadLoop, ThinkTime, TouchLoop};
use super::call::MmapLockCall;
use super::run::ProgramRun;
use crate::Error;
use crate::process::Process;
use crate::tally::Tally;
use crate::wait_queue::Pause;

/// A running thread.
#[derive(Debug)]
pub struct Cursor<'p> {
    at: StepId,
    thread: &'p Thread,
    /// Statistics of each step over all finished rounds.
    pub done: Vec<StepStats>,
    /// Finished rounds.
    pub rounds: u64,
    /// When the last step ended.
    pub ended_ns: Option<u64>,
    /// The step in progress.
    current: Option<StepState<'p>>,
    began_ns: u64,
    /// Earliest start of the first step.
    begins_ns: u64,
    /// When the thread stops, if it runs for a limited time.
    ends_ns: u64,
    /// Counters of the step at the last pause.
    tally: Tally,
    /// Whether it sleeps between queries.
    has_queries: bool,
    /// When the current query began.
    query_began_ns: Option<u64>,
}

/// Progress of a step.
#[derive(Debug)]
enum StepState<'p> {
    /// Finished without waiting.
    Finished,
    Touch(TouchLoop<'p>),
    Read(ReadLoop),
    Populate(PopulateLoop),
    /// Has this many pages of anonymous memory yet to allocate.
    Allocate(u64),
    /// A system call that takes `mmap_lock`.
    Call(MmapLockCall<'p>),
    /// A barrier, and whether the thread has arrived there.
    Barrier {
        barrier: usize,
        has_arrived: bool,
    },
    /// Sleeps until this time.
    Sleep(u64),
}

impl<'p> Cursor<'p> {
    /// Thread number `thread` before its first step, which starts at `begins_ns`.
    pub fn new(thread: usize, program: &'p Thread, begins_ns: u64) -> Cursor<'p> {
        let sleeps = |step: &ProgramStep| matches!(step, ProgramStep::Sleep { .. });
        Cursor {
            has_queries: program.steps.iter().any(sleeps),
            query_began_ns: None,
            at: StepId { thread, process: program.process, step: 0 },
            thread: program,
            done: vec![StepStats::default(); program.steps.len()],
            rounds: 0,
            ended_ns: None,
            current: None,
            began_ns: 0,
            begins_ns,
            ends_ns: u64::MAX,
            tally: Tally::default(),
        }
    }

    /// Index of its process.
    pub fn process(&self) -> usize {
        self.at.process
    }

    /// Index of its current step.
    pub fn step(&self) -> usize {
        self.at.step
    }

    /// Runs until the thread has to pause or has done its steps.
    ///
    /// # Errors
    /// If memory is too small for a single access, or a page past the end of a file is touched.
    pub fn run<C: PageCache>(
        &mut self,
        running: &mut ProgramRun<'p, '_, C>,
    ) -> Result<Option<Pause>, Error> {
        running.world.tally = self.tally;
        running.world.ends_ns = self.ends_ns;
        let pause = self.run_steps(running)?;
        self.tally = running.world.tally;
        Ok(pause)
    }

    fn run_steps<C: PageCache>(
        &mut self,
        running: &mut ProgramRun<'p, '_, C>,
    ) -> Result<Option<Pause>, Error> {
        loop {
            let Some(doing) = &mut self.current else {
                if running.world.must_yield() {
                    return Ok(Some(Pause::Yield));
                }
                if running.world.now_ns() < self.begins_ns {
                    return Ok(Some(Pause::Sleep(self.begins_ns)));
                }
                let Some(step) = self.next_step(running.world.now_ns()) else {
                    // A query that the end of a duration cuts off does not count.
                    if running.world.now_ns() < self.ends_ns {
                        self.end_query(running);
                    }
                    return Ok(None);
                };
                if !running.order.try_begin(self.at.thread) {
                    return Ok(Some(Pause::Dependency));
                }
                self.began_ns = running.world.now_ns();
                match step {
                    ProgramStep::Sleep { .. } => self.end_query(running),
                    _ if self.has_queries && self.query_began_ns.is_none() => {
                        self.query_began_ns = Some(self.began_ns);
                    }
                    _ => {}
                }
                if self.ended_ns.is_none() {
                    self.ends_ns = self.thread.rounds.end_ns(self.began_ns);
                    running.world.ends_ns = self.ends_ns;
                }
                self.current = Some(begin_step(self.at, step, running));
                continue;
            };
            if let Some(pause) = doing.run(self.at, running)? {
                return Ok(Some(pause));
            }
            *doing = StepState::Finished;
            if let Some(pause) = running.repay(self.at.process) {
                return Ok(Some(pause));
            }
            if self.end_step(running) {
                return Ok(Some(Pause::Yield));
            }
        }
    }

    /// The next step, starting the next round if necessary; `None` at the end.
    fn next_step(&mut self, now_ns: u64) -> Option<&'p ProgramStep> {
        if now_ns >= self.ends_ns {
            return None;
        }
        if self.at.step == self.thread.steps.len() {
            if !self.thread.rounds.begins(self.rounds) {
                return None;
            }
            self.at.step = 0;
        }
        self.thread.steps.get(self.at.step)
    }

    /// Ends what the thread did since it slept.
    fn end_query<C: PageCache>(&mut self, running: &mut ProgramRun<'p, '_, C>) {
        if let Some(began_ns) = self.query_began_ns.take() {
            running.latencies.queries.add(running.world.now_ns() - began_ns);
        }
    }

    /// Finishes the step. Returns whether other threads may proceed.
    fn end_step<C: PageCache>(&mut self, running: &mut ProgramRun<'p, '_, C>) -> bool {
        let (tally, ended_ns) = (running.world.tally, running.world.now_ns());
        let open = running.job.step_open(&self.thread.steps[self.at.step]);
        let mmap_miss = open.map_or(0, |open| running.opens[open].ra.mmap_miss);
        self.done[self.at.step].add(&tally, ended_ns - self.began_ns, mmap_miss);
        let work = TaskWork::Step(self.at.step);
        running.world.log.ended(self.at.thread, work, self.began_ns, ended_ns);
        self.ended_ns = Some(ended_ns);
        self.current = None;
        self.at.step += 1;
        let is_complete = self.at.step == self.thread.steps.len() && ended_ns < self.ends_ns;
        self.rounds += u64::from(is_complete);
        let free = running.order.complete_step(self.at.thread);
        free.iter().for_each(|thread| running.world.waiting.wake(*thread, ended_ns));
        !free.is_empty()
    }
}

fn begin_step<'p, C: PageCache>(
    at: StepId,
    step: &'p ProgramStep,
    running: &mut ProgramRun<'p, '_, C>,
) -> StepState<'p> {
    let job = running.job;
    let open = job.step_open(step);
    let mmap_miss_max = open.map_or(0, |open| running.opens[open].ra.mmap_miss);
    running.world.tally = Tally { mmap_miss_max, ..Tally::default() };
    match *step {
        ProgramStep::Touch { mapping, ref accesses, access, think_ns } => {
            StepState::Touch(TouchLoop {
                mapping,
                pages: job.touches(mapping, accesses),
                page: 0,
                next: None,
                first_past_eof: job.beyond_file(mapping).map_or(u64::MAX, |page| page.0),
                access,
                think_time: ThinkTime { each_ns: think_ns, left_ns: 0 },
                fault: None,
                began_ns: 0,
            })
        }
        ProgramStep::Madvise { mapping, advice: Madvise::PopulateRead, first, pages } => {
            running.madvise(at.process, mapping, Madvise::PopulateRead, (first, pages));
            StepState::Populate(PopulateLoop::new(mapping, first, pages))
        }
        ProgramStep::Map { .. }
        | ProgramStep::Unmap { .. }
        | ProgramStep::Madvise { .. }
        | ProgramStep::Mprotect { .. }
        | ProgramStep::Fork => StepState::Call(MmapLockCall::new(step, running.world.now_ns())),
        ProgramStep::Fadvise { open, advice, offset_bytes, len_bytes } => {
            running.fadvise(at.process, open, advice, (offset_bytes, len_bytes));
            StepState::Finished
        }
        ProgramStep::Read { open, offset_bytes, len_bytes, ref accesses, think_ns } => {
            StepState::Read(ReadLoop {
                open,
                offset_bytes,
                blocks: job.reads(len_bytes, accesses),
                thinking: ThinkTime { each_ns: think_ns, left_ns: 0 },
                next: None,
                read: None,
                began_ns: 0,
                range: (0, 0),
                is_direct: job.opens[open].direct,
                arrives_ns: None,
            })
        }
        ProgramStep::Allocate { pages } => StepState::Allocate(pages.0),
        ProgramStep::Free { pages } => {
            let held = &mut running.spaces[at.process].process.held;
            let pages = pages.min(*held);
            *held -= pages;
            running.world.memory.uncharge_anonymous(pages);
            StepState::Finished
        }
        ProgramStep::Barrier { barrier } => StepState::Barrier { barrier, has_arrived: false },
        ProgramStep::Sleep { ns } => {
            let until_ns = running.world.now_ns().saturating_add(ns);
            StepState::Sleep(until_ns.min(running.world.ends_ns))
        }
    }
}

impl<'p> StepState<'p> {
    /// Runs until the step is done or the thread has to pause.
    fn run<C: PageCache>(
        &mut self,
        at: StepId,
        running: &mut ProgramRun<'p, '_, C>,
    ) -> Result<Option<Pause>, Error> {
        let pause = match self {
            StepState::Finished => {
                running.world.settle();
                None
            }
            StepState::Touch(touches) => touches.run(at, running)?,
            StepState::Read(reads) => reads.run(at.process, running)?,
            StepState::Populate(populates) => populates.run(at.process, running)?,
            StepState::Allocate(left) => allocate(left, at.process, running)?,
            StepState::Call(call) => call.run(at, running),
            StepState::Barrier { has_arrived: true, .. } => None,
            StepState::Barrier { barrier, has_arrived: has_come } => {
                *has_come = true;
                match running.barriers.arrive(*barrier, at.thread) {
                    Some(waited) => {
                        running.world.wake(waited.into_iter());
                        None
                    }
                    None => Some(Pause::Dependency),
                }
            }
            StepState::Sleep(until_ns) => {
                (running.world.now_ns() < *until_ns).then_some(Pause::Sleep(*until_ns))
            }
        };
        Ok(pause)
    }
}

/// Allocates the `left` pages of anonymous memory, with a fault for each, until all are there or
/// the thread has to pause. Without a memory limit they matter to nothing.
fn allocate<C: PageCache>(
    left: &mut u64,
    process: usize,
    running: &mut ProgramRun<'_, '_, C>,
) -> Result<Option<Pause>, Error> {
    while *left > 0 && running.world.memory.is_limited() {
        if let Some(pause) = running.repay(process) {
            return Ok(Some(pause));
        }
        if running.world.must_yield() {
            return Ok(Some(Pause::YieldInKernel));
        }
        running.world.process_completions();
        let Process { tables, held, .. } = &mut running.spaces[process].process;
        let pause = running.world.charge_page(PageIndex(0), FileId::FIRST, tables)?;
        if pause.is_some() {
            return Ok(pause);
        }
        *held += PageCount(1);
        running.world.advance(running.world.profile.cost.fault_ns);
        *left -= 1;
    }
    *left = 0;
    running.world.settle();
    Ok(None)
}

/// A step of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepId {
    pub(super) thread: usize,
    pub(super) process: usize,
    pub(super) step: usize,
}

/// Statistics of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepStats {
    /// Counters.
    pub tally: Tally,
    /// Predicted time.
    pub elapsed_ns: u64,
    /// `mmap_miss` of its open file when the step last ended.
    pub mmap_miss: u16,
}

impl StepStats {
    /// Adds one round.
    pub fn add(&mut self, tally: &Tally, elapsed_ns: u64, mmap_miss: u16) {
        self.mmap_miss = mmap_miss;
        self.tally = self.tally.plus(tally);
        self.elapsed_ns += elapsed_ns;
    }
}
