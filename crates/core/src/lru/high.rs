//! Throttling of tasks above `memory.high`.

use crate::units::PageCount;

/// Pages charged per batch, and cached per CPU (`MEMCG_CHARGE_BATCH`). A task that owes more
/// reclaims within the charge.
pub const CHARGE_BATCH: PageCount = PageCount(64);

/// Maximum number of retries of a reclaim that evicts nothing (`MAX_RECLAIM_RETRIES`).
pub const MAX_RETRIES: u32 = 16;

/// Minimum sleep; shorter ones are skipped.
pub const MIN_DELAY_NS: u64 = 10_000_000;

/// Maximum sleep (`MEMCG_MAX_HIGH_DELAY_JIFFIES`).
const MAX_DELAY_NS: u64 = 2_000_000_000;

/// Fraction bits of an overage (`MEMCG_DELAY_PRECISION_SHIFT`), and the additional scaling of its
/// square (`MEMCG_DELAY_SCALING_SHIFT`).
const PRECISION_SHIFT: u32 = 20;
const SCALING_SHIFT: u32 = 14;

/// Sleep of a task that charged `pages` pages in excess, with `usage` pages charged in total: it
/// grows with the square of the overage.
///
/// Mirrors `calculate_high_delay`, 6.12 and 6.18. Test: `tests/high.rs`.
pub fn delay_ns(usage: PageCount, high: PageCount, pages: PageCount) -> u64 {
    let over = u128::from(usage.saturating_sub(high).0);
    let overage = (over << PRECISION_SHIFT) / u128::from(high.0.max(1));
    let of_batch = (overage * overage * 1_000_000_000) >> (PRECISION_SHIFT + SCALING_SHIFT);
    let delay = of_batch * u128::from(pages.0) / u128::from(CHARGE_BATCH.0);
    u64::try_from(delay).unwrap_or(u64::MAX).min(MAX_DELAY_NS)
}
