//! Where a thread is in its steps, and in the access that it makes.

use filemap_core::decision::Log;
use filemap_core::fault;
use filemap_core::page_cache::PageCache;
use filemap_job::accesses::{Accesses, Read, Reads};
use filemap_job::program::{Access, Madvise, ProgramStep, ProgramThread};

use super::call::Call;
use super::done::{At, Done};
use super::populate::Populates;
use super::running::Running;
use crate::Error;
use crate::access::Takes;
use crate::open::OpenFile;
use crate::process::Row;
use crate::tally::Tally;
use crate::task::Task;
use crate::under_way::{FaultUnderWay, ReadUnderWay, Written};
use crate::waiting::Pause;
use crate::world::World;

/// A thread under way.
#[derive(Debug)]
pub struct Cursor<'p> {
    at: At,
    of: &'p ProgramThread,
    /// What each step did, in all rounds that are done.
    pub done: Vec<Done>,
    /// How often all of them are done.
    pub rounds: u64,
    /// When its last step ended.
    pub ended_ns: Option<u64>,
    /// The step that has begun.
    doing: Option<Doing<'p>>,
    began_ns: u64,
    /// When its first step begins, at the earliest.
    begins_ns: u64,
    /// When its time is over, where it has one.
    ends_ns: u64,
    /// What the step had counted when the thread paused.
    tally: Tally,
}

/// What a step has begun.
#[derive(Debug)]
enum Doing<'p> {
    /// Something that waits for nothing.
    Nothing,
    Touches(Touches<'p>),
    Reads(ReadCalls),
    Populates(Populates),
    /// A call that takes `mmap_lock`.
    Calls(Call<'p>),
    /// A barrier, to which it has come or not yet.
    Barrier {
        barrier: usize,
        has_come: bool,
    },
    /// It sleeps until this time.
    Sleeps(u64),
}

#[derive(Debug)]
struct Touches<'p> {
    mapping: usize,
    pages: Accesses<'p>,
    /// The page of the access at hand.
    page: u64,
    /// The page of the next access, where its turn has not come: the step ends with its last
    /// access, not when the thread goes on.
    next: Option<u64>,
    /// The first page of the mapping that lies beyond the end of the file.
    beyond: u64,
    access: Access,
    thinking: Thinking,
    fault: Option<FaultUnderWay>,
}

#[derive(Debug)]
struct ReadCalls {
    open: usize,
    offset_bytes: u64,
    blocks: Reads,
    /// As for touches.
    next: Option<Read>,
    thinking: Thinking,
    read: Option<ReadUnderWay>,
    /// They go past the page cache.
    is_direct: bool,
    /// When what one of them reads has arrived, where it is under way.
    arrives_ns: Option<u64>,
}

/// Time to think after each access.
#[derive(Clone, Copy, Debug)]
struct Thinking {
    each_ns: u64,
    left_ns: u64,
}

impl<'p> Cursor<'p> {
    /// The thread numbered `thread`, before its first step, which begins at `begins_ns`.
    pub fn new(thread: usize, of: &'p ProgramThread, begins_ns: u64) -> Cursor<'p> {
        Cursor {
            at: At { thread, process: of.process, step: 0 },
            of,
            done: vec![Done::default(); of.steps.len()],
            rounds: 0,
            ended_ns: None,
            doing: None,
            began_ns: 0,
            begins_ns,
            ends_ns: u64::MAX,
            tally: Tally::default(),
        }
    }

    /// Its process, as an index.
    pub fn process(&self) -> usize {
        self.at.process
    }

    /// The step that it is at, as an index.
    pub fn step(&self) -> usize {
        self.at.step
    }

    /// Goes on until the thread has to pause, or has done its steps.
    ///
    /// # Errors
    /// When the memory is too small to hold what one access needs, or a page beyond the end of a
    /// file is touched.
    pub fn go_on<C: PageCache, L: Log>(
        &mut self,
        running: &mut Running<'p, '_, C, L>,
    ) -> Result<Option<Pause>, Error> {
        running.world.tally = self.tally;
        running.world.ends_ns = self.ends_ns;
        let pause = self.take_steps(running)?;
        self.tally = running.world.tally;
        Ok(pause)
    }

    fn take_steps<C: PageCache, L: Log>(
        &mut self,
        running: &mut Running<'p, '_, C, L>,
    ) -> Result<Option<Pause>, Error> {
        loop {
            let Some(doing) = &mut self.doing else {
                if running.world.turn_is_over() {
                    return Ok(Some(Pause::Turn));
                }
                if running.world.now_ns() < self.begins_ns {
                    return Ok(Some(Pause::Sleep(self.begins_ns)));
                }
                let Some(step) = self.next(running.world.now_ns()) else { return Ok(None) };
                if !running.order.begins(self.at.thread) {
                    return Ok(Some(Pause::Step));
                }
                self.began_ns = running.world.now_ns();
                if self.ended_ns.is_none() {
                    self.ends_ns = self.of.rounds.end_ns(self.began_ns);
                    running.world.ends_ns = self.ends_ns;
                }
                self.doing = Some(begin(self.at, step, running));
                continue;
            };
            if let Some(pause) = doing.carry_on(self.at, running)? {
                return Ok(Some(pause));
            }
            *doing = Doing::Nothing;
            if let Some(pause) = running.repay(self.at.process) {
                return Ok(Some(pause));
            }
            if self.ends(running) {
                return Ok(Some(Pause::Turn));
            }
        }
    }

    /// The next step, of the next round where that begins; `None` where all is done.
    fn next(&mut self, now_ns: u64) -> Option<&'p ProgramStep> {
        if now_ns >= self.ends_ns {
            return None;
        }
        if self.at.step == self.of.steps.len() {
            if !self.of.rounds.begins(self.rounds) {
                return None;
            }
            self.at.step = 0;
        }
        self.of.steps.get(self.at.step)
    }

    /// The step is done. Whether it lets others go on.
    fn ends<C: PageCache, L: Log>(&mut self, running: &mut Running<'p, '_, C, L>) -> bool {
        let (tally, ended_ns) = (running.world.tally, running.world.now_ns());
        let open = running.job.open_of(&self.of.steps[self.at.step]);
        let mmap_miss = open.map_or(0, |open| running.opens[open].ra.mmap_miss);
        self.done[self.at.step].add(&tally, ended_ns - self.began_ns, mmap_miss);
        self.ended_ns = Some(ended_ns);
        self.doing = None;
        self.at.step += 1;
        let is_complete = self.at.step == self.of.steps.len() && ended_ns < self.ends_ns;
        self.rounds += u64::from(is_complete);
        let free = running.order.done(self.at.thread);
        free.iter().for_each(|thread| running.world.waiting.wake(*thread, ended_ns));
        !free.is_empty()
    }
}

fn begin<'p, C: PageCache, L: Log>(
    at: At,
    step: &'p ProgramStep,
    running: &mut Running<'p, '_, C, L>,
) -> Doing<'p> {
    let job = running.job;
    let open = job.open_of(step);
    let mmap_miss_max = open.map_or(0, |open| running.opens[open].ra.mmap_miss);
    running.world.tally = Tally { mmap_miss_max, ..Tally::default() };
    match *step {
        ProgramStep::Touch { mapping, ref accesses, access, think_ns } => Doing::Touches(Touches {
            mapping,
            pages: job.touches(mapping, accesses),
            page: 0,
            next: None,
            beyond: job.beyond_file(mapping).map_or(u64::MAX, |page| page.0),
            access,
            thinking: Thinking { each_ns: think_ns, left_ns: 0 },
            fault: None,
        }),
        ProgramStep::Madvise { mapping, advice: Madvise::PopulateRead, first, pages } => {
            running.madvise(at.process, mapping, Madvise::PopulateRead, (first, pages));
            Doing::Populates(Populates::new(mapping, first, pages))
        }
        ProgramStep::Map { .. }
        | ProgramStep::Unmap { .. }
        | ProgramStep::Madvise { .. }
        | ProgramStep::Mprotect { .. }
        | ProgramStep::Fork => Doing::Calls(Call::new(step, running.world.now_ns())),
        ProgramStep::Fadvise { open, advice, offset_bytes, len_bytes } => {
            running.fadvise(at.process, open, advice, (offset_bytes, len_bytes));
            Doing::Nothing
        }
        ProgramStep::Read { open, offset_bytes, len_bytes, ref accesses, think_ns } => {
            Doing::Reads(ReadCalls {
                open,
                offset_bytes,
                blocks: job.reads(len_bytes, accesses),
                thinking: Thinking { each_ns: think_ns, left_ns: 0 },
                next: None,
                read: None,
                is_direct: job.opens[open].direct,
                arrives_ns: None,
            })
        }
        ProgramStep::Barrier { barrier } => Doing::Barrier { barrier, has_come: false },
        ProgramStep::Sleep { ns } => {
            let until_ns = running.world.now_ns().saturating_add(ns);
            Doing::Sleeps(until_ns.min(running.world.ends_ns))
        }
    }
}

impl<'p> Doing<'p> {
    /// Goes on until it is done, or the thread has to pause.
    fn carry_on<C: PageCache, L: Log>(
        &mut self,
        at: At,
        running: &mut Running<'p, '_, C, L>,
    ) -> Result<Option<Pause>, Error> {
        let pause = match self {
            Doing::Nothing => {
                running.world.settle();
                None
            }
            Doing::Touches(touches) => touches.touch_on(at, running)?,
            Doing::Reads(reads) => reads.read_on(at.process, running)?,
            Doing::Populates(populates) => populates.populate_on(at.process, running)?,
            Doing::Calls(call) => call.call_on(at, running),
            Doing::Barrier { has_come: true, .. } => None,
            Doing::Barrier { barrier, has_come } => {
                *has_come = true;
                match running.barriers.comes(*barrier, at.thread) {
                    Some(waited) => {
                        running.world.wake(waited.into_iter());
                        None
                    }
                    None => Some(Pause::Step),
                }
            }
            Doing::Sleeps(until_ns) => {
                (running.world.now_ns() < *until_ns).then_some(Pause::Sleep(*until_ns))
            }
        };
        Ok(pause)
    }
}

/// How far touches came.
enum Came {
    /// To an access that takes something.
    Takes(Takes),
    /// To a page beyond the end of the file.
    Beyond(u64),
    /// The turn is over.
    Turn,
    /// All pages are touched.
    End,
}

impl Touches<'_> {
    /// Goes on until all pages are touched, or the thread has to pause.
    fn touch_on<C: PageCache, L: Log>(
        &mut self,
        at: At,
        running: &mut Running<'_, '_, C, L>,
    ) -> Result<Option<Pause>, Error> {
        if let Some(fault) = &mut self.fault {
            if let Some(pause) = running.serve_fault(at.process, self.mapping, fault)? {
                return Ok(Some(pause));
            }
            self.fault = None;
            let (row, open, mut task) = running.through(at.process, self.mapping);
            self.ends(row, open, &mut task);
        }
        loop {
            if let Some(pause) = running.repay(at.process) {
                return Ok(Some(pause));
            }
            let (row, open, mut task) = running.through(at.process, self.mapping);
            match self.touch(row, open, &mut task) {
                Came::Takes(takes) => {
                    let number = task.world.begun() - 1;
                    let (place, access) = (row.locate(self.page), access(self.access));
                    // Most go on to their end at once, and are never moved.
                    let mut fault = match takes {
                        Takes::Write(written) => {
                            FaultUnderWay::writing(number, place, written, open)
                        }
                        _ => FaultUnderWay::new(number, place, access),
                    };
                    if let Some(pause) =
                        running.serve_fault(at.process, self.mapping, &mut fault)?
                    {
                        self.fault = Some(fault);
                        return Ok(Some(pause));
                    }
                }
                Came::Beyond(page) => {
                    let step = running.job.step_name(at.thread, at.step);
                    return Err(running.bus(step, self.mapping, page));
                }
                Came::Turn => return Ok(Some(Pause::Turn)),
                Came::End => return Ok(None),
            }
            let (row, open, mut task) = running.through(at.process, self.mapping);
            self.ends(row, open, &mut task);
        }
    }

    /// Touches pages up to the next fault.
    fn touch<C: PageCache, L: Log>(
        &mut self,
        row: &mut Row,
        open: &OpenFile,
        task: &mut Task<'_, '_, C, L>,
    ) -> Came {
        let access = access(self.access);
        loop {
            if !self.thinking.is_over(task.world) {
                return Came::Turn;
            }
            if task.world.time_is_over() {
                return Came::End;
            }
            let Some(page) = self.next.take().or_else(|| self.pages.next()) else {
                return Came::End;
            };
            let is_over = match self.access {
                Access::Read | Access::Call => task.world.is_far_ahead(),
                Access::Write => task.world.turn_is_over(),
            };
            if is_over {
                self.next = Some(page);
                return Came::Turn;
            }
            if page >= self.beyond {
                return Came::Beyond(page);
            }
            self.page = page;
            let place = row.locate(page);
            let mut takes = task.begin_touch(&place, access, open);
            if self.access == Access::Write {
                let area = row.only();
                area.mapping.copied(place.index);
                if !area.forked.is_empty() && area.forked.take(place.index) {
                    takes = Takes::Write(Written::Reused);
                }
            }
            if takes != Takes::Nothing {
                return Came::Takes(takes);
            }
            self.ends(row, open, task);
        }
    }

    /// The page is there: what is called is looked up.
    fn ends<C: PageCache, L: Log>(
        &mut self,
        row: &Row,
        open: &OpenFile,
        task: &mut Task<'_, '_, C, L>,
    ) {
        if self.access == Access::Call {
            task.call(&row.locate(self.page), open);
        }
        self.thinking.begin();
    }
}

/// As a fault has it.
fn access(access: Access) -> fault::Access {
    match access {
        Access::Read | Access::Call => fault::Access::Read,
        Access::Write => fault::Access::WritePrivate,
    }
}

impl ReadCalls {
    /// Goes on until all blocks are read, or the thread has to pause.
    fn read_on<C: PageCache, L: Log>(
        &mut self,
        process: usize,
        running: &mut Running<'_, '_, C, L>,
    ) -> Result<Option<Pause>, Error> {
        loop {
            if let Some(pause) = self.read.is_none().then(|| running.repay(process)).flatten() {
                return Ok(Some(pause));
            }
            let (open, mut task) = running.on_open(process, self.open);
            if let Some(arrives_ns) = self.arrives_ns {
                if task.world.now_ns() < arrives_ns {
                    return Ok(Some(Pause::Direct(arrives_ns)));
                }
                self.arrives_ns = None;
                self.thinking.begin();
                continue;
            }
            if let Some(read) = &mut self.read {
                if let Some(pause) = read.read_on(&mut task, open)? {
                    return Ok(Some(pause));
                }
                self.read = None;
                self.thinking.begin();
                continue;
            }
            if !self.thinking.is_over(task.world) {
                return Ok(Some(Pause::Turn));
            }
            if task.world.time_is_over() {
                return Ok(None);
            }
            let block = self.next.take().or_else(|| self.blocks.next());
            let Some(block) = block else { return Ok(None) };
            if task.world.turn_is_over() {
                self.next = Some(block);
                return Ok(Some(Pause::Turn));
            }
            if self.is_direct {
                self.arrives_ns = Some(task.begin_direct(block.len_bytes, open));
                continue;
            }
            let offset = self.offset_bytes + block.offset_bytes;
            let mut read = task.begin_read(offset, block.len_bytes, open);
            if let Some(pause) = read.read_on(&mut task, open)? {
                self.read = Some(read);
                return Ok(Some(pause));
            }
            self.thinking.begin();
        }
    }
}

impl Thinking {
    /// An access is done.
    fn begin(&mut self) {
        self.left_ns = self.each_ns;
    }

    /// Goes on, and lets everything arrive where that is the timing. `false` where the thread's
    /// slice ends first.
    fn is_over<C: PageCache, L: Log>(&mut self, world: &mut World<'_, C, L>) -> bool {
        if self.left_ns > 0 {
            let until_ns = world.ends_ns.saturating_sub(world.now_ns());
            self.left_ns = world.think(self.left_ns.min(until_ns));
            if self.left_ns > 0 {
                return false;
            }
        }
        world.settle();
        true
    }
}
