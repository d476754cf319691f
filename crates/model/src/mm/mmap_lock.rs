//! `mmap_lock`: a fair reader-writer semaphore.

use std::collections::VecDeque;

/// Index of a task.
pub type TaskId = usize;

/// Maximum number of readers that one release wakes (`MAX_READERS_WAKEUP`).
pub const MAX_READERS_WAKEUP: usize = 256;

/// How long the writer at the head of the queue lets others take the lock first
/// (`RWSEM_WAIT_TIMEOUT`: 1/250 s).
pub const HANDOFF_TIMEOUT_NS: u64 = 4_000_000;

/// Spin time for a reader-owned lock: half of this, plus half a microsecond per reader up to
/// [`MAX_SPIN_READERS`] (`rwsem_rspin_threshold`).
const READER_SPIN_NS: u64 = 20_000;
const MAX_SPIN_READERS: u32 = 30;

/// Holder of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The lock is free.
    Nobody,
    /// A writer.
    Writer(TaskId),
    /// This many readers.
    Readers(u32),
}

impl Holder {
    /// How long a writer spins while readers hold the lock.
    pub fn reader_spin_ns(self) -> Option<u64> {
        match self {
            Holder::Readers(count) => {
                Some((READER_SPIN_NS + u64::from(count.min(MAX_SPIN_READERS)) * 1_000) / 2)
            }
            _ => None,
        }
    }
}

/// How a task takes the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Shared.
    Read,
    /// Exclusive.
    Write,
}

/// A woken task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWakeup {
    /// The task.
    pub task: TaskId,
    /// It holds the lock. Otherwise it is at the head of the queue and retries.
    pub has_lock: bool,
}

/// A fair reader-writer semaphore.
///
/// A newcomer queues behind waiters, with two exceptions: a free lock can be taken by anybody while
/// the woken writer at the head is on its way, and a spinning writer takes the lock as soon as it
/// is released. A writer that keeps losing for [`HANDOFF_TIMEOUT_NS`] gets the lock handed off. A
/// release with a reader at the head wakes all queued readers up to a cap, including those behind
/// writers; they own the lock from then on, before they run. Readers that lose to spinners for
/// [`HANDOFF_TIMEOUT_NS`] get the lock with the next release.
///
/// Mirrors `rwsem_down_read_slowpath`, `rwsem_down_write_slowpath`, `rwsem_optimistic_spin` and
/// `rwsem_mark_wake`, 6.12 and 6.18. Test: `tests/mmap_lock.rs`.
#[derive(Clone, Debug, Default)]
pub struct MmapLock {
    readers: u32,
    writer: Option<TaskId>,
    queue: VecDeque<Waiter>,
    /// The lock is reserved for the head of the queue (`RWSEM_FLAG_HANDOFF`).
    is_handed_off: bool,
    /// Spinning writers in order of arrival, each on a CPU.
    spinners: VecDeque<TaskId>,
    /// Readers held the lock past the spin threshold: nobody spins until a writer has had it
    /// (`OWNER_NONSPINNABLE`).
    is_nonspinnable: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    task: TaskId,
    mode: LockMode,
    since_ns: u64,
    /// It was woken to retry.
    is_woken: bool,
}

impl MmapLock {
    /// Requests the lock for reading. `false`: the task is queued and will be woken holding the
    /// lock.
    pub fn lock_read(&mut self, task: TaskId, now_ns: u64, woken: &mut Vec<LockWakeup>) -> bool {
        let passes =
            self.writer.is_none() && self.queue.is_empty() || self.is_free() && !self.is_handed_off;
        if !passes {
            self.queue.push_back(Waiter {
                task,
                mode: LockMode::Read,
                since_ns: now_ns,
                is_woken: false,
            });
            return false;
        }
        self.readers += 1;
        if self.head() == Some(LockMode::Read) {
            self.grant_readers(woken);
        }
        true
    }

    /// Requests the lock for writing. `false`: the task is queued and will be woken to call
    /// [`MmapLock::retry_write`].
    pub fn lock_write(&mut self, task: TaskId, now_ns: u64) -> bool {
        if self.try_write(task) {
            return true;
        }
        self.queue.push_back(Waiter {
            task,
            mode: LockMode::Write,
            since_ns: now_ns,
            is_woken: false,
        });
        false
    }

    /// Takes the lock for writing if it is available immediately.
    pub fn try_write(&mut self, task: TaskId) -> bool {
        let has = self.is_free() && !self.is_handed_off;
        if has {
            self.grant_writer(task);
        }
        has
    }

    /// `task` starts spinning if spinning is allowed. It owns the lock once it is the
    /// [`Holder::Writer`].
    pub fn spin(&mut self, task: TaskId) -> bool {
        let spins = !self.is_nonspinnable;
        if spins {
            self.spinners.push_back(task);
        }
        spins
    }

    /// Whether a writer is spinning.
    pub fn has_spinner(&self) -> bool {
        !self.spinners.is_empty()
    }

    /// `task` stops spinning.
    pub fn end_spin(&mut self, task: TaskId) {
        self.spinners.retain(|spinning| *spinning != task);
    }

    /// `task` stops spinning because readers held the lock past the threshold.
    pub fn time_out_spin(&mut self, task: TaskId) {
        self.end_spin(task);
        self.is_nonspinnable = true;
    }

    /// Retries after a wakeup at the head of the queue. `false`: it stays queued there.
    ///
    /// # Panics
    /// If another task is at the head.
    pub fn retry_write(&mut self, task: TaskId, now_ns: u64) -> bool {
        let is_free = self.is_free();
        let head = self.queue.front_mut().expect("who was woken is in the queue");
        assert!(head.task == task && head.mode == LockMode::Write, "it is at the head");
        if is_free {
            self.queue.pop_front();
            self.grant_writer(task);
            self.is_handed_off = false;
            return true;
        }
        head.is_woken = false;
        self.is_handed_off |= now_ns.saturating_sub(head.since_ns) > HANDOFF_TIMEOUT_NS;
        false
    }

    /// Releases the lock of a reader.
    ///
    /// # Panics
    /// If no reader holds the lock.
    pub fn release_read(&mut self, now_ns: u64, woken: &mut Vec<LockWakeup>) {
        self.readers = self.readers.checked_sub(1).expect("a reader has the lock");
        if self.readers == 0 {
            self.wake(now_ns, woken);
        }
    }

    /// Releases the lock of the writer.
    ///
    /// # Panics
    /// If `task` is not the writer.
    pub fn release_write(&mut self, task: TaskId, now_ns: u64, woken: &mut Vec<LockWakeup>) {
        assert_eq!(self.writer.take(), Some(task), "the writer has the lock");
        self.wake(now_ns, woken);
    }

    /// Downgrades the writer to a reader.
    ///
    /// # Panics
    /// If `task` is not the writer.
    pub fn downgrade(&mut self, task: TaskId, woken: &mut Vec<LockWakeup>) {
        assert_eq!(self.writer.take(), Some(task), "the writer has the lock");
        self.readers = 1;
        if self.head() == Some(LockMode::Read) {
            self.grant_readers(woken);
        }
    }

    /// Holder of the lock.
    pub fn holder(&self) -> Holder {
        match (self.writer, self.readers) {
            (Some(writer), _) => Holder::Writer(writer),
            (None, 0) => Holder::Nobody,
            (None, readers) => Holder::Readers(readers),
        }
    }

    /// Number of readers holding the lock.
    pub fn readers(&self) -> u32 {
        self.readers
    }

    /// The writer holding the lock.
    pub fn writer(&self) -> Option<TaskId> {
        self.writer
    }

    /// Queued tasks, head first.
    pub fn waiters(&self) -> impl Iterator<Item = (TaskId, LockMode)> + '_ {
        self.queue.iter().map(|waiter| (waiter.task, waiter.mode))
    }

    /// Checks the invariants that hold between any two calls.
    ///
    /// # Panics
    /// If a waiter would never be woken, or a reader and a writer hold the lock together.
    pub fn assert_invariants(&self) {
        assert!(self.writer.is_none() || self.readers == 0, "a writer has the lock alone");
        let Some(head) = self.queue.front() else {
            assert!(!self.is_handed_off, "nobody waits for a hand-off");
            return;
        };
        if self.is_free() {
            assert!(
                head.is_woken && head.mode == LockMode::Write,
                "the head was woken when the lock was released"
            );
        }
    }

    fn is_free(&self) -> bool {
        self.writer.is_none() && self.readers == 0
    }

    fn head(&self) -> Option<LockMode> {
        self.queue.front().map(|head| head.mode)
    }

    fn grant_writer(&mut self, task: TaskId) {
        self.writer = Some(task);
        self.is_nonspinnable = false;
    }

    /// The lock has become free. A spinner takes it before any sleeper can run; a writer at the
    /// head is woken anyway.
    fn wake(&mut self, now_ns: u64, woken: &mut Vec<LockWakeup>) {
        if !self.is_handed_off
            && let Some(task) = self.spinners.pop_front()
        {
            self.grant_writer(task);
            let is_long =
                |head: &&Waiter| now_ns.saturating_sub(head.since_ns) > HANDOFF_TIMEOUT_NS;
            let reader = self.queue.front().filter(|head| head.mode == LockMode::Read);
            self.is_handed_off = reader.is_some_and(|head| is_long(&head));
            if reader.is_some() {
                return;
            }
        }
        match self.queue.front_mut() {
            Some(head) if head.mode == LockMode::Read => self.grant_readers(woken),
            Some(head) if !head.is_woken => {
                head.is_woken = true;
                woken.push(LockWakeup { task: head.task, has_lock: false });
            }
            _ => {}
        }
    }

    /// Grants the lock to queued readers, up to the wakeup cap.
    fn grant_readers(&mut self, woken: &mut Vec<LockWakeup>) {
        let before = woken.len();
        let most = before + MAX_READERS_WAKEUP;
        self.queue.retain(|waiter| {
            let stays = waiter.mode == LockMode::Write || woken.len() >= most;
            if !stays {
                woken.push(LockWakeup { task: waiter.task, has_lock: true });
            }
            stays
        });
        self.is_handed_off = false;
        self.readers += (woken.len() - before) as u32;
    }
}
