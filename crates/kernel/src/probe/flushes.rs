//! Records the number of accesses at each flush of the kernel's cgroup statistics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{Builder, sleep};
use std::time::Instant;

use super::FLUSH_PERIOD;
use crate::Error;

/// Number of accesses begun by the only thread of this process.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Its value at the end of each period.
static ACCESS_COUNTS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Maximum number of recorded periods; runs are shorter.
const MAX_PERIODS: usize = 1 << 12;

/// Stack size of the recording thread; the stack is locked into memory.
const STACK_BYTES: usize = 64 << 10;

/// The recording thread.
pub(super) struct FlushWatch(Arc<Barrier>);

impl FlushWatch {
    /// Starts the thread, which waits for [`FlushWatch::begin`]. All its memory is allocated and
    /// populated.
    pub(super) fn start() -> Result<FlushWatch, Error> {
        // Ones, because zeros would not populate the memory.
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

    /// Begins the first period.
    pub(super) fn begin(&self) {
        self.0.wait();
    }

    /// Number of accesses begun by the end of each period.
    pub(super) fn access_counts(&self) -> Vec<u64> {
        ACCESS_COUNTS.lock().expect("nobody panics").clone()
    }
}

/// Counts an access of the only thread.
pub(super) fn note_access() {
    BEGUN.store(BEGUN.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Never returns; the thread ends with the process.
fn watch(begin: &Barrier) {
    begin.wait();
    let mut next = Instant::now();
    for _ in 0..MAX_PERIODS {
        next += FLUSH_PERIOD;
        sleep(next.saturating_duration_since(Instant::now()));
        ACCESS_COUNTS.lock().expect("nobody panics").push(BEGUN.load(Ordering::Relaxed));
    }
}
