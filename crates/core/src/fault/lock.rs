//! Which lock a try of a fault takes, and when it may drop it.

use crate::decision::Lock;
use crate::rules::{LockForIo, Rules, VmaLock};
use crate::series::{Series, Switch};

/// The lock that MADV_DONTNEED takes first, for pages in a single VMA.
///
/// Mirrors `get_lock_mode`, 6.18. Test: `tests/fault_locks.rs`.
pub fn dontneed_lock(rules: &Rules) -> Lock {
    if rules.dontneed_locks_vma { Lock::Vma } else { Lock::Mmap }
}

/// The lock that an access takes first: the VMA lock, if the kernel has one.
///
/// Mirrors `do_user_addr_fault`, 6.1, 6.6, 6.12 and 6.18.
/// Test: `tests/fault_locks.rs`.
pub fn access_lock(rules: &Rules) -> Lock {
    if rules.vma_lock == VmaLock::Absent { Lock::Mmap } else { Lock::Vma }
}

/// Whether a fault continues under the lock `held` after fault-around did not map its page. If not,
/// it starts over under `mmap_lock`, which it may still drop.
///
/// Mirrors `do_read_fault` and `do_cow_fault`, 6.6, 6.12 and 6.18. Test: `tests/fault_locks.rs`.
pub fn looks_up(held: Lock, rules: &Rules) -> bool {
    held == Lock::Mmap || rules.vma_lock == VmaLock::WholeFault
}

/// The lock for a retry after the fault dropped the lock it `held`: `mmap_lock`. With vma-retry it
/// is the VMA lock, if that was held and the fault waited for a page requested by readahead, not
/// one that it `read_alone`. A VMA lock that cannot be taken is [`super::Fault::on_lock_refused`],
/// as on the first try.
///
/// Mirrors the retry of `do_user_addr_fault`, 6.12 and 6.18, and with vma-retry `filemap_fault` of
/// the series as posted (20251127011438.6918-2). Test: `tests/fault_locks.rs`.
pub fn retry_lock(held: Lock, read_alone: bool, series: Series) -> Lock {
    if series.has(Switch::VmaRetry) && !read_alone { held } else { Lock::Mmap }
}

/// What a fault is about to do without its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedIo {
    /// Request a window.
    Read,
    /// Wait for its page.
    Wait,
}

/// Whether a fault that may drop its lock does so before `io`. With vma-hold it never does, so it
/// does not retry.
///
/// Mirrors `do_sync_mmap_readahead`, `do_async_mmap_readahead` and `lock_folio_maybe_drop_mmap`,
/// 6.12 and 6.18, `__folio_lock_or_retry` of the mm tree after 7.3, and with vma-hold the proposal
/// of 22 June 2026. Test: `tests/newer_kernels.rs`.
pub fn drops_lock(io: LockedIo, rules: &Rules) -> bool {
    if rules.series.has(Switch::VmaHold) {
        return false;
    }
    io == LockedIo::Wait || rules.lock_for_io == LockForIo::DroppedToRead
}

/// Whether the retry may not drop its lock again (`FAULT_FLAG_TRIED`): the try was itself such a
/// retry, had a `major` miss, or held `mmap_lock`.
///
/// Mirrors the retry of `do_user_addr_fault`, 6.12 and 6.18. Test: `tests/fault_locks.rs`.
pub fn is_last(was_last: bool, major: bool, held: Lock) -> bool {
    was_last || major || held == Lock::Mmap
}
