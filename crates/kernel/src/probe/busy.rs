//! Time on the processor between accesses.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// Being busy for so long is tried to know how much longer it takes; so often in a row, and the
/// median of so many rows.
const CALIBRATION_SPIN: Duration = Duration::from_micros(1);
const SPINS_PER_ROW: u32 = 16;
const ROWS: usize = 9;

/// Keeps a CPU busy.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThinkTime {
    /// What looking at the clock adds to each time.
    clock_overhead: Duration,
}

impl ThinkTime {
    /// Measures the clock, if it is for a thread that `thinks`.
    pub(super) fn new(thinks: bool) -> ThinkTime {
        let exact = ThinkTime { clock_overhead: Duration::ZERO };
        if !thinks {
            return exact;
        }
        let mut rows = [(); ROWS].map(|()| {
            let start = Instant::now();
            (0..SPINS_PER_ROW).for_each(|_| exact.spin(CALIBRATION_SPIN));
            start.elapsed()
        });
        rows.sort_unstable();
        ThinkTime {
            clock_overhead: (rows[ROWS / 2] / SPINS_PER_ROW).saturating_sub(CALIBRATION_SPIN),
        }
    }

    /// Keeps the CPU of the thread that calls this busy for `time`.
    #[inline]
    pub(super) fn spin(self, time: Duration) {
        if time.is_zero() {
            return;
        }
        let start = Instant::now();
        let time = time.saturating_sub(self.clock_overhead);
        while start.elapsed() < time {
            spin_loop();
        }
    }
}
