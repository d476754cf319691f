//! The locks of an address space (`mm_struct`).
//!
//! `mmap_lock` is fair: a reader queues behind a waiting writer. A woken writer that finds the lock
//! taken gets it handed off after 4 ms. A release wakes at most 256 readers; they hold the lock
//! from then on, even while they wait for a CPU. A writer of `mmap_lock` also write-locks the VMAs
//! that it changes, and waits for faults that hold them; a fault that finds its VMA marked falls
//! back to `mmap_lock`. A process with one thread, or whose threads never write-lock `mmap_lock`,
//! keeps no locks, since nobody can wait.
//!
//! A writer spins before it sleeps: as long as the writer holding the lock is on a CPU, and for
//! 10.5 to 25 us if readers hold it. A spinner gets the lock as soon as it is released, ahead of
//! sleepers. It gives up when its time slice ends or the owner loses its CPU. After readers held
//! the lock past the threshold, no writer spins until one has had the lock. Only one writer spins
//! at a time. A spin that succeeds is not counted as a wait.

pub mod mmap_lock;
pub mod vma_lock;

use filemap_core::decision::Lock;

use self::mmap_lock::{LockWakeup, MmapLock, TaskId};
use self::vma_lock::VmaLocks;

pub use self::mmap_lock::Holder;

/// Result of requesting a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockResult {
    /// The task holds the lock.
    Acquired,
    /// The VMA lock cannot be taken because a writer has marked the VMA.
    Refused,
    /// The task is queued and will be woken.
    Queued,
}

/// `mmap_lock` and the VMA locks of an address space shared by several tasks.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    mmap_lock: MmapLock,
    vmas: VmaLocks,
    /// The writer waiting for faults inside a VMA that it has marked.
    vma_writer: Option<TaskId>,
    /// Tasks woken with `mmap_lock` held for reading that have not run since.
    granted: Vec<TaskId>,
    woken: Vec<LockWakeup>,
}

impl Locks {
    /// A fault of `task` in `vma` requests `lock`, possibly again after a wakeup.
    pub fn read(&mut self, task: TaskId, lock: Lock, vma: u64, now_ns: u64) -> LockResult {
        match lock {
            Lock::Vma if self.vmas.start_read(vma) => LockResult::Acquired,
            Lock::Vma => LockResult::Refused,
            Lock::Mmap if self.take_grant(task) => LockResult::Acquired,
            Lock::Mmap if self.mmap_lock.lock_read(task, now_ns, &mut self.woken) => {
                LockResult::Acquired
            }
            Lock::Mmap => LockResult::Queued,
        }
    }

    fn take_grant(&mut self, task: TaskId) -> bool {
        let at = self.granted.iter().position(|granted| *granted == task);
        at.map(|at| self.granted.swap_remove(at)).is_some()
    }

    /// Drops `lock`, held by a fault in `vma`.
    pub fn release(&mut self, lock: Lock, vma: u64, now_ns: u64) {
        match lock {
            Lock::Mmap => self.mmap_lock.release_read(now_ns, &mut self.woken),
            Lock::Vma => {
                if self.vmas.end_read(vma)
                    && let Some(task) = self.vma_writer.take()
                {
                    self.woken.push(LockWakeup { task, has_lock: false });
                }
            }
        }
    }

    /// `task` requests `mmap_lock` for writing; `was_woken` if it was queued before.
    pub fn write(&mut self, task: TaskId, was_woken: bool, now_ns: u64) -> LockResult {
        let has = if was_woken {
            self.mmap_lock.retry_write(task, now_ns)
        } else {
            self.mmap_lock.lock_write(task, now_ns)
        };
        if has { LockResult::Acquired } else { LockResult::Queued }
    }

    /// Holder of `mmap_lock`.
    pub fn holder(&self) -> Holder {
        self.mmap_lock.holder()
    }

    /// `task` starts spinning for `mmap_lock` if it may and nobody else does. In the kernel further
    /// spinners queue on an MCS lock (`osq_lock`); here they sleep.
    pub fn spin(&mut self, task: TaskId) -> bool {
        !self.mmap_lock.has_spinner() && self.mmap_lock.spin(task)
    }

    /// Stops spinning; `is_long` if readers held the lock past the spin threshold.
    pub fn end_spin(&mut self, task: TaskId, is_long: bool) {
        if is_long { self.mmap_lock.time_out_spin(task) } else { self.mmap_lock.end_spin(task) }
    }

    /// `task`, the writer of `mmap_lock`, marks `vma` and waits for the faults inside.
    pub fn start_write(&mut self, task: TaskId, vma: u64) -> LockResult {
        if self.vmas.start_write(vma) {
            return LockResult::Acquired;
        }
        self.vma_writer = Some(task);
        LockResult::Queued
    }

    /// Downgrades the writer to a reader.
    pub fn downgrade(&mut self, task: TaskId) {
        self.vmas.end_write_all();
        self.mmap_lock.downgrade(task, &mut self.woken);
    }

    /// Releases the write lock.
    pub fn release_write(&mut self, task: TaskId, now_ns: u64) {
        self.vmas.end_write_all();
        self.mmap_lock.release_write(task, now_ns, &mut self.woken);
    }

    /// Tasks woken since the last call, in order.
    pub fn take_woken(&mut self) -> impl Iterator<Item = TaskId> {
        let with_lock = self.woken.iter().filter(|woken| woken.has_lock).map(|woken| woken.task);
        self.granted.extend(with_lock);
        self.woken.drain(..).map(|woken| woken.task)
    }
}
