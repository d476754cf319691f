//! How the threads of a process begin: in order, and at once where there are CPUs for them.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, OnceLock};
use std::thread::{Thread, park};
use std::time::Instant;

use super::cpus::Modest;

/// The start of all threads. One barrier for all would not do: on a CPU that they share, a thread
/// that is woken mostly runs before the one that woke it, so that the last begins first.
pub(super) struct Start {
    ready: Barrier,
    /// All but the first.
    others: OnceLock<Vec<Thread>>,
    /// Threads that begin together: there is a CPU for each.
    together: usize,
    /// How many may begin.
    may_begin: AtomicUsize,
    /// How many of those that begin together are on a CPU.
    on_cpu: AtomicUsize,
    /// When the last of them came: none has gone on before.
    begins: Mutex<Instant>,
}

impl Start {
    /// For so many threads on so many CPUs.
    pub(super) fn new(threads: usize, cpus: usize) -> Start {
        Start {
            ready: Barrier::new(threads),
            others: OnceLock::new(),
            together: threads.min(cpus.max(1)),
            may_begin: AtomicUsize::new(0),
            on_cpu: AtomicUsize::new(0),
            begins: Mutex::new(Instant::now()),
        }
    }

    /// The first thread names the others, which it has started, and waits until all are ready.
    pub(super) fn all_are_ready(&self, others: Vec<Thread>) {
        self.others.get_or_init(|| others);
        self.ready.wait();
    }

    /// Lets the first thread begin, which calls this, and with it the others. Returns a time before
    /// which none of them has begun: this thread may be the last that goes on.
    pub(super) fn begin_first(&self) -> Instant {
        (0..self.together).for_each(|number| self.let_begin(number));
        self.begin(0);
        *self.begins.lock().expect("nobody panics")
    }

    /// Another thread is ready, and waits until it may begin.
    pub(super) fn wait(&self, number: usize) {
        self.ready.wait();
        let modest = Modest::begin();
        while self.may_begin.load(Ordering::Acquire) <= number {
            park();
        }
        drop(modest);
        self.begin(number);
    }

    /// Those for which there is a CPU wait for each other on it. Each of the rest comes behind the
    /// one before it, which wakes it when it gets a CPU itself.
    fn begin(&self, number: usize) {
        if number < self.together {
            let mut begins = self.begins.lock().expect("nobody panics");
            *begins = Instant::now();
            drop(begins);
            self.on_cpu.fetch_add(1, Ordering::AcqRel);
            while self.on_cpu.load(Ordering::Acquire) < self.together {
                spin_loop();
            }
        }
        if number + 1 >= self.together {
            self.let_begin(number + 1);
        }
    }

    fn let_begin(&self, number: usize) {
        self.may_begin.fetch_max(number + 1, Ordering::AcqRel);
        let others = self.others.get().expect("they are named before any begins");
        if let Some(other) = number.checked_sub(1).and_then(|other| others.get(other)) {
            other.unpark();
        }
    }
}
