//! What is known of a page of memory: a `struct page`.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::mapcount::Mapcount;
use crate::order::Order;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// The number of a page of memory.
pub type Pfn = u32;

/// A page of memory, in one cache line and in the order of a kernel: flags first, counts after.
///
/// What belongs to the folio lies in its first frame. Only the counters of a large folio lie in
/// its second one, where a kernel has them.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Frame<C: Mapcount> {
    /// The flags below, and above them the order.
    flags: AtomicU32,
    /// The first frame of the folio.
    head: AtomicU32,
    /// Neighbours on the LRU, or among what is free.
    pub older: AtomicU32,
    pub newer: AtomicU32,
    /// The mm that made the folio: where a kernel has the anon_vma.
    pub mapping: AtomicU32,
    /// Mappings of the folio, and whoever else holds it.
    pub references: AtomicU32,
    /// Mappings of a folio of one page.
    pub single: AtomicU32,
    /// What the counters have for each page.
    pub page: C::Page,
    /// The counters of the large folio of which this is the second frame.
    pub counts: C,
}

const _: () = {
    assert!(size_of::<Frame<crate::PageMapcount>>() == 64);
    assert!(size_of::<Frame<crate::MmOwner>>() == 64);
    assert!(size_of::<Frame<crate::NoPageMapcount>>() == 64);
    assert!(size_of::<Frame<crate::PreciseOwners>>() == 64);
};

/// Only one mm maps the page, for certain: set when it is new, until a fork.
pub const EXCLUSIVE: u32 = 1;
/// The folio is on the LRU.
pub const LRU: u32 = 1 << 1;
/// The frame is the first of free ones.
pub const FREE: u32 = 1 << 2;
/// What is in the page is what somebody put there.
pub const UP_TO_DATE: u32 = 1 << 3;
/// The page would go to swap.
pub const SWAP_BACKED: u32 = 1 << 4;
/// The folio is charged to the memory cgroup.
pub const CHARGED: u32 = 1 << 5;

/// Where the order lies in the flags.
const ORDER: u32 = 16;

impl<C: Mapcount> Frame<C> {
    /// Makes this frame one of the folio that begins at `head`, of which nobody knows yet.
    ///
    /// Mirrors `prep_compound_tail`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn join(&self, head: Pfn, order: Order) {
        self.head.store(head, Relaxed);
        let flags = EXCLUSIVE | UP_TO_DATE | SWAP_BACKED;
        self.flags.store(order.get() << ORDER | flags, Relaxed);
    }

    /// Makes this frame one of no folio.
    ///
    /// Mirrors `free_pages_prepare`, 6.12, which also writes to each page of a folio. Test:
    /// `tests/address_spaces.rs`.
    #[inline]
    pub fn leave(&self, pfn: Pfn) {
        self.mapping.store(0, Relaxed);
        self.head.store(pfn, Relaxed);
        self.clear_alone((1 << ORDER) - 1);
    }

    /// Makes this frame the first of 2^`order` free ones, or one of those after it.
    pub fn set_free(&self, order: Option<u32>) {
        self.flags.store(order.map_or(0, |order| order << ORDER | FREE), Relaxed);
    }

    /// Whether this is the first of 2^`order` free frames.
    pub fn is_free(&self, order: u32) -> bool {
        self.flags.load(Relaxed) == order << ORDER | FREE
    }

    /// The first frame of the folio.
    #[inline]
    pub fn head(&self) -> Pfn {
        self.head.load(Relaxed)
    }

    /// The size of the folio.
    #[inline]
    pub fn order(&self) -> Order {
        Order::new(self.flags.load(Relaxed) >> ORDER).expect("folios have orders that exist")
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(&self, flag: u32) -> bool {
        self.flags.load(Relaxed) & flag != 0
    }

    /// Sets a flag, with a read-modify-write, as others may change other flags.
    #[inline]
    pub fn set(&self, flag: u32) {
        self.flags.fetch_or(flag, Relaxed);
    }

    /// Takes a flag away where it is set, with a read-modify-write.
    #[inline]
    pub fn clear(&self, flag: u32) {
        if self.has(flag) {
            self.flags.fetch_and(!flag, Relaxed);
        }
    }

    /// Takes a flag away that nobody else may change now.
    #[inline]
    pub fn clear_alone(&self, flag: u32) {
        self.flags.store(self.flags.load(Relaxed) & !flag, Relaxed);
    }

    /// Sets a flag that nobody else may change now.
    #[inline]
    pub fn set_alone(&self, flag: u32) {
        self.flags.store(self.flags.load(Relaxed) | flag, Relaxed);
    }
}
