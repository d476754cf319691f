//! Wait queues of tasks, and the reasons for which they pause.

use std::collections::BTreeMap;

use filemap_core::units::{FileId, PageIndex};
use filemap_job::waits::Cause;

use crate::device::PageRun;
use crate::task::PerTask;

/// Why a task pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Another event comes first.
    Yield,
    /// The same inside the kernel, where the task is not preempted by the timer.
    YieldInKernel,
    /// It spins for a lock: it keeps its CPU and checks again.
    Spin,
    /// It waits for other emulated CPUs to acknowledge a TLB flush.
    TlbShootdown,
    /// It waits for the folio of this file that holds this page to be read.
    Folio(FileId, PageIndex),
    /// Memory is full of folios being read.
    Memory,
    /// Its next step depends on a step of another thread.
    Dependency,
    /// It is queued for a lock of its process.
    Lock(Cause),
    /// It is queued again after a wakeup: the same wait continues.
    LockRetry(Cause),
    /// It sleeps until this time.
    Sleep(u64),
    /// It sleeps until this time because it is above `memory.high`.
    Throttled(u64),
    /// Its O_DIRECT read completes at this time.
    DirectIo(u64),
}

/// A woken task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskWakeup {
    /// The task.
    pub task: usize,
    /// When it was woken.
    pub at_ns: u64,
    /// What it waited for.
    pub waited_for: WaitedFor,
}

/// What a woken task waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    /// A page from the device.
    Page,
    /// Memory.
    Memory,
    /// A lock, a time or another thread.
    Other,
}

/// Tasks waiting for folios or for memory.
#[derive(Debug, Default)]
pub struct WaitQueue {
    /// By file and page; tasks for one page in order of arrival.
    for_folios: BTreeMap<(FileId, PageIndex, u64), usize>,
    /// Keys in `for_folios` of tasks that do not sleep: they hold the folio until they run again.
    awake: PerTask<(FileId, PageIndex, u64)>,
    /// Tasks waiting for any completion, in order of arrival.
    for_memory: Vec<usize>,
    woken: Vec<TaskWakeup>,
    sequence: u64,
}

impl WaitQueue {
    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.for_folios.is_empty() && self.for_memory.is_empty()
    }

    /// Puts `task` to sleep until the folio arrives, or until memory may be available if `folio` is
    /// `None`.
    pub fn sleep(&mut self, task: usize, folio: Option<(FileId, PageIndex)>) {
        match folio {
            Some((file, index)) => {
                self.for_folios.insert((file, index, self.sequence), task);
                self.sequence += 1;
            }
            None => self.for_memory.push(task),
        }
    }

    /// `task` holds the folio without sleeping, and runs again later.
    pub fn hold_folio(&mut self, task: usize, file: FileId, index: PageIndex) {
        self.awake.insert(task, (file, index, self.sequence));
        self.sleep(task, Some((file, index)));
    }

    /// `task` runs again.
    #[inline]
    pub fn resume(&mut self, task: usize) {
        if let Some(at) = self.awake.take(task) {
            self.for_folios.remove(&at);
        }
    }

    /// Wakes tasks waiting for pages of `run`, which arrived at `at_ns`. Calls `each` with each
    /// task and its page, including tasks that do not sleep.
    #[inline(never)]
    pub fn wake_for_pages(
        &mut self,
        run: PageRun,
        at_ns: u64,
        mut each: impl FnMut(usize, PageIndex),
    ) {
        if self.for_folios.is_empty() {
            return;
        }
        let (from, end) = ((run.file, run.start, 0), (run.file, run.start + run.pages, 0));
        while let Some((&at, &task)) = self.for_folios.range(from..end).next() {
            self.for_folios.remove(&at);
            each(task, at.1);
            if self.awake.take(task).is_none() {
                self.woken.push(TaskWakeup { task, at_ns, waited_for: WaitedFor::Page });
            }
        }
    }

    /// Wakes tasks waiting for memory. This comes after the wakeups for folios, or they would find
    /// their folios gone.
    #[inline(never)]
    pub fn wake_for_memory(&mut self, at_ns: u64) {
        if self.for_memory.is_empty() {
            return;
        }
        let tasks = self.for_memory.drain(..);
        let waited_for = WaitedFor::Memory;
        self.woken.extend(tasks.map(|task| TaskWakeup { task, at_ns, waited_for }));
    }

    /// Wakes a task that waited for something else.
    pub fn wake(&mut self, task: usize, at_ns: u64) {
        self.woken.push(TaskWakeup { task, at_ns, waited_for: WaitedFor::Other });
    }

    /// Takes the woken tasks, in order.
    pub fn take_woken(&mut self) -> impl Iterator<Item = TaskWakeup> + use<> {
        std::mem::take(&mut self.woken).into_iter()
    }
}
