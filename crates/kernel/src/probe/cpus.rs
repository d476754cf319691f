//! Which CPUs a probe's child runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Error;

/// CPUs that this process may run on.
pub fn allowed_cpus() -> u64 {
    sched_getaffinity(None).map_or(1, |cpus| u64::from(cpus.count()))
}

/// Leaves this thread, and those that it starts, the first `count` of its CPUs.
pub(super) fn bind_to_first_cpus(count: u64) -> Result<(), Error> {
    let failed = |errno| Error::call("choose the CPUs of the probe", errno);
    let all = sched_getaffinity(None).map_err(failed)?;
    let mut some = CpuSet::new();
    let allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
    allowed.take(count as usize).for_each(|cpu| some.set(cpu));
    sched_setaffinity(None, &some).map_err(failed)
}

/// Lets others of this process wake this thread without giving up their CPU to it, until it asks
/// for its turns as usual again. A thread of another policy than the usual one is left as it is.
pub(super) struct BatchPolicy(());

impl BatchPolicy {
    /// From now on.
    pub(super) fn begin() -> Option<BatchPolicy> {
        // SAFETY: nothing is passed but the number of this thread.
        let policy = unsafe { libc::sched_getscheduler(0) };
        (policy == libc::SCHED_OTHER && set_policy(libc::SCHED_BATCH)).then_some(BatchPolicy(()))
    }
}

impl Drop for BatchPolicy {
    fn drop(&mut self) {
        set_policy(libc::SCHED_OTHER);
    }
}

/// Whether the kernel took it.
fn set_policy(policy: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters live through the call, which only reads them.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}
