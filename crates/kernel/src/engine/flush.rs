//! When the kernel sums up the statistics of memory cgroups: a run that reclaims begins with it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::cgroup::MemoryCgroup;
use crate::probe::Probe;

/// The kernel does it every 2 s, a little later where it is busy. It is waited for no longer.
pub(super) const MAX_FLUSH_WAIT: Duration = Duration::from_millis(3000);

/// Between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Waits until the statistics of `cgroup` have just been summed up, in which `probe` waits: reclaim
/// knows the sizes of its lists from then, and what it evicts would depend on when the run begins.
///
/// Reading the statistics sums them up only where much has changed. A single page of the child has
/// not, so that it shows when the kernel did so by itself. A kernel that sums up whenever somebody
/// reads shows it at once, and there the wait ends.
///
/// Returns whether that was seen. If not, nobody knows when the next time is.
///
/// # Errors
/// When the statistics cannot be read.
pub(super) fn await_flush(probe: &mut Probe, cgroup: &MemoryCgroup) -> Result<bool, Error> {
    let before = cgroup.stat()?;
    probe.hold_own_page();
    let start = Instant::now();
    while start.elapsed() < MAX_FLUSH_WAIT {
        if cgroup.stat()? != before {
            return Ok(true);
        }
        sleep(POLL_INTERVAL);
    }
    Ok(false)
}
