//! A CPU's own lists and counters, so that threads rarely contend.

use super::accounting::PendingStats;
use super::frame::{FrameList, Pfn};
use crate::folio::Order;

/// A CPU's own lists and counters. A thread passes its own to each call.
#[derive(Default)]
pub struct Cpu {
    /// Changes of statistics that are not in the totals yet.
    pub(super) stats: PendingStats,
    /// Pages that are charged to the cgroup in advance (`memcg_stock`).
    pub(super) stock: u32,
    /// Free folios (`per_cpu_pages`).
    pub(super) free: PerCpuPages,
    /// New folios that are not on the LRU yet (`lru_add` of `cpu_fbatches`).
    pub(super) lru_add: Vec<Pfn>,
    /// Unmapped folios whose references are dropped after the next TLB flush.
    pub(super) gather: MmuGather,
}

/// Folios that are handled at a time (`PAGEVEC_SIZE`).
pub const FOLIO_BATCH: usize = 31;

/// A CPU's free folios: of orders up to 3, and of the PMD order.
#[derive(Default)]
pub(super) struct PerCpuPages {
    by_order: [FrameList; ORDERS],
    /// Pages of all of them.
    pub pages: usize,
}

const ORDERS: usize = 5;
/// `PAGE_ALLOC_COSTLY_ORDER`.
const COSTLY_ORDER: u32 = 3;

/// Pages that move between a CPU and the buddy allocator at a time (`pcp->batch`).
pub const PCP_BATCH: usize = 63;

/// From this number of free pages on, a batch is returned (`pcp->high`): a kernel's lower bound.
pub const PCP_HIGH: usize = 4 * PCP_BATCH;

/// Maximum number of free pages on a CPU's lists, with a folio of the PMD order taken in advance.
pub const MAX_CPU_PAGES: usize = PCP_HIGH + 2 * Order::PMD.pages();

impl PerCpuPages {
    /// The free folios of an order, if a CPU keeps them.
    ///
    /// Mirrors `pcp_allowed_order`, 6.12. Test: `tests/address_spaces.rs`.
    pub fn list(&mut self, order: Order) -> Option<&mut FrameList> {
        match order.get() {
            small @ 0..=COSTLY_ORDER => Some(&mut self.by_order[small as usize]),
            _ if order == Order::PMD => Some(&mut self.by_order[ORDERS - 1]),
            _ => None,
        }
    }

    /// The orders that a CPU keeps, the largest first.
    pub fn orders() -> impl Iterator<Item = Order> {
        [Order::PMD.get(), 3, 2, 1, 0].into_iter().filter_map(|order| Order::new(order).ok())
    }
}

/// Unmapped folios that may still be in a TLB (`mmu_gather`).
#[derive(Default)]
pub(super) struct MmuGather {
    /// Folios, each with the number of references to drop.
    pub folios: Vec<(Pfn, u32)>,
    /// Words that a kernel needs for them: two for a batch of several pages.
    words: usize,
}

/// Words in 19 pages, after which a kernel flushes.
const MAX_WORDS: usize = 19 * 510;

impl MmuGather {
    /// Adds unmapped pages of a folio. Returns whether a flush is due.
    #[inline]
    pub fn push(&mut self, head: Pfn, pages: u32) -> bool {
        self.folios.push((head, pages));
        self.words += if pages > 1 { 2 } else { 1 };
        self.words >= MAX_WORDS
    }

    /// Takes all of them out.
    pub fn take(&mut self) -> Vec<(Pfn, u32)> {
        self.words = 0;
        std::mem::take(&mut self.folios)
    }
}
