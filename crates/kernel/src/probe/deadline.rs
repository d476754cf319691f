//! The end of a thread's time.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// When the time of a thread is over, if that has an end. Looking at the clock takes a few
/// nanoseconds, as it is that of the last timer tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Option<Duration>);

impl Deadline {
    /// Never.
    pub(super) const NEVER: Deadline = Deadline(None);

    /// So long from now.
    pub(super) fn after(time: Duration) -> Deadline {
        Deadline(Some(now() + time))
    }

    /// Whether it is over.
    #[inline]
    pub(super) fn is_over(self) -> bool {
        self.0.is_some_and(|end| now() >= end)
    }

    /// How much of `time` is left until then.
    #[inline]
    pub(super) fn within(self, time: Duration) -> Duration {
        match self.0 {
            Some(end) if !time.is_zero() => time.min(end.saturating_sub(now())),
            _ => time,
        }
    }
}

fn now() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(tv_sec as u64, tv_nsec as u32)
}
