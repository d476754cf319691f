//! How far the accesses of a child had come each time that the kernel summed up statistics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{Builder, sleep};
use std::time::Instant;

use super::FLUSH_PERIOD;
use crate::Error;

/// Accesses that the only thread of this process has begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// What that was, after each period.
static ACCESS_COUNTS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Maximum number of periods that are recorded; runs are shorter.
const MAX_PERIODS: usize = 1 << 12;

/// Its stack, which is locked into memory.
const STACK_BYTES: usize = 64 << 10;

/// A thread of its own that looks how far the accesses have come.
pub(super) struct FlushWatch(Arc<Barrier>);

impl FlushWatch {
    /// Starts the thread, which waits. All the memory that it needs is there then.
    pub(super) fn start() -> Result<FlushWatch, Error> {
        // Ones are written, so that the memory is there; zeros would not be.
        let mut seen = vec![1; MAX_PERIODS];
        seen.clear();
        *ACCESS_COUNTS.lock().expect("nobody panics") = seen;
        let begin = Arc::new(Barrier::new(2));
        let body = {
            let begin = begin.clone();
            move || watch(&begin)
        };
        let started = Builder::new().stack_size(STACK_BYTES).spawn(body);
        started.map_err(|error| Error::call("start a thread of the probe", error))?;
        Ok(FlushWatch(begin))
    }

    /// The first period begins now.
    pub(super) fn begin(&self) {
        self.0.wait();
    }

    /// Accesses that had begun after each period.
    pub(super) fn access_counts(&self) -> Vec<u64> {
        ACCESS_COUNTS.lock().expect("nobody panics").clone()
    }
}

/// Notes that the only thread begins an access.
pub(super) fn note_access() {
    BEGUN.store(BEGUN.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// It goes with the process.
fn watch(begin: &Barrier) {
    begin.wait();
    let mut next = Instant::now();
    for _ in 0..MAX_PERIODS {
        next += FLUSH_PERIOD;
        sleep(next.saturating_duration_since(Instant::now()));
        ACCESS_COUNTS.lock().expect("nobody panics").push(BEGUN.load(Ordering::Relaxed));
    }
}
