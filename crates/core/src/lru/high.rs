//! What a task does that has charged more than `memory.high` allows.

use crate::units::PageCount;

/// Pages that are charged together, and that a CPU keeps at most (`MEMCG_CHARGE_BATCH`). A task
/// that owes more than this repays inside the charge.
pub const CHARGE_BATCH: PageCount = PageCount(64);

/// How often reclaim that evicts nothing is tried again (`MAX_RECLAIM_RETRIES`).
pub const RETRIES: u32 = 16;

/// A shorter sleep is not slept.
pub const LEAST_DELAY_NS: u64 = 10_000_000;

/// Longest sleep of a task that owes (`MEMCG_MAX_HIGH_DELAY_JIFFIES`).
const MAX_DELAY_NS: u64 = 2_000_000_000;

/// Fraction bits of an overage (`MEMCG_DELAY_PRECISION_SHIFT`), and by how much the square of one
/// is scaled down besides (`MEMCG_DELAY_SCALING_SHIFT`).
const PRECISION_SHIFT: u32 = 20;
const SCALING_SHIFT: u32 = 14;

/// How long a task sleeps that owes `pages` pages where `usage` are charged: it grows with the
/// square of the overage.
///
/// Mirrors `calculate_high_delay`, 6.12 and 6.18. Test: `tests/high.rs`.
pub fn delay_ns(usage: PageCount, high: PageCount, pages: PageCount) -> u64 {
    let over = u128::from(usage.saturating_sub(high).0);
    let overage = (over << PRECISION_SHIFT) / u128::from(high.0.max(1));
    let of_batch = (overage * overage * 1_000_000_000) >> (PRECISION_SHIFT + SCALING_SHIFT);
    let delay = of_batch * u128::from(pages.0) / u128::from(CHARGE_BATCH.0);
    u64::try_from(delay).unwrap_or(u64::MAX).min(MAX_DELAY_NS)
}
