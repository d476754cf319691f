//! Where a thread is in its steps, and in the access that it makes.

use filemap_core::decision::Log;
use filemap_core::fault::Access;
use filemap_core::page_cache::PageCache;
use filemap_job::accesses::{Accesses, Read, Reads};
use filemap_job::program::{Madvise, ProgramStep};

use super::populate::Populates;
use super::record::Done;
use super::running::Running;
use crate::Error;
use crate::tally::Tally;
use crate::task::Task;
use crate::under_way::{FaultUnderWay, ReadUnderWay};
use crate::waiting::Pause;
use crate::world::World;

/// A thread under way.
#[derive(Debug)]
pub struct Cursor<'p> {
    thread: usize,
    steps: &'p [ProgramStep],
    /// The steps that are done.
    pub done: Vec<Done>,
    /// The step that has begun.
    doing: Option<Doing<'p>>,
    began_ns: u64,
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
}

#[derive(Debug)]
struct Touches<'p> {
    mapping: usize,
    pages: Accesses<'p>,
    /// The page of the next access, where its turn has not come: the step ends with its last
    /// access, not when the thread goes on.
    next: Option<u64>,
    /// The first page of the mapping that lies behind the end of the file.
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
}

/// Time to think behind each access.
#[derive(Clone, Copy, Debug)]
struct Thinking {
    each_ns: u64,
    left_ns: u64,
}

impl<'p> Cursor<'p> {
    /// The thread numbered `thread`, before its first step.
    pub fn new(thread: usize, steps: &'p [ProgramStep]) -> Cursor<'p> {
        let done = Vec::with_capacity(steps.len());
        Cursor { thread, steps, done, doing: None, began_ns: 0, tally: Tally::default() }
    }

    /// Goes on until the thread has to pause, or has done its steps.
    ///
    /// # Errors
    /// When the memory is too small to hold what one access needs, or a page behind the end of a
    /// file is touched.
    pub fn go_on<C: PageCache, L: Log>(
        &mut self,
        running: &mut Running<'p, '_, C, L>,
    ) -> Result<Option<Pause>, Error> {
        running.world.tally = self.tally;
        let pause = self.take_steps(running)?;
        self.tally = running.world.tally;
        Ok(pause)
    }

    fn take_steps<C: PageCache, L: Log>(
        &mut self,
        running: &mut Running<'p, '_, C, L>,
    ) -> Result<Option<Pause>, Error> {
        loop {
            let pause = match &mut self.doing {
                None if running.world.turn_is_over() => return Ok(Some(Pause::Turn)),
                None => match self.steps.get(self.done.len()) {
                    None => return Ok(None),
                    Some(_) if !running.order.begins(self.thread) => return Ok(Some(Pause::Step)),
                    Some(step) => {
                        self.begin(step, running);
                        continue;
                    }
                },
                Some(Doing::Nothing) => {
                    running.world.settle();
                    None
                }
                Some(Doing::Touches(touches)) => {
                    let name = (self.thread, self.done.len());
                    touches.go_on(name, running)?
                }
                Some(Doing::Reads(reads)) => reads.go_on(running)?,
                Some(Doing::Populates(populates)) => populates.go_on(running)?,
            };
            if pause.is_some() {
                return Ok(pause);
            }
            let (tally, ended_ns) = (running.world.tally, running.world.now_ns());
            self.done.push(Done { tally, began_ns: self.began_ns, ended_ns });
            self.doing = None;
            let free = running.order.done(self.thread);
            free.iter().for_each(|thread| running.world.waiting.wake(*thread, ended_ns));
            if !free.is_empty() {
                return Ok(Some(Pause::Turn));
            }
        }
    }

    fn begin<C: PageCache, L: Log>(
        &mut self,
        step: &'p ProgramStep,
        running: &mut Running<'p, '_, C, L>,
    ) {
        self.began_ns = running.world.now_ns();
        let program = running.program;
        let open = program.open_of(step);
        let mmap_miss_max = running.opens[open].ra.mmap_miss;
        running.world.tally = Tally { mmap_miss_max, ..Tally::default() };
        self.doing = Some(match *step {
            ProgramStep::Map { mapping } => {
                running.map(mapping);
                Doing::Nothing
            }
            ProgramStep::Unmap { mapping } => {
                running.unmap(mapping);
                Doing::Nothing
            }
            ProgramStep::Touch { mapping, ref accesses, write, think_ns } => {
                Doing::Touches(Touches {
                    mapping,
                    pages: program.touches(mapping, accesses),
                    next: None,
                    beyond: program.beyond_file(mapping).map_or(u64::MAX, |page| page.0),
                    access: if write { Access::WritePrivate } else { Access::Read },
                    thinking: Thinking { each_ns: think_ns, left_ns: 0 },
                    fault: None,
                })
            }
            ProgramStep::Madvise { mapping, advice, first, pages } => {
                running.madvise(mapping, advice, (first, pages));
                match advice {
                    Madvise::PopulateRead => {
                        Doing::Populates(Populates::new(mapping, first, pages))
                    }
                    _ => Doing::Nothing,
                }
            }
            ProgramStep::Fadvise { open, advice, offset_bytes, len_bytes } => {
                running.fadvise(open, advice, offset_bytes, len_bytes);
                Doing::Nothing
            }
            ProgramStep::Read { offset_bytes, len_bytes, ref accesses, think_ns, .. } => {
                let blocks = program.reads(len_bytes, accesses);
                Doing::Reads(ReadCalls {
                    open,
                    offset_bytes,
                    blocks,
                    thinking: Thinking { each_ns: think_ns, left_ns: 0 },
                    next: None,
                    read: None,
                })
            }
        });
    }
}

impl Touches<'_> {
    /// Goes on until all pages are touched, or the thread has to pause. Messages name the step by
    /// its thread and number.
    fn go_on<C: PageCache, L: Log>(
        &mut self,
        (thread, step): (usize, usize),
        running: &mut Running<'_, '_, C, L>,
    ) -> Result<Option<Pause>, Error> {
        loop {
            if let Some(fault) = &mut self.fault {
                if let Some(pause) = running.go_on(self.mapping, fault)? {
                    return Ok(Some(pause));
                }
                self.fault = None;
                self.thinking.begin();
            }
            if !self.thinking.is_over(&mut running.world) {
                return Ok(Some(Pause::Turn));
            }
            let page = self.next.take().or_else(|| self.pages.next());
            let Some(page) = page else { return Ok(None) };
            let is_over = match self.access {
                Access::Read => running.world.is_far_ahead(),
                Access::WritePrivate => running.world.turn_is_over(),
            };
            if is_over {
                self.next = Some(page);
                return Ok(Some(Pause::Turn));
            }
            if page >= self.beyond {
                let step = running.program.step_name(thread, step);
                return Err(running.bus(step, self.mapping, page));
            }
            let (area, open, mut task) = running.through(self.mapping);
            let at = area.locate(page);
            self.fault = task.begin_touch(&at, self.access, open);
            if self.access == Access::WritePrivate {
                area.mapping.copied(at.index);
            }
            if self.fault.is_none() {
                self.thinking.begin();
            }
        }
    }
}

impl ReadCalls {
    /// Goes on until all blocks are read, or the thread has to pause.
    fn go_on<C: PageCache, L: Log>(
        &mut self,
        running: &mut Running<'_, '_, C, L>,
    ) -> Result<Option<Pause>, Error> {
        let open = &mut running.opens[self.open];
        let mut task = Task { world: &mut running.world, process: &mut running.process };
        loop {
            if let Some(read) = &mut self.read {
                if let Some(pause) = read.go_on(&mut task, open)? {
                    return Ok(Some(pause));
                }
                self.read = None;
                self.thinking.begin();
            }
            if !self.thinking.is_over(task.world) {
                return Ok(Some(Pause::Turn));
            }
            let block = self.next.take().or_else(|| self.blocks.next());
            let Some(block) = block else { return Ok(None) };
            if task.world.turn_is_over() {
                self.next = Some(block);
                return Ok(Some(Pause::Turn));
            }
            let offset = self.offset_bytes + block.offset_bytes;
            self.read = Some(task.begin_read(offset, block.len_bytes, open));
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
        self.left_ns = world.think(self.left_ns);
        let is_over = self.left_ns == 0;
        if is_over {
            world.settle();
        }
        is_over
    }
}
