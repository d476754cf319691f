//! Frames, each the `struct page` of a page of memory, and lists of them.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::folio::Order;
use crate::mapcount::Mapcount;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// The number of a page of memory.
pub type Pfn = u32;

/// The state of a page, in one cache line, with the fields in a kernel's order.
///
/// The state of a folio is in its first frame, except for the counters of a large folio: they are
/// in its second frame, as in a kernel.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Frame<C: Mapcount> {
    /// Flags in the lower bits, the order from bit [`ORDER_SHIFT`] on.
    flags: AtomicU32,
    /// The first frame of the folio.
    head: AtomicU32,
    /// Links of the list that the frame is on: the LRU, or free frames.
    pub older: AtomicU32,
    pub newer: AtomicU32,
    /// The mm that allocated the folio; a kernel has the anon_vma here.
    pub mapping: AtomicU32,
    /// References: mappings, and other holders.
    pub references: AtomicU32,
    /// Mappings of a folio of one page.
    pub single: AtomicU32,
    /// The page's counter.
    pub page: C::Page,
    /// The counters of a large folio, in its second frame.
    pub counts: C,
}

const _: () = {
    assert!(size_of::<Frame<crate::PageMapcount>>() == 64);
    assert!(size_of::<Frame<crate::MmOwner>>() == 64);
    assert!(size_of::<Frame<crate::NoPageMapcount>>() == 64);
    assert!(size_of::<Frame<crate::PreciseOwners>>() == 64);
};

/// Only one mm maps the page (`PG_anon_exclusive`): set on allocation, cleared by fork.
pub const EXCLUSIVE: u32 = 1;
/// The folio is on the LRU.
pub const LRU: u32 = 1 << 1;
/// The frame is the first of a free block.
pub const FREE: u32 = 1 << 2;
/// `PG_uptodate`.
pub const UP_TO_DATE: u32 = 1 << 3;
/// `PG_swapbacked`.
pub const SWAP_BACKED: u32 = 1 << 4;
/// The folio is charged to the memory cgroup.
pub const CHARGED: u32 = 1 << 5;

/// Shift of the order in the flags.
const ORDER_SHIFT: u32 = 16;

impl<C: Mapcount> Frame<C> {
    /// Makes the frame a part of the new folio at `head`.
    ///
    /// Mirrors `prep_compound_tail`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn join_folio(&self, head: Pfn, order: Order) {
        self.head.store(head, Relaxed);
        let flags = EXCLUSIVE | UP_TO_DATE | SWAP_BACKED;
        self.flags.store(order.get() << ORDER_SHIFT | flags, Relaxed);
    }

    /// Takes the frame out of its folio.
    ///
    /// Mirrors `free_pages_prepare`, 6.12, which also writes to each page of a folio.
    /// Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn leave_folio(&self, pfn: Pfn) {
        self.mapping.store(0, Relaxed);
        self.head.store(pfn, Relaxed);
        self.clear_unshared((1 << ORDER_SHIFT) - 1);
    }

    /// Marks the frame as the first of 2^`order` free ones; `None` for the others of a block.
    pub fn set_free(&self, order: Option<u32>) {
        self.flags.store(order.map_or(0, |order| order << ORDER_SHIFT | FREE), Relaxed);
    }

    /// Whether it is the first of 2^`order` free frames.
    pub fn is_free(&self, order: u32) -> bool {
        self.flags.load(Relaxed) == order << ORDER_SHIFT | FREE
    }

    /// The first frame of the folio.
    #[inline]
    pub fn head(&self) -> Pfn {
        self.head.load(Relaxed)
    }

    /// The size of the folio.
    #[inline]
    pub fn order(&self) -> Order {
        Order::new(self.flags.load(Relaxed) >> ORDER_SHIFT).expect("folios have orders that exist")
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(&self, flag: u32) -> bool {
        self.flags.load(Relaxed) & flag != 0
    }

    /// Sets a flag by a read-modify-write, since others may change other flags.
    #[inline]
    pub fn set(&self, flag: u32) {
        self.flags.fetch_or(flag, Relaxed);
    }

    /// Clears a flag by a read-modify-write, if it is set.
    #[inline]
    pub fn clear(&self, flag: u32) {
        if self.has(flag) {
            self.flags.fetch_and(!flag, Relaxed);
        }
    }

    /// Clears a flag while no other thread has access to the flags.
    #[inline]
    pub fn clear_unshared(&self, flag: u32) {
        self.flags.store(self.flags.load(Relaxed) & !flag, Relaxed);
    }

    /// Sets a flag while no other thread has access to the flags.
    #[inline]
    pub fn set_unshared(&self, flag: u32) {
        self.flags.store(self.flags.load(Relaxed) | flag, Relaxed);
    }
}

/// A circular list of frames through links in the frames, like `list_head`. The owner of the list
/// may change the links.
#[derive(Default)]
pub struct FrameList {
    newest: Option<Pfn>,
    len: usize,
}

impl FrameList {
    /// Number of frames.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a frame as the newest.
    #[inline]
    pub fn push<C: Mapcount>(&mut self, frames: &[Frame<C>], pfn: Pfn) {
        self.push_oldest(frames, pfn);
        self.newest = Some(pfn);
    }

    /// Adds a frame as the oldest.
    #[inline]
    pub fn push_oldest<C: Mapcount>(&mut self, frames: &[Frame<C>], pfn: Pfn) {
        let newest = *self.newest.get_or_insert(pfn);
        let oldest = if newest == pfn { pfn } else { self.newer(frames, newest) };
        frames[pfn as usize].older.store(newest, Relaxed);
        frames[pfn as usize].newer.store(oldest, Relaxed);
        frames[newest as usize].newer.store(pfn, Relaxed);
        frames[oldest as usize].older.store(pfn, Relaxed);
        self.len += 1;
    }

    /// Removes a frame of this list.
    #[inline]
    pub fn remove<C: Mapcount>(&mut self, frames: &[Frame<C>], pfn: Pfn) {
        let frame = &frames[pfn as usize];
        let (older, newer) = (frame.older.load(Relaxed), frame.newer.load(Relaxed));
        frames[older as usize].newer.store(newer, Relaxed);
        frames[newer as usize].older.store(older, Relaxed);
        if self.newest == Some(pfn) {
            self.newest = (older != pfn).then_some(older);
        }
        self.len -= 1;
    }

    /// Removes the newest frame.
    #[inline]
    pub fn pop<C: Mapcount>(&mut self, frames: &[Frame<C>]) -> Option<Pfn> {
        let newest = self.newest?;
        self.remove(frames, newest);
        Some(newest)
    }

    /// Removes the oldest frame.
    #[inline]
    pub fn pop_oldest<C: Mapcount>(&mut self, frames: &[Frame<C>]) -> Option<Pfn> {
        let oldest = self.newer(frames, self.newest?);
        self.remove(frames, oldest);
        Some(oldest)
    }

    /// The next newer frame; of the newest, the oldest.
    #[inline]
    fn newer<C: Mapcount>(&self, frames: &[Frame<C>], pfn: Pfn) -> Pfn {
        frames[pfn as usize].newer.load(Relaxed)
    }
}
