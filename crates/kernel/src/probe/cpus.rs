//! Which CPUs a probe's child runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Error;

/// CPUs that this process may run on.
pub fn allowed() -> u64 {
    sched_getaffinity(None).map_or(1, |cpus| u64::from(cpus.count()))
}

/// Leaves this thread, and those that it starts, the first `count` of its CPUs.
pub(super) fn bind(count: u64) -> Result<(), Error> {
    let failed = |errno| Error::call("choose the CPUs of the probe", errno);
    let all = sched_getaffinity(None).map_err(failed)?;
    let mut some = CpuSet::new();
    let allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
    allowed.take(count as usize).for_each(|cpu| some.set(cpu));
    sched_setaffinity(None, &some).map_err(failed)
}
