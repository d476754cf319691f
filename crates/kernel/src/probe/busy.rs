//! Time on the processor between accesses.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// Being busy for so long is tried to know how much longer it takes; so often in a row, and the
/// median of so many rows.
const TRIED: Duration = Duration::from_micros(1);
const IN_A_ROW: u32 = 16;
const ROWS: usize = 9;

/// Keeps a CPU busy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    /// What looking at the clock adds to each time.
    beside: Duration,
}

impl Busy {
    /// Measures the clock, if it is for a thread that `thinks`.
    pub(super) fn new(thinks: bool) -> Busy {
        let exact = Busy { beside: Duration::ZERO };
        if !thinks {
            return exact;
        }
        let mut rows = [(); ROWS].map(|()| {
            let start = Instant::now();
            (0..IN_A_ROW).for_each(|_| exact.be(TRIED));
            start.elapsed()
        });
        rows.sort_unstable();
        Busy { beside: (rows[ROWS / 2] / IN_A_ROW).saturating_sub(TRIED) }
    }

    /// Keeps the CPU of the thread that calls this busy for `time`.
    #[inline]
    pub(super) fn be(self, time: Duration) {
        if time.is_zero() {
            return;
        }
        let start = Instant::now();
        let time = time.saturating_sub(self.beside);
        while start.elapsed() < time {
            spin_loop();
        }
    }
}
