//! The miss counter that switches readahead off (`file_ra_state::mmap_miss`).

use crate::address::vma::Vma;
use crate::rules::Rules;
use crate::series::Switch;

/// The threshold of kernels without a series that changes it (`MMAP_LOTSAMISS`).
pub const MMAP_LOTSAMISS: u16 = 100;

/// Maximum of the counter (`10 * MMAP_LOTSAMISS`).
pub const MAX_MMAP_MISS: u16 = 1000;

/// A fault reads no window while the counter is above this.
///
/// Mirrors `do_sync_mmap_readahead`, 6.12 and 6.18. Test: `tests/miss.rs`.
pub fn threshold(_rules: &Rules) -> u16 {
    MMAP_LOTSAMISS
}

/// The counter after a miss that consults it: mirrors `do_sync_mmap_readahead`, 6.12 and 6.18.
/// Test: `tests/miss.rs`.
pub fn after_miss(mmap_miss: u16) -> u16 {
    if mmap_miss < MAX_MMAP_MISS { mmap_miss + 1 } else { mmap_miss }
}

/// Whether misses in `vma` count, and can stop readahead there.
///
/// Mirrors `do_sync_mmap_readahead`, 6.12, 6.18 and 7.2. Test: `tests/newer_kernels.rs`.
pub fn counts_misses(vma: &Vma, rules: &Rules) -> bool {
    let series = rules.series;
    let passes = series.has(Switch::ExecBypass) || series.has(Switch::ExecBypassV5);
    !vma.advice.is_sequential() && !(vma.executable && (passes || !rules.executable_counts))
}

/// Whether hits in `vma` decrement the counter.
///
/// Mirrors `filemap_map_pages` and `do_async_mmap_readahead`, 6.12, 6.18 and 7.2.
/// Test: `tests/newer_kernels.rs`.
pub fn counts_hits(vma: &Vma, rules: &Rules) -> bool {
    if vma.advice.is_sequential() && !rules.sequential_hits_count {
        return false;
    }
    !(vma.executable && (rules.series.has(Switch::ExecBypass) || !rules.executable_counts))
}

/// Whether a miss still reads a window.
pub fn reads_window(mmap_miss: u16, rules: &Rules) -> bool {
    mmap_miss <= threshold(rules)
}

/// The counter after `hits` hits: mirrors `filemap_map_pages` and `do_async_mmap_readahead`, 6.12
/// and 6.18. Test: `tests/miss.rs`.
pub fn after_hits(mmap_miss: u16, hits: u32) -> u16 {
    (u32::from(mmap_miss)).saturating_sub(hits) as u16
}
