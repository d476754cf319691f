//! Tasks that wait for what is being read.

use std::collections::BTreeMap;

use filemap_core::units::{FileId, PageIndex};
use filemap_job::waits::Cause;

use crate::device::Run;
use crate::per_task::PerTask;

/// Why an access does not go on now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Something else comes first.
    Turn,
    /// The same, in the kernel: its CPU is its own, whatever the timer says.
    InKernel,
    /// It spins for a lock: it keeps its CPU, and looks again.
    Spins,
    /// Other CPUs, which run in turn, have to answer: entries of their TLBs are gone.
    Answers,
    /// The folio of this file that holds this page is being read.
    Folio(FileId, PageIndex),
    /// Memory is full of what is being read.
    Room,
    /// A step of another thread, which its next step waits for, is not done.
    Step,
    /// A lock of its process is not to be had.
    Lock(Cause),
    /// Nor is it after the task was woken to ask for it again: it is still the same wait.
    StillLock(Cause),
    /// It sleeps until this time.
    Sleep(u64),
    /// The same, as it is above `memory.high`.
    Throttled(u64),
    /// What it reads past the page cache has arrived at this time.
    Direct(u64),
}

/// A task that can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// Which.
    pub task: usize,
    /// Since when.
    pub at_ns: u64,
    /// It waited for a folio, not for room.
    pub has_folio: bool,
}

/// Tasks by what they wait for.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By file and page; those of one page in the order in which they came.
    for_folios: BTreeMap<(FileId, PageIndex, u64), usize>,
    /// Where in `for_folios` those are that do not sleep: they refer to the folio until they go on.
    awake: PerTask<(FileId, PageIndex, u64)>,
    /// For anything to arrive, in the order in which they came.
    for_room: Vec<usize>,
    woken: Vec<Woken>,
    came: u64,
}

impl Waiting {
    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.for_folios.is_empty() && self.for_room.is_empty()
    }

    /// The task `task` waits from now on for the folio, or for room where none is given.
    pub fn add(&mut self, task: usize, folio: Option<(FileId, PageIndex)>) {
        match folio {
            Some((file, index)) => {
                self.for_folios.insert((file, index, self.came), task);
                self.came += 1;
            }
            None => self.for_room.push(task),
        }
    }

    /// The task `task` refers to the folio, does not sleep, and will go on later.
    pub fn refer(&mut self, task: usize, file: FileId, index: PageIndex) {
        self.awake.insert(task, (file, index, self.came));
        self.add(task, Some((file, index)));
    }

    /// The task `task` goes on.
    #[inline]
    pub fn goes_on(&mut self, task: usize) {
        if let Some(at) = self.awake.take(task) {
            self.for_folios.remove(&at);
        }
    }

    /// Wakes those that wait for a page of `run`, which arrived at `at_ns`. Gives `each` the task
    /// and its page, and those that do not sleep as well.
    #[inline(never)]
    pub fn arrived(&mut self, run: Run, at_ns: u64, mut each: impl FnMut(usize, PageIndex)) {
        if self.for_folios.is_empty() {
            return;
        }
        let (from, end) = ((run.file, run.start, 0), (run.file, run.start + run.pages, 0));
        while let Some((&at, &task)) = self.for_folios.range(from..end).next() {
            self.for_folios.remove(&at);
            each(task, at.1);
            if self.awake.take(task).is_none() {
                self.woken.push(Woken { task, at_ns, has_folio: true });
            }
        }
    }

    /// Wakes those that wait for room, after those whose folio has arrived: these would find it
    /// gone otherwise.
    #[inline(never)]
    pub fn something_arrived(&mut self, at_ns: u64) {
        if self.for_room.is_empty() {
            return;
        }
        let tasks = self.for_room.drain(..);
        self.woken.extend(tasks.map(|task| Woken { task, at_ns, has_folio: false }));
    }

    /// Wakes a task that waited for something else, at `at_ns`.
    pub fn wake(&mut self, task: usize, at_ns: u64) {
        self.woken.push(Woken { task, at_ns, has_folio: true });
    }

    /// Those that were woken, in order.
    pub fn take_woken(&mut self) -> impl Iterator<Item = Woken> + use<> {
        std::mem::take(&mut self.woken).into_iter()
    }
}
