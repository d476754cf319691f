//! `mmap_lock`: a reader-writer semaphore that is fair.

use std::collections::VecDeque;

/// A task, by its number.
pub type TaskId = usize;

/// Most readers that one release wakes (`MAX_READERS_WAKEUP`).
pub const READERS_WOKEN: usize = 256;

/// How long a writer at the head of the queue lets others take the lock before it
/// (`RWSEM_WAIT_TIMEOUT`: 1/250 of a second).
pub const HANDOFF_NS: u64 = 4_000_000;

/// What a task wants to do under the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Share it.
    Read,
    /// Have it alone.
    Write,
}

/// A task that was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// Which.
    pub task: TaskId,
    /// It has the lock. Otherwise it is at the head of the queue, and tries again.
    pub has_lock: bool,
}

/// A fair reader-writer semaphore.
///
/// Who comes while another waits queues behind it, but for one: a lock that is free while the
/// writer at the head of the queue is on its way can be taken by whoever comes. A writer that lost
/// it so for [`HANDOFF_NS`] gets it handed over. A release with a reader at the head wakes all
/// readers of the queue, those behind writers as well, up to a cap; they have the lock from then
/// on, before they run.
///
/// Mirrors `rwsem_down_read_slowpath`, `rwsem_down_write_slowpath` and `rwsem_mark_wake`, 6.12 and
/// 6.18, without the spinning of writers. Test: `tests/mmap_lock.rs`.
#[derive(Clone, Debug, Default)]
pub struct MmapLock {
    readers: u32,
    writer: Option<TaskId>,
    queue: VecDeque<Waiter>,
    /// The writer at the head of the queue is the next to have the lock.
    is_handed_off: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    task: TaskId,
    want: Want,
    since_ns: u64,
    /// It is on its way to try again.
    is_woken: bool,
}

impl MmapLock {
    /// Asks for the lock to read. `false`: the task waits, and will be woken with the lock.
    pub fn read(&mut self, task: TaskId, now_ns: u64, woken: &mut Vec<Woken>) -> bool {
        let passes =
            self.writer.is_none() && self.queue.is_empty() || self.is_free() && !self.is_handed_off;
        if !passes {
            self.queue.push_back(Waiter {
                task,
                want: Want::Read,
                since_ns: now_ns,
                is_woken: false,
            });
            return false;
        }
        self.readers += 1;
        if self.head() == Some(Want::Read) {
            self.grant_readers(woken);
        }
        true
    }

    /// Asks for the lock to write. `false`: the task waits, and will be woken to ask
    /// [`MmapLock::write_again`].
    pub fn write(&mut self, task: TaskId, now_ns: u64) -> bool {
        if self.is_free() && !self.is_handed_off {
            self.writer = Some(task);
            return true;
        }
        self.queue.push_back(Waiter { task, want: Want::Write, since_ns: now_ns, is_woken: false });
        false
    }

    /// Asks again, after it was woken at the head of the queue. `false`: it waits on, there.
    ///
    /// # Panics
    /// When another task is at the head.
    pub fn write_again(&mut self, task: TaskId, now_ns: u64) -> bool {
        let is_free = self.is_free();
        let head = self.queue.front_mut().expect("who was woken is in the queue");
        assert!(head.task == task && head.want == Want::Write, "it is at the head");
        if is_free {
            self.queue.pop_front();
            self.writer = Some(task);
            self.is_handed_off = false;
            return true;
        }
        head.is_woken = false;
        self.is_handed_off |= now_ns.saturating_sub(head.since_ns) > HANDOFF_NS;
        false
    }

    /// A reader is done.
    ///
    /// # Panics
    /// When there is none.
    pub fn release_read(&mut self, woken: &mut Vec<Woken>) {
        self.readers = self.readers.checked_sub(1).expect("a reader has the lock");
        if self.readers == 0 {
            self.wake(woken);
        }
    }

    /// The writer is done.
    ///
    /// # Panics
    /// When it is not the writer.
    pub fn release_write(&mut self, task: TaskId, woken: &mut Vec<Woken>) {
        assert_eq!(self.writer.take(), Some(task), "the writer has the lock");
        self.wake(woken);
    }

    /// The writer goes on as a reader.
    ///
    /// # Panics
    /// When it is not the writer.
    pub fn downgrade(&mut self, task: TaskId, woken: &mut Vec<Woken>) {
        assert_eq!(self.writer.take(), Some(task), "the writer has the lock");
        self.readers = 1;
        if self.head() == Some(Want::Read) {
            self.grant_readers(woken);
        }
    }

    /// Readers that have the lock.
    pub fn readers(&self) -> u32 {
        self.readers
    }

    /// The writer that has it.
    pub fn writer(&self) -> Option<TaskId> {
        self.writer
    }

    /// Tasks that wait, first in the queue first.
    pub fn waiting(&self) -> impl Iterator<Item = (TaskId, Want)> + '_ {
        self.queue.iter().map(|waiter| (waiter.task, waiter.want))
    }

    /// Checks what holds between any two calls.
    ///
    /// # Panics
    /// When a waiter would never be woken, or the lock has a reader beside a writer.
    pub fn check(&self) {
        assert!(self.writer.is_none() || self.readers == 0, "a writer has the lock alone");
        let Some(head) = self.queue.front() else {
            assert!(!self.is_handed_off, "nobody waits for a hand-off");
            return;
        };
        if self.is_free() {
            assert!(head.is_woken && head.want == Want::Write, "a free lock has woken its head");
        }
        assert!(
            !self.is_handed_off || head.want == Want::Write,
            "only writers are handed the lock"
        );
    }

    fn is_free(&self) -> bool {
        self.writer.is_none() && self.readers == 0
    }

    fn head(&self) -> Option<Want> {
        self.queue.front().map(|head| head.want)
    }

    fn wake(&mut self, woken: &mut Vec<Woken>) {
        match self.queue.front_mut() {
            Some(head) if head.want == Want::Read => self.grant_readers(woken),
            Some(head) if !head.is_woken => {
                head.is_woken = true;
                woken.push(Woken { task: head.task, has_lock: false });
            }
            _ => {}
        }
    }

    /// The readers of the queue have the lock, as many as one release wakes.
    fn grant_readers(&mut self, woken: &mut Vec<Woken>) {
        let before = woken.len();
        let most = before + READERS_WOKEN;
        self.queue.retain(|waiter| {
            let stays = waiter.want == Want::Write || woken.len() >= most;
            if !stays {
                woken.push(Woken { task: waiter.task, has_lock: true });
            }
            stays
        });
        self.readers += (woken.len() - before) as u32;
    }
}
