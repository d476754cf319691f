//! LRU lists as extents.

use std::collections::{BTreeMap, HashMap, VecDeque};

use filemap_core::cache::word_mask;
use filemap_core::units::{Order, PageIndex};

/// Folios of one order, consecutive both in the file and in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolioExtent {
    pub start: u64,
    pub pages: u64,
    pub order: Order,
}

/// An extent in 16 bytes: its start, and its pages above the bits of its order. A list of a million
/// single pages takes 16 MB.
#[derive(Clone, Copy, Debug)]
struct PackedExtent(u64, u64);

const ORDER_BITS: u32 = 8;

impl PackedExtent {
    #[inline]
    fn new(FolioExtent { start, pages, order }: FolioExtent) -> PackedExtent {
        PackedExtent(start, pages << ORDER_BITS | u64::from(order.0))
    }

    #[inline]
    fn extent(self) -> FolioExtent {
        FolioExtent { start: self.0, pages: self.1 >> ORDER_BITS, order: Order(self.1 as u8) }
    }
}

/// A list of folios, tail first.
#[derive(Debug, Default)]
pub struct ExtentList {
    extents: VecDeque<PackedExtent>,
    /// Pages on the list, not counting stale entries.
    pub pages: u64,
}

impl ExtentList {
    /// Adds folios at the head.
    pub fn push(&mut self, extent: FolioExtent) {
        self.pages += extent.pages;
        if let Some(packed) = self.extents.back_mut() {
            let last = packed.extent();
            if last.order == extent.order && last.start + last.pages == extent.start {
                packed.1 += extent.pages << ORDER_BITS;
                return;
            }
        }
        self.extents.push_back(PackedExtent::new(extent));
    }

    /// Adds the folios of the pages `from..end` at the head, if any.
    #[inline]
    pub fn push_pages(&mut self, from: u64, end: u64, order: Order) {
        if from < end {
            self.push(FolioExtent { start: from, pages: end - from, order });
        }
    }

    /// Adds the base pages of `mask`, relative to page `first`, at the head. Returns their number.
    #[inline]
    pub fn push_mask(&mut self, first: u64, mask: u64) -> u64 {
        let mut pushed = 0;
        for (offset, pages) in bit_runs(mask) {
            self.push(FolioExtent { start: first + offset, pages, order: Order(0) });
            pushed += pages;
        }
        pushed
    }

    /// Memory used by the extents, in bytes.
    pub fn held_bytes(&self) -> u64 {
        (self.extents.len() * size_of::<PackedExtent>()) as u64
    }

    /// The extent at the tail.
    pub fn tail(&self) -> Option<FolioExtent> {
        self.extents.front().map(|packed| packed.extent())
    }

    /// The extents, from the tail on.
    pub fn tail_first(&self) -> impl Iterator<Item = FolioExtent> {
        self.extents.iter().map(|packed| packed.extent())
    }

    /// Moves `pages` pages from the tail to the head. They have to be whole folios without stale
    /// entries.
    pub fn rotate(&mut self, pages: u64) {
        let mut left = pages;
        while left > 0 {
            let tail = self.tail().expect("the list is long enough");
            let extent = FolioExtent { pages: tail.pages.min(left), ..tail };
            self.take(extent.pages, extent.pages);
            self.push(extent);
            left -= extent.pages;
        }
    }

    /// Removes `pages` pages from the extent at the tail; `counted` of them were not stale.
    pub fn take(&mut self, pages: u64, counted: u64) {
        let tail = self.extents.front_mut().expect("taken from the tail");
        tail.0 += pages;
        tail.1 -= pages << ORDER_BITS;
        if tail.extent().pages == 0 {
            self.extents.pop_front();
        }
        self.pages -= counted;
    }

    /// Splits the large folio `start..end` into base pages in place. If `reversed`, all but the
    /// first are in descending order. If the folio has several entries, the one nearest to the head
    /// is valid, and the others are dropped. Linear in the number of extents.
    pub fn split(&mut self, start: u64, end: u64, reversed: bool) {
        let mut left = VecDeque::new();
        let mut is_split = false;
        for packed in self.extents.drain(..).rev() {
            let FolioExtent { start: from, pages, order } = packed.extent();
            let to = from + pages;
            if !(from <= start && start < to) {
                left.push_front(packed);
                continue;
            }
            let mut keep = |start, end, order| {
                if start < end {
                    left.push_front(PackedExtent::new(FolioExtent {
                        start,
                        pages: end - start,
                        order,
                    }));
                }
            };
            keep(end, to, order);
            if !is_split && reversed {
                (start + 1..end).for_each(|page| keep(page, page + 1, Order(0)));
                keep(start, start + 1, Order(0));
            } else if !is_split {
                keep(start, end, Order(0));
            }
            keep(from, start, order);
            is_split = true;
        }
        self.extents = left;
    }

    /// Removes the folios of `runs`, ascending ranges of pages, wherever they are; `counted` pages
    /// of them were not stale. Linear in the number of extents.
    pub fn remove(&mut self, runs: &[(u64, u64)], counted: u64) {
        let mut left = VecDeque::new();
        for FolioExtent { mut start, pages, order } in self.tail_first() {
            let end = start + pages;
            let mut keep = |start, end: u64| {
                if start < end {
                    left.push_back(PackedExtent::new(FolioExtent {
                        start,
                        pages: end - start,
                        order,
                    }));
                }
            };
            let first = runs.partition_point(|run| run.1 <= start);
            for &(from, to) in runs[first..].iter().take_while(|run| run.0 < end) {
                keep(start, from);
                start = to.min(end);
            }
            keep(start, end);
        }
        self.extents = left;
        self.pages -= counted;
    }
}

/// The runs of set bits, lowest first, as offset and length.
pub fn bit_runs(mut mask: u64) -> impl Iterator<Item = (u64, u64)> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let offset = mask.trailing_zeros();
        let length = (!(mask >> offset)).trailing_zeros();
        mask &= !(low_bits(length) << offset);
        Some((offset.into(), length.into()))
    })
}

/// The lowest `count` bits.
pub fn low_bits(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// Stale entries of the inactive list: their folios were activated without searching the list. A
/// folio that returned has its valid entry closer to the head, so the entries nearest to the tail
/// are the stale ones.
#[derive(Debug, Default)]
pub struct StaleEntries {
    /// Folios with stale entries: a bit at their first page, by word.
    words: BTreeMap<u64, u64>,
    /// Number of stale entries beyond the first.
    extra: HashMap<u64, u32>,
}

impl StaleEntries {
    /// Adds a stale entry for each folio that begins at `mask` in `word`.
    pub fn add(&mut self, word: u64, mask: u64) {
        let stale = self.words.entry(word).or_default();
        for head in pages(word, *stale & mask) {
            *self.extra.entry(head).or_default() += 1;
        }
        *stale |= mask;
    }

    /// Drops the stale entries of folios that begin at the pages `from..end`.
    pub fn forget(&mut self, from: u64, end: u64) {
        if self.is_empty() {
            return;
        }
        for word in from / 64..end.div_ceil(64) {
            let mask = word_mask(word, PageIndex(from), PageIndex(end));
            while self.take(word, mask) != 0 {}
        }
    }

    /// Whether no entry is stale.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The first page of `from..end` at which a folio with stale entries begins, or `end`.
    #[inline]
    pub fn next(&self, from: u64, end: u64) -> u64 {
        if self.is_empty() { end } else { self.next_stale(from, end) }
    }

    #[inline(never)]
    fn next_stale(&self, from: u64, end: u64) -> u64 {
        let after = |(&word, &bits): (&u64, &u64)| {
            let pages = bits & word_mask(word, PageIndex(from), PageIndex(end));
            (pages != 0).then(|| word * 64 + u64::from(pages.trailing_zeros()))
        };
        // The first word may have only earlier ones.
        let words = from / 64..end.div_ceil(64).max(from / 64 + 1);
        self.words.range(words).find_map(after).unwrap_or(end)
    }

    /// The folios that begin at `mask` in `word` and have stale entries.
    pub fn stale_in(&self, word: u64, mask: u64) -> u64 {
        if self.words.is_empty() {
            return 0;
        }
        self.words.get(&word).map_or(0, |bits| bits & mask)
    }

    /// Removes one stale entry of each of those folios, and returns them.
    pub fn take(&mut self, word: u64, mask: u64) -> u64 {
        let stale = self.stale_in(word, mask);
        if stale == 0 {
            return 0;
        }
        let mut last = stale;
        if !self.extra.is_empty() {
            for head in pages(word, stale) {
                if let Some(more) = self.extra.get_mut(&head) {
                    *more -= 1;
                    last &= !(1 << (head % 64));
                    if *more == 0 {
                        self.extra.remove(&head);
                    }
                }
            }
        }
        let left = self.words.get_mut(&word).expect("it has stale entries");
        *left &= !last;
        if *left == 0 {
            self.words.remove(&word);
        }
        stale
    }
}

/// The pages of `mask` in `word`.
fn pages(word: u64, mask: u64) -> impl Iterator<Item = u64> {
    bit_runs(mask).flat_map(move |(offset, length)| word * 64 + offset..word * 64 + offset + length)
}
