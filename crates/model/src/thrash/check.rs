//! What holds after every event.

use filemap_core::decision::{Lock, Log};
use filemap_core::page_cache::PageCache;

use super::ending::{Error, Holder};
use super::machine::Machine;
use super::task::{Kind, Stage, Task};
use super::waits::Cause;

impl<C: PageCache, L: Log> Machine<'_, C, L> {
    /// Checks what holds after every event.
    ///
    /// # Panics
    /// When something does not.
    pub fn check(&self) {
        let cached = self.cached();
        let charged = cached
            + self.freeing_pages
            + self.charged_pages
            + self.kernel_and_stacks()
            + self.cgroup.stocked();
        assert_eq!(self.cgroup.usage(), charged, "every charge is for something");
        assert!(self.locked_pages <= cached, "what is locked is cached");
        self.mmap_lock.check();
        let readers = self.tasks.iter().filter(|task| has_mmap_lock_to_read(task)).count();
        assert_eq!(self.mmap_lock.readers() as usize, readers, "each reader is a task");
        if self.ending.is_some() {
            return;
        }
        let running = self.tasks.iter().filter(|task| task.cpu.is_some()).count();
        assert_eq!(running + self.cpus.idle(), self.job.cpus, "each CPU has a task or is idle");
        for (number, task) in self.tasks.iter().enumerate() {
            assert!(locks_side_by_side(task), "cached pages lie amid what task {number} locks");
            assert!(task.cpu.is_none() || task.waits.is_none(), "who runs waits for nothing");
            let Some((cause, since_ns)) = task.waits else { continue };
            assert!(since_ns <= self.now_ns, "no wait begins later");
            let waits_to_read =
                matches!(cause, Cause::BehindWriter | Cause::BehindWindow | Cause::BehindReaders);
            let is_granted = task.fault.as_ref().is_some_and(|fault| fault.held.is_some());
            if waits_to_read && !is_granted {
                let is_queued = self.mmap_lock.waiting().any(|(waiter, _)| waiter == number);
                assert!(is_queued, "task {number} waits for a lock that does not know it");
            }
        }
    }

    /// Nothing will happen any more.
    pub fn deadlock(&self) -> Error {
        let holder = |(task, of): (usize, &Task)| Holder {
            task,
            holds: holds(of, self.mmap_lock.writer() == Some(task)),
            waits_for: of.waits.map_or("nothing", |(cause, _)| cause.name()),
        };
        let holders = self.tasks.iter().enumerate().map(holder).collect();
        Error::Deadlock { at_ns: self.now_ns, holders }
    }
}

/// Whether nothing lies between the folios that a window has added and not read.
fn locks_side_by_side(task: &Task) -> bool {
    task.window.as_ref().is_none_or(|window| {
        window.added.windows(2).all(|pair| pair[0].start + pair[0].pages() == pair[1].start)
    })
}

fn has_mmap_lock_to_read(task: &Task) -> bool {
    let in_fault = task.fault.as_ref().is_some_and(|fault| fault.held == Some(Lock::Mmap));
    in_fault || task.kind == Kind::Reader && has_zapped(task)
}

fn has_zapped(task: &Task) -> bool {
    matches!(task.stage, Stage::Zapping | Stage::Zapped)
}

fn holds(task: &Task, is_writer: bool) -> &'static str {
    match task.fault.as_ref().and_then(|fault| fault.held) {
        _ if is_writer => "mmap_lock to write",
        Some(Lock::Mmap) => "mmap_lock to read",
        Some(Lock::Vma) => "the lock of its VMA",
        None if has_zapped(task) => "mmap_lock to read",
        None => "no lock",
    }
}
