//! Think time between accesses, and the deadline of a thread.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::clock::now_ns;

/// The overhead of [`ThinkTime::spin`] is the median over series of calls of this length.
const CALIBRATION_SPIN: Duration = Duration::from_micros(1);
const SPINS_PER_ROW: u32 = 16;
const ROWS: usize = 9;

/// Spins to simulate think time.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThinkTime {
    /// Overhead of reading the clock, which lengthens each spin.
    clock_overhead: Duration,
}

impl ThinkTime {
    /// Measures the overhead, for a thread that `thinks`.
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

    /// Spins for `time` on the CPU of the calling thread.
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

/// Deadline of a thread, if any. It is compared with the coarse clock, which takes a few
/// nanoseconds to read, so a thread ends up to a tick late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Option<Duration>);

impl Deadline {
    /// Never.
    pub(super) const NEVER: Deadline = Deadline(None);

    /// The deadline `time` from now, by the exact clock, so that no thread ends early.
    pub(super) fn after(time: Duration) -> Deadline {
        Deadline(Some(Duration::from_nanos(now_ns()) + time))
    }

    /// Whether the deadline has passed.
    #[inline]
    pub(super) fn is_past(self) -> bool {
        self.0.is_some_and(|end| now() >= end)
    }

    /// `time`, at most until the deadline.
    #[inline]
    pub(super) fn clamp(self, time: Duration) -> Duration {
        match self.0 {
            Some(end) if !time.is_zero() => time.min(end.saturating_sub(now())),
            _ => time,
        }
    }
}

/// Time of the last tick.
fn now() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(tv_sec as u64, tv_nsec as u32)
}
