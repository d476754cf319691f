//! What is known of a page of memory: a `struct page`.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};

use crate::broken::Broken;
use crate::mapcount::Mapcount;
use crate::order::Order;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// The number of a page of memory.
pub type Pfn = u32;

/// A page of memory, in one cache line, as a kernel has it.
///
/// What belongs to the folio lies in its first frame.
#[derive(Default)]
#[repr(align(64))]
pub struct Frame<C: Mapcount> {
    /// The counters of a large folio.
    pub counts: C,
    /// The first frame of the folio.
    head: AtomicU32,
    /// Mappings of the folio, and whoever else holds it.
    pub references: AtomicU32,
    /// Neighbours on the LRU.
    pub older: AtomicU32,
    pub newer: AtomicU32,
    /// Mappings of a folio of one page.
    pub single: AtomicU32,
    /// What the counters have for each page.
    pub page: C::Page,
    order: AtomicU8,
    /// Only one mm maps the page, for certain: set when it is new, until a fork.
    exclusive: AtomicBool,
    on_lru: AtomicBool,
}

const _: () = {
    assert!(size_of::<Frame<crate::PageMapcount>>() == 64);
    assert!(size_of::<Frame<crate::MmOwner>>() == 64);
    assert!(size_of::<Frame<crate::NoPageMapcount>>() == 64);
    assert!(size_of::<Frame<crate::PreciseOwners>>() == 64);
};

impl<C: Mapcount> Frame<C> {
    /// Makes this frame one of the folio that begins at `head`.
    pub fn join(&self, head: Pfn, order: Order) {
        self.head.store(head, Relaxed);
        self.order.store(order.get() as u8, Relaxed);
        self.exclusive.store(true, Relaxed);
    }

    /// Makes this frame one of no folio. The order stays, as free lists are by order.
    ///
    /// Like a kernel it looks at the page before it changes it: nobody may map it.
    pub fn leave(&self, pfn: Pfn) {
        if self.single.load(Relaxed) > 0 {
            Broken::FreedWhileMapped.panic();
        }
        if self.head() != pfn {
            self.head.store(pfn, Relaxed);
        }
        if self.is_exclusive() {
            self.exclusive.store(false, Relaxed);
        }
    }

    /// The first frame of the folio.
    #[inline]
    pub fn head(&self) -> Pfn {
        self.head.load(Relaxed)
    }

    /// The size of the folio.
    #[inline]
    pub fn order(&self) -> Order {
        Order::new(u32::from(self.order.load(Relaxed))).expect("folios have orders that exist")
    }

    /// Whether only one mm maps the page, for certain.
    #[inline]
    pub fn is_exclusive(&self) -> bool {
        self.exclusive.load(Relaxed)
    }

    /// Whether the folio is on the LRU.
    #[inline]
    pub fn is_on_lru(&self) -> bool {
        self.on_lru.load(Relaxed)
    }

    /// Says whether the folio is on the LRU.
    pub fn set_on_lru(&self, on_lru: bool) {
        self.on_lru.store(on_lru, Relaxed);
    }

    /// Says whether only one mm maps the page. A read-modify-write where that changes, as the flag
    /// of a kernel shares a word with flags that others change.
    #[inline]
    pub fn set_exclusive(&self, exclusive: bool) {
        if self.is_exclusive() != exclusive {
            self.exclusive.swap(exclusive, Relaxed);
        }
    }
}
