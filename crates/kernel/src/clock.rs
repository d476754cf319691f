//! The clocks of processes and of threads.

use rustix::time::{ClockId, clock_gettime};

/// Now by `CLOCK_MONOTONIC`, which processes and the kernel's events have in common, in
/// nanoseconds.
pub fn now_ns() -> u64 {
    ns(ClockId::Monotonic)
}

/// Time that this thread has run for, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    ns(ClockId::ThreadCPUTime)
}

fn ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
