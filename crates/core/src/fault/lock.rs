//! Which lock a try of a fault takes, and whether it may drop it.

use crate::decision::Lock;
use crate::rules::{LockForIo, Rules, VmaLock};
use crate::series::{Series, Switch};

/// The lock that MADV_DONTNEED asks for first, of pages that lie in one VMA.
///
/// Mirrors `get_lock_mode`, 6.18. Test: `tests/fault_locks.rs`.
pub fn of_dontneed(rules: &Rules) -> Lock {
    if rules.dontneed_locks_vma { Lock::Vma } else { Lock::Mmap }
}

/// The lock that an access asks for first: that of its VMA, where VMAs have one.
///
/// Mirrors `do_user_addr_fault`, 6.1, 6.6, 6.12 and 6.18.
/// Test: `tests/fault_locks.rs`.
pub fn of_access(rules: &Rules) -> Lock {
    if rules.vma_lock == VmaLock::Absent { Lock::Mmap } else { Lock::Vma }
}

/// Whether a fault whose page fault-around did not map goes on with the lock that it `held`. If
/// not, it begins again under `mmap_lock`, and may still drop that.
///
/// Mirrors `do_read_fault` and `do_cow_fault`, 6.6, 6.12 and 6.18. Test: `tests/fault_locks.rs`.
pub fn looks_up(held: Lock, rules: &Rules) -> bool {
    held == Lock::Mmap || rules.vma_lock == VmaLock::WholeFault
}

/// The lock that a fault asks for when it begins again after it dropped the one that it `held`:
/// `mmap_lock`. With vma-retry it is the lock of its VMA where it held that and waited for a page
/// that readahead had asked for, so not where its page was `read_alone`. A lock of a VMA that
/// cannot be had is [`super::Fault::refused`] like that of the first try.
///
/// Mirrors the retry of `do_user_addr_fault`, 6.12 and 6.18, and with vma-retry `filemap_fault` of
/// the series as posted (20251127011438.6918-2). Test: `tests/fault_locks.rs`.
pub fn of_retry(held: Lock, read_alone: bool, series: Series) -> Lock {
    if series.has(Switch::VmaRetry) && !read_alone { held } else { Lock::Mmap }
}

/// What a fault is about to do without its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Ask for a window.
    Read,
    /// Wait for its page.
    Wait,
}

/// Whether a fault that may drop its lock does so before `io`: not at all with vma-hold, which then
/// has nothing to try again.
///
/// Mirrors `do_sync_mmap_readahead`, `do_async_mmap_readahead` and `lock_folio_maybe_drop_mmap`,
/// 6.12 and 6.18, `__folio_lock_or_retry` of the mm tree after 7.3, and with vma-hold the proposal
/// of 22 June 2026. Test: `tests/newer_kernels.rs`.
pub fn drops(io: Io, rules: &Rules) -> bool {
    if rules.series.has(Switch::VmaHold) {
        return false;
    }
    io == Io::Wait || rules.lock_for_io == LockForIo::DroppedToRead
}

/// Whether the retry of a try may not drop its lock again (`FAULT_FLAG_TRIED`): that try was one
/// already, or met a `major` miss, or held `mmap_lock`.
///
/// Mirrors the retry of `do_user_addr_fault`, 6.12 and 6.18. Test: `tests/fault_locks.rs`.
pub fn is_last(was_last: bool, major: bool, held: Lock) -> bool {
    was_last || major || held == Lock::Mmap
}
