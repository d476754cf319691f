//! Reclaim lists as extents.

use std::collections::{BTreeMap, HashMap, VecDeque};

use filemap_core::cache::word_mask;
use filemap_core::units::{Order, PageIndex};

/// Folios of one order, one after the other in the file and in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub start: u64,
    pub pages: u64,
    pub order: Order,
}

/// An extent in a list: its start, and its pages above the bits of its order. A list of a million
/// single pages takes 16 MB.
#[derive(Clone, Copy, Debug)]
struct Packed(u64, u64);

const ORDER_BITS: u32 = 8;

impl Packed {
    #[inline]
    fn new(Extent { start, pages, order }: Extent) -> Packed {
        Packed(start, pages << ORDER_BITS | u64::from(order.0))
    }

    #[inline]
    fn extent(self) -> Extent {
        Extent { start: self.0, pages: self.1 >> ORDER_BITS, order: Order(self.1 as u8) }
    }
}

/// A list of folios, tail first.
#[derive(Debug, Default)]
pub struct List {
    extents: VecDeque<Packed>,
    /// Pages on the list, without those that left it from the middle.
    pub pages: u64,
}

impl List {
    /// Puts folios at the head.
    pub fn push(&mut self, extent: Extent) {
        self.pages += extent.pages;
        if let Some(packed) = self.extents.back_mut() {
            let last = packed.extent();
            if last.order == extent.order && last.start + last.pages == extent.start {
                packed.1 += extent.pages << ORDER_BITS;
                return;
            }
        }
        self.extents.push_back(Packed::new(extent));
    }

    /// Puts the folios of the pages `from..end` at the head, if there are any.
    #[inline]
    pub fn push_pages(&mut self, from: u64, end: u64, order: Order) {
        if from < end {
            self.push(Extent { start: from, pages: end - from, order });
        }
    }

    /// Puts the base pages of `mask`, which begin at page `first`, at the head. Returns how many.
    #[inline]
    pub fn push_mask(&mut self, first: u64, mask: u64) -> u64 {
        let mut pushed = 0;
        for (offset, pages) in runs(mask) {
            self.push(Extent { start: first + offset, pages, order: Order(0) });
            pushed += pages;
        }
        pushed
    }

    /// Bytes of memory that its extents take.
    pub fn held_bytes(&self) -> u64 {
        (self.extents.len() * size_of::<Packed>()) as u64
    }

    /// The extent at the tail.
    pub fn tail(&self) -> Option<Extent> {
        self.extents.front().map(|packed| packed.extent())
    }

    /// The extents, from the tail on.
    pub fn tail_first(&self) -> impl Iterator<Item = Extent> {
        self.extents.iter().map(|packed| packed.extent())
    }

    /// `pages` pages at the tail, whole folios all of which are on the list, go to the head.
    pub fn rotate(&mut self, pages: u64) {
        let mut left = pages;
        while left > 0 {
            let tail = self.tail().expect("the list is long enough");
            let extent = Extent { pages: tail.pages.min(left), ..tail };
            self.take(extent.pages, extent.pages);
            self.push(extent);
            left -= extent.pages;
        }
    }

    /// Takes `pages` pages from the extent at the tail; `counted` of them were still on the list.
    pub fn take(&mut self, pages: u64, counted: u64) {
        let tail = self.extents.front_mut().expect("taken from the tail");
        tail.0 += pages;
        tail.1 -= pages << ORDER_BITS;
        if tail.extent().pages == 0 {
            self.extents.pop_front();
        }
        self.pages -= counted;
    }

    /// The large folio of the pages `start..end` becomes base pages in its place, of which, where
    /// `reversed`, all but the first stand from the last one on. Where it has several entries, the
    /// one nearest to the head is meant, and the others go. It costs by the list's extents.
    pub fn split(&mut self, start: u64, end: u64, reversed: bool) {
        let mut left = VecDeque::new();
        let mut is_split = false;
        for packed in self.extents.drain(..).rev() {
            let Extent { start: from, pages, order } = packed.extent();
            let to = from + pages;
            if !(from <= start && start < to) {
                left.push_front(packed);
                continue;
            }
            let mut keep = |start, end, order| {
                if start < end {
                    left.push_front(Packed::new(Extent { start, pages: end - start, order }));
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

    /// Removes the folios of `runs`, first pages with the pages after the last ones in ascending
    /// order, wherever they stand; `counted` pages of them were still on the list. It costs by the
    /// list's extents.
    pub fn remove(&mut self, runs: &[(u64, u64)], counted: u64) {
        let mut left = VecDeque::new();
        for Extent { mut start, pages, order } in self.tail_first() {
            let end = start + pages;
            let mut keep = |start, end: u64| {
                if start < end {
                    left.push_back(Packed::new(Extent { start, pages: end - start, order }));
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

/// The runs of set bits, lowest first: offset and length.
pub fn runs(mut mask: u64) -> impl Iterator<Item = (u64, u64)> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let offset = mask.trailing_zeros();
        let length = (!(mask >> offset)).trailing_zeros();
        mask &= !(bits(length) << offset);
        Some((offset.into(), length.into()))
    })
}

/// The lowest `count` bits.
pub fn bits(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// Entries of the inactive list whose folio has left it from the middle. A folio that came back
/// since stands after them, so the entries nearest to the tail are the stale ones.
#[derive(Debug, Default)]
pub struct Stale {
    /// The folios that have any, by word: each by its first page.
    words: BTreeMap<u64, u64>,
    /// How many more some have than one.
    more: HashMap<u64, u32>,
}

impl Stale {
    /// One more entry of each folio that begins at `mask` in `word` is stale.
    pub fn add(&mut self, word: u64, mask: u64) {
        let stale = self.words.entry(word).or_default();
        for head in pages(word, *stale & mask) {
            *self.more.entry(head).or_default() += 1;
        }
        *stale |= mask;
    }

    /// No entry of the folios that begin at the pages `from..end` is left in the list.
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

    /// The first of the pages `from..end` with which a folio begins that has stale entries, or
    /// `end`.
    #[inline]
    pub fn next(&self, from: u64, end: u64) -> u64 {
        if self.is_empty() { end } else { self.next_of_some(from, end) }
    }

    #[inline(never)]
    fn next_of_some(&self, from: u64, end: u64) -> u64 {
        let behind = |(&word, &bits): (&u64, &u64)| {
            let pages = bits & word_mask(word, PageIndex(from), PageIndex(end));
            (pages != 0).then(|| word * 64 + u64::from(pages.trailing_zeros()))
        };
        // The first word may have none after `from`.
        let words = from / 64..end.div_ceil(64).max(from / 64 + 1);
        self.words.range(words).find_map(behind).unwrap_or(end)
    }

    /// The stale entries among the folios that begin at `mask` in `word`.
    pub fn among(&self, word: u64, mask: u64) -> u64 {
        if self.words.is_empty() {
            return 0;
        }
        self.words.get(&word).map_or(0, |bits| bits & mask)
    }

    /// Takes those entries.
    pub fn take(&mut self, word: u64, mask: u64) -> u64 {
        let stale = self.among(word, mask);
        if stale == 0 {
            return 0;
        }
        let mut last = stale;
        if !self.more.is_empty() {
            for head in pages(word, stale) {
                if let Some(more) = self.more.get_mut(&head) {
                    *more -= 1;
                    last &= !(1 << (head % 64));
                    if *more == 0 {
                        self.more.remove(&head);
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
    runs(mask).flat_map(move |(offset, length)| word * 64 + offset..word * 64 + offset + length)
}
