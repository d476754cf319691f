//! The end of a thread's time.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::clock::now_ns;

/// When the time of a thread is over, if that has an end. Whether it is over is looked up in the
/// clock of the last timer tick, which takes a few nanoseconds: a thread ends up to a tick late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Option<Duration>);

impl Deadline {
    /// Never.
    pub(super) const NEVER: Deadline = Deadline(None);

    /// So long from now, by the clock that is exact: no thread ends early.
    pub(super) fn after(time: Duration) -> Deadline {
        Deadline(Some(Duration::from_nanos(now_ns()) + time))
    }

    /// Whether it is over.
    #[inline]
    pub(super) fn is_past(self) -> bool {
        self.0.is_some_and(|end| now() >= end)
    }

    /// How much of `time` is left until then.
    #[inline]
    pub(super) fn clamp(self, time: Duration) -> Duration {
        match self.0 {
            Some(end) if !time.is_zero() => time.min(end.saturating_sub(now())),
            _ => time,
        }
    }
}

/// The time of the last tick.
fn now() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(tv_sec as u64, tv_nsec as u32)
}
