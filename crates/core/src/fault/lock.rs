//! Which lock a try of a fault takes, and whether it may drop it.

use crate::decision::Lock;
use crate::series::{Series, Switch};

/// The lock that a fault asks for when it begins again after it dropped one: `mmap_lock`, and with
/// vma-retry the one that it asked for first. A lock of a VMA that cannot be had is
/// [`super::Fault::refused`] like that of the first try.
///
/// Mirrors the retry of `do_user_addr_fault`, 6.12 and 6.18. Test: `tests/fault_locks.rs`.
pub fn of_retry(first: Lock, series: Series) -> Lock {
    if series.has(Switch::VmaRetry) { first } else { Lock::Mmap }
}

/// Whether the retry of a try may not drop its lock again (`FAULT_FLAG_TRIED`): that try was one
/// already, or met a `major` miss, or held `mmap_lock`.
///
/// Mirrors the retry of `do_user_addr_fault`, 6.12 and 6.18. Test: `tests/fault_locks.rs`.
pub fn is_last(was_last: bool, major: bool, held: Lock) -> bool {
    was_last || major || held == Lock::Mmap
}
