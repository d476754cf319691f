//! Both kinds of locks of an address space, as the tasks of a program take them.

use filemap_core::decision::Lock;

use super::mmap_lock::{Holder, MmapLock, TaskId, Woken};
use super::vma_lock::VmaLocks;

/// What became of the wish for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The task has it.
    Has,
    /// The lock of a VMA is not to be had: somebody writes to it.
    Refused,
    /// The task waits, and will be woken.
    Waits,
}

/// `mmap_lock` and the locks of the VMAs of an address space that several tasks share.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    mmap_lock: MmapLock,
    vmas: VmaLocks,
    /// The writer that waits for faults inside of a VMA that it has marked.
    vma_writer: Option<TaskId>,
    /// Tasks that have been woken with `mmap_lock` to read, and have not run since.
    granted: Vec<TaskId>,
    woken: Vec<Woken>,
}

impl Locks {
    /// A fault of `task` in `vma` asks for `lock`, or asks again.
    pub fn read(&mut self, task: TaskId, lock: Lock, vma: u64, now_ns: u64) -> Taken {
        match lock {
            Lock::Vma if self.vmas.read(vma) => Taken::Has,
            Lock::Vma => Taken::Refused,
            Lock::Mmap if self.was_granted(task) => Taken::Has,
            Lock::Mmap if self.mmap_lock.read(task, now_ns, &mut self.woken) => Taken::Has,
            Lock::Mmap => Taken::Waits,
        }
    }

    fn was_granted(&mut self, task: TaskId) -> bool {
        let at = self.granted.iter().position(|granted| *granted == task);
        at.map(|at| self.granted.swap_remove(at)).is_some()
    }

    /// Drops `lock`, which a fault in `vma` holds.
    pub fn release(&mut self, lock: Lock, vma: u64, now_ns: u64) {
        match lock {
            Lock::Mmap => self.mmap_lock.release_read(now_ns, &mut self.woken),
            Lock::Vma => {
                if self.vmas.release(vma)
                    && let Some(task) = self.vma_writer.take()
                {
                    self.woken.push(Woken { task, has_lock: false });
                }
            }
        }
    }

    /// `task` asks for `mmap_lock` to write; where it `was_woken`, again.
    pub fn write(&mut self, task: TaskId, was_woken: bool, now_ns: u64) -> Taken {
        let has = if was_woken {
            self.mmap_lock.write_again(task, now_ns)
        } else {
            self.mmap_lock.write(task, now_ns)
        };
        if has { Taken::Has } else { Taken::Waits }
    }

    /// Who has `mmap_lock`.
    pub fn holder(&self) -> Holder {
        self.mmap_lock.holder()
    }

    /// `task` spins for `mmap_lock` to write, where it may and nobody does yet. The kernel has more
    /// of them spin in a queue, each for the one before it; here they sleep.
    pub fn spin(&mut self, task: TaskId) -> bool {
        !self.mmap_lock.is_spun_for() && self.mmap_lock.spin(task)
    }

    /// It spins no more; `is_long` where readers have had the lock for long.
    pub fn end_spin(&mut self, task: TaskId, is_long: bool) {
        if is_long { self.mmap_lock.end_long_spin(task) } else { self.mmap_lock.end_spin(task) }
    }

    /// `task`, which has `mmap_lock` to write, marks `vma`, and waits for the faults inside.
    pub fn mark(&mut self, task: TaskId, vma: u64) -> Taken {
        if self.vmas.mark(vma) {
            return Taken::Has;
        }
        self.vma_writer = Some(task);
        Taken::Waits
    }

    /// The writer goes on as a reader.
    pub fn downgrade(&mut self, task: TaskId) {
        self.vmas.end_write();
        self.mmap_lock.downgrade(task, &mut self.woken);
    }

    /// The writer is done.
    pub fn release_write(&mut self, task: TaskId, now_ns: u64) {
        self.vmas.end_write();
        self.mmap_lock.release_write(task, now_ns, &mut self.woken);
    }

    /// The tasks that the last calls have woken, in order.
    pub fn take_woken(&mut self) -> impl Iterator<Item = TaskId> {
        let with_lock = self.woken.iter().filter(|woken| woken.has_lock).map(|woken| woken.task);
        self.granted.extend(with_lock);
        self.woken.drain(..).map(|woken| woken.task)
    }
}
