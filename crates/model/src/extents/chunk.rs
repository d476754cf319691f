//! 2048 pages of a file, one bit a page and property.

use std::collections::VecDeque;

use filemap_core::cache::WORD_PAGES;
use filemap_core::units::Order;

/// Words in a chunk.
pub const CHUNK_WORDS: usize = 32;

/// Pages in a chunk.
pub const CHUNK_PAGES: u64 = CHUNK_WORDS as u64 * WORD_PAGES;

/// 64 pages, a cache line. An absent page has no bit set but `copied`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub present: u64,
    pub marked: u64,
    pub workingset: u64,
    pub mapped: u64,
    pub young: u64,
    pub referenced: u64,
    pub active: u64,
    pub copied: u64,
}

impl Word {
    /// Forgets the cached pages of `mask`.
    pub fn clear(&mut self, mask: u64) {
        let keep = !mask;
        self.present &= keep;
        self.marked &= keep;
        self.workingset &= keep;
        self.mapped &= keep;
        self.young &= keep;
        self.referenced &= keep;
        self.active &= keep;
    }

    /// The pages of `mask` whose entries were accessed.
    pub fn accessed(&self, mask: u64) -> u64 {
        self.mapped & self.young & mask
    }
}

/// The evictions of consecutive pages that left at consecutive clocks, or of one large folio.
#[derive(Clone, Copy, Debug)]
pub struct Shadow {
    /// First page, from the start of the chunk.
    pub offset: u16,
    pub pages: u16,
    /// Clock at the eviction of the first page.
    pub clock: u64,
    /// All pages left together, as one folio.
    pub is_folio: bool,
    pub workingset: bool,
}

impl Shadow {
    /// The clock at which the page at `offset` was evicted; `None` where it was not.
    pub fn clock_of(&self, offset: u16) -> Option<u64> {
        let within = offset.checked_sub(self.offset).filter(|&within| within < self.pages)?;
        Some(if self.is_folio { self.clock } else { self.clock + u64::from(within) })
    }
}

/// 2048 pages.
#[derive(Debug, Default)]
pub struct Chunk {
    pub words: [Word; CHUNK_WORDS],
    /// Cached pages.
    pub present: u32,
    /// Private copies.
    pub copied: u32,
    /// Order of the folio of each page, where any is large.
    orders: Option<Box<[u8; CHUNK_PAGES as usize]>>,
    /// Oldest eviction first. A page may be in several: the last one counts.
    pub shadows: VecDeque<Shadow>,
}

impl Chunk {
    /// Order of the folio that the page at `offset` is in; meaningless for an absent page.
    pub fn order(&self, offset: usize) -> Order {
        Order(self.orders.as_ref().map_or(0, |orders| orders[offset]))
    }

    /// Notes that the pages from `offset` on are in folios of `order`.
    pub fn set_order(&mut self, offset: usize, pages: usize, order: Order) {
        if order == Order(0) && self.orders.is_none() {
            return;
        }
        let orders = self.orders.get_or_insert_with(|| Box::new([0; CHUNK_PAGES as usize]));
        orders[offset..offset + pages].fill(order.0);
    }

    /// The pages of `word` that are in large folios.
    pub fn large(&self, word: usize) -> u64 {
        let Some(orders) = &self.orders else {
            return 0;
        };
        let first = word * WORD_PAGES as usize;
        let of_word = &orders[first..first + WORD_PAGES as usize];
        let large = of_word.iter().rev().fold(0, |mask, &order| mask << 1 | u64::from(order > 0));
        large & self.words[word].present
    }

    /// Notes an eviction, joined to the last one where it goes on with it. Those that left before
    /// `oldest` are forgotten.
    pub fn push_shadow(&mut self, shadow: Shadow, oldest: u64) {
        while self.shadows.front().is_some_and(|old| old.clock + u64::from(old.pages) < oldest) {
            self.shadows.pop_front();
        }
        if let Some(last) = self.shadows.back_mut()
            && !last.is_folio
            && !shadow.is_folio
            && last.workingset == shadow.workingset
            && last.offset + last.pages == shadow.offset
            && last.clock + u64::from(last.pages) == shadow.clock
        {
            last.pages += shadow.pages;
            return;
        }
        self.shadows.push_back(shadow);
    }

    /// Clock and workingset flag of the last eviction of the page at `offset`.
    pub fn shadow(&self, offset: u16) -> Option<(u64, bool)> {
        let found = |shadow: &Shadow| shadow.clock_of(offset).map(|at| (at, shadow.workingset));
        self.shadows.iter().rev().find_map(found)
    }

    /// Forgets the evictions noted. What has no page has no bit set, so nothing else is left.
    pub fn forget(&mut self) {
        debug_assert!(self.words.iter().all(|word| *word == Word::default()));
        self.orders = None;
        self.shadows.clear();
    }

    /// Whether an eviction at or after `clock` is noted.
    pub fn has_shadow_since(&self, clock: u64) -> bool {
        self.shadows.back().is_some_and(|last| last.clock + u64::from(last.pages) > clock)
    }
}
