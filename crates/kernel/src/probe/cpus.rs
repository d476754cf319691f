//! The CPUs that a probe's child runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Error;

/// Number of CPUs that this process may run on.
pub fn allowed_cpus() -> u64 {
    sched_getaffinity(None).map_or(1, |cpus| u64::from(cpus.count()))
}

/// Restricts this thread, and threads that it starts, to the first `count` of its CPUs.
pub(super) fn bind_to_first_cpus(count: u64) -> Result<(), Error> {
    let failed = |errno| Error::call("choose the CPUs of the probe", errno);
    let all = sched_getaffinity(None).map_err(failed)?;
    let mut some = CpuSet::new();
    let allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
    allowed.take(count as usize).for_each(|cpu| some.set(cpu));
    sched_setaffinity(None, &some).map_err(failed)
}

/// SCHED_BATCH for this thread until dropped, so that a thread that wakes it keeps its CPU. Threads
/// with a policy other than SCHED_OTHER are left alone.
pub(super) struct BatchPolicy(());

impl BatchPolicy {
    /// Sets the policy; `None` if it was not set.
    pub(super) fn begin() -> Option<BatchPolicy> {
        // SAFETY: only the thread ID is passed.
        let policy = unsafe { libc::sched_getscheduler(0) };
        (policy == libc::SCHED_OTHER && set_policy(libc::SCHED_BATCH)).then_some(BatchPolicy(()))
    }
}

impl Drop for BatchPolicy {
    fn drop(&mut self) {
        set_policy(libc::SCHED_OTHER);
    }
}

/// Sets the policy of this thread. Returns whether that succeeded.
fn set_policy(policy: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters outlive the call, which only reads them.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}
