//! What a CPU keeps for itself, so that threads do not meet at every step.

use super::frame::Pfn;
use super::ring::Ring;
use super::statistics::Differences;
use crate::order::Order;

/// A CPU's own counters and lists. A thread passes its own to each call.
#[derive(Default)]
pub struct Cpu {
    /// Pages that are mapped, as counters judge it: what this CPU added, and took away.
    pub mapped_pages: i64,
    /// Folios of which unmapping left a part, as far as counters can tell.
    pub left_in_part: u64,
    /// What statistics of the machine do not have yet.
    pub(super) differences: Differences,
    /// Pages that are charged to the cgroup in advance.
    pub(super) charged: u32,
    /// Free folios.
    pub(super) free: Free,
    /// New folios that are not on the LRU yet.
    pub(super) new: Vec<Pfn>,
    /// Folios with their mappings that are gone when the TLB has been flushed.
    pub(super) gathered: Gathered,
}

/// Folios that a CPU hands on together (`PAGEVEC_SIZE`).
pub const FOLIO_BATCH: usize = 31;

/// Free folios of the orders that a CPU keeps: those of up to 8 pages, and the PMD order.
#[derive(Default)]
pub(super) struct Free {
    by_order: [Ring; KEPT],
    /// Pages of all of them.
    pub pages: usize,
}

const KEPT: usize = 5;
const COSTLY: u32 = 3;

/// Pages that move between a CPU and the memory of all at a time.
pub const PAGES_AT_A_TIME: usize = 63;

/// From so many pages on, free ones are given back: four times as many as move at a time, which is
/// a kernel's lower bound.
pub const MOST_FREE: usize = 4 * PAGES_AT_A_TIME;

/// Pages that nobody else can have while a CPU keeps them, at most: with a folio of the PMD order
/// that it has just taken for the next one.
pub const KEPT_PAGES: usize = MOST_FREE + 2 * Order::PMD.pages();

impl Free {
    /// The folios of an order, if they are kept.
    ///
    /// Mirrors `pcp_allowed_order`, 6.12. Test: `tests/address_spaces.rs`.
    pub fn of(&mut self, order: Order) -> Option<&mut Ring> {
        match order.get() {
            small @ 0..=COSTLY => Some(&mut self.by_order[small as usize]),
            _ if order == Order::PMD => Some(&mut self.by_order[KEPT - 1]),
            _ => None,
        }
    }

    /// The orders that are kept, the largest first.
    pub fn orders() -> impl Iterator<Item = Order> {
        [Order::PMD.get(), 3, 2, 1, 0].into_iter().filter_map(|order| Order::new(order).ok())
    }
}

/// What was unmapped and may still be in a TLB (`mmu_gather`).
#[derive(Default)]
pub(super) struct Gathered {
    /// Folios, and how many references of each go.
    pub folios: Vec<(Pfn, u32)>,
    /// The words that a kernel needs for them: two where more than one page goes at a time.
    words: usize,
}

/// What 19 pages of words hold. A kernel flushes then, so that it does not gather for too long.
const MOST_WORDS: usize = 19 * 510;

impl Gathered {
    /// Adds mappings of a folio. Whether a flush is due.
    #[inline]
    pub fn push(&mut self, head: Pfn, pages: u32) -> bool {
        self.folios.push((head, pages));
        self.words += if pages > 1 { 2 } else { 1 };
        self.words >= MOST_WORDS
    }

    /// All of them, which are gone then.
    pub fn take(&mut self) -> Vec<(Pfn, u32)> {
        self.words = 0;
        std::mem::take(&mut self.folios)
    }
}
