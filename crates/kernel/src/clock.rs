//! Clocks of processes and threads.

use rustix::time::{ClockId, clock_gettime};

/// Current time of `CLOCK_MONOTONIC`, shared by processes and trace events, in nanoseconds.
pub fn now_ns() -> u64 {
    ns(ClockId::Monotonic)
}

/// CPU time of this thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    ns(ClockId::ThreadCPUTime)
}

fn ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
