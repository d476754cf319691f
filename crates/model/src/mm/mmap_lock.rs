//! `mmap_lock`: a reader-writer semaphore that is fair.

use std::collections::VecDeque;

/// A task, by its number.
pub type TaskId = usize;

/// Most readers that one release wakes (`MAX_READERS_WAKEUP`).
pub const READERS_WOKEN: usize = 256;

/// How long a writer at the head of the queue lets others take the lock before it
/// (`RWSEM_WAIT_TIMEOUT`: 1/250 of a second).
pub const HANDOFF_NS: u64 = 4_000_000;

/// How long a writer spins for a lock that readers have: half of this, and half a microsecond more
/// for each of them up to [`MOST_READERS`] (`rwsem_rspin_threshold`).
const READERS_SPUN_NS: u64 = 20_000;
const MOST_READERS: u32 = 30;

/// Who has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// It is free.
    Nobody,
    /// A writer.
    Writer(TaskId),
    /// So many readers.
    Readers(u32),
}

impl Holder {
    /// How long a writer spins for readers that do not give the lock up.
    pub fn spun_ns(self) -> Option<u64> {
        match self {
            Holder::Readers(count) => {
                Some((READERS_SPUN_NS + u64::from(count.min(MOST_READERS)) * 1_000) / 2)
            }
            _ => None,
        }
    }
}

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
/// Who comes while another waits queues behind it, but for two: a lock that is free while the
/// writer at the head of the queue is on its way can be taken by whoever comes, and a writer that
/// spins has it as soon as it is given up. A writer that lost it so for [`HANDOFF_NS`] gets it
/// handed over. A release with a reader at the head wakes all readers of the queue, those after
/// writers as well, up to a cap; they have the lock from then on, before they run. Readers that
/// lost it to those who spin for [`HANDOFF_NS`] get it with the next release.
///
/// Mirrors `rwsem_down_read_slowpath`, `rwsem_down_write_slowpath`, `rwsem_optimistic_spin` and
/// `rwsem_mark_wake`, 6.12 and 6.18. Test: `tests/mmap_lock.rs`.
#[derive(Clone, Debug, Default)]
pub struct MmapLock {
    readers: u32,
    writer: Option<TaskId>,
    queue: VecDeque<Waiter>,
    /// The head of the queue is the next to have the lock.
    is_handed_off: bool,
    /// Writers that spin for it, each on a CPU, in the order in which they came.
    spinning: VecDeque<TaskId>,
    /// Readers had it for longer than a writer spins: nobody does before a writer has had it.
    is_held_long: bool,
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
        if self.try_write(task) {
            return true;
        }
        self.queue.push_back(Waiter { task, want: Want::Write, since_ns: now_ns, is_woken: false });
        false
    }

    /// Takes the lock to write, if it can be had at once.
    pub fn try_write(&mut self, task: TaskId) -> bool {
        let has = self.is_free() && !self.is_handed_off;
        if has {
            self.give_to_writer(task);
        }
        has
    }

    /// `task` spins for the lock from now on, where somebody may. It has the lock when it is the
    /// [`Holder::Writer`].
    pub fn spin(&mut self, task: TaskId) -> bool {
        let spins = !self.is_held_long;
        if spins {
            self.spinning.push_back(task);
        }
        spins
    }

    /// Whether somebody spins for it.
    pub fn is_spun_for(&self) -> bool {
        !self.spinning.is_empty()
    }

    /// `task` spins no more.
    pub fn end_spin(&mut self, task: TaskId) {
        self.spinning.retain(|spinning| *spinning != task);
    }

    /// The same, as readers have had the lock for long.
    pub fn end_long_spin(&mut self, task: TaskId) {
        self.end_spin(task);
        self.is_held_long = true;
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
            self.give_to_writer(task);
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
    pub fn release_read(&mut self, now_ns: u64, woken: &mut Vec<Woken>) {
        self.readers = self.readers.checked_sub(1).expect("a reader has the lock");
        if self.readers == 0 {
            self.wake(now_ns, woken);
        }
    }

    /// The writer is done.
    ///
    /// # Panics
    /// When it is not the writer.
    pub fn release_write(&mut self, task: TaskId, now_ns: u64, woken: &mut Vec<Woken>) {
        assert_eq!(self.writer.take(), Some(task), "the writer has the lock");
        self.wake(now_ns, woken);
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

    /// Who has the lock.
    pub fn holder(&self) -> Holder {
        match (self.writer, self.readers) {
            (Some(writer), _) => Holder::Writer(writer),
            (None, 0) => Holder::Nobody,
            (None, readers) => Holder::Readers(readers),
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
    }

    fn is_free(&self) -> bool {
        self.writer.is_none() && self.readers == 0
    }

    fn head(&self) -> Option<Want> {
        self.queue.front().map(|head| head.want)
    }

    fn give_to_writer(&mut self, task: TaskId) {
        self.writer = Some(task);
        self.is_held_long = false;
    }

    /// The lock is free. Who spins sees that before somebody who sleeps can be woken, who is woken
    /// all the same if it is a writer.
    fn wake(&mut self, now_ns: u64, woken: &mut Vec<Woken>) {
        if !self.is_handed_off
            && let Some(task) = self.spinning.pop_front()
        {
            self.give_to_writer(task);
            let is_long = |head: &&Waiter| now_ns.saturating_sub(head.since_ns) > HANDOFF_NS;
            let reader = self.queue.front().filter(|head| head.want == Want::Read);
            self.is_handed_off = reader.is_some_and(|head| is_long(&head));
            if reader.is_some() {
                return;
            }
        }
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
        self.is_handed_off = false;
        self.readers += (woken.len() - before) as u32;
    }
}
