//! The page cache as extents and bitmaps: a window costs by its words, not by its pages.

mod aging;
mod aliases;
mod chunk;
mod chunks;
mod file;
mod invalidate;
pub(crate) mod lists;
mod locked;
mod orders;
mod page_cache;
mod reclaim;
mod shadows;
mod span;
mod words;
mod young;

use std::collections::VecDeque;
use std::ops::Range;

use filemap_core::cache::{Folio, WORD_PAGES, by_word, in_leaf, word_mask, words};
use filemap_core::lru::statistics::Known;
use filemap_core::lru::workingset;
use filemap_core::units::{Order, PageCount, PageIndex};

use self::aliases::Aliases;
use self::chunk::{CHUNK_PAGES, CHUNK_WORDS, Chunk, Flags};
use self::chunks::Chunks;
use self::lists::{Extent, List, Stale};
use self::locked::Locked;
use self::shadows::Shadows;
use self::span::by_chunk;

/// The page cache of the model.
///
/// Pages are bits in chunks of 2048; the reclaim lists are extents of folios of one order. Memory
/// grows with what is cached and what was evicted lately. All files lie in one row of pages, each
/// with room for the largest (`file::first_page`), so that one set of chunks, lists and shadows
/// serves them all.
#[derive(Debug)]
pub struct ExtentCache {
    chunks: Chunks,
    /// The entries of all layers but the first, which are in the chunks.
    aliases: Aliases,
    inactive: List,
    active: List,
    stale: Stale,
    locked: Locked,
    /// Words of which a page is cached in a folio smaller than a word.
    nodes: u64,
    /// Evictions and activations so far, in pages.
    clock: u64,
    known: Known,
    /// No list is ever longer, so older evictions cannot matter.
    capacity: u64,
    shadows: Shadows,
    /// The clock at which old evictions are forgotten next.
    forgets_at: u64,
    /// Chunks that became empty, with the clock then: forgotten once no eviction in them matters.
    retired: VecDeque<(u64, u64)>,
}

/// Where so many pages can be cached for each chunk, all words of chunks are kept: 16 bytes a page.
const PAGES_FOR_WORDS: u64 = 128;

/// All words of so many chunks are kept in any case: half a MiB.
const SMALL_CHUNKS: u64 = if cfg!(feature = "tiny-chunks") { 4 } else { 256 };

impl ExtentCache {
    /// An empty cache that never holds more than `capacity` pages.
    pub fn new(capacity: Option<PageCount>) -> ExtentCache {
        let capacity = capacity.map_or(u64::MAX, |pages| pages.0);
        ExtentCache {
            chunks: Chunks::default(),
            aliases: Aliases::default(),
            inactive: List::default(),
            active: List::default(),
            stale: Stale::default(),
            locked: Locked::default(),
            nodes: 0,
            clock: 0,
            known: Known::default(),
            capacity,
            shadows: Shadows::new(capacity),
            forgets_at: 0,
            retired: VecDeque::new(),
        }
    }

    /// Adds base pages, all of them absent, to the list where their last evictions say.
    fn add_base_pages(&mut self, start: u64, end: u64, marked: Option<u64>) {
        let active = self.known.statistics.active.0;
        let recent = self.clock.saturating_sub(active);
        let is_long = end - start >= (chunks::LEAST_RUN + 1) * CHUNK_PAGES;
        let mut next = start;
        for (number, span) in by_chunk(start, end) {
            if (number + 1) * CHUNK_PAGES <= next {
                continue;
            }
            if is_long && span.pages() as u64 == CHUNK_PAGES {
                let full = (number..end / CHUNK_PAGES).take_while(|&at| !self.chunks.has_slot(at));
                let chunks = full.count() as u64;
                if chunks >= chunks::LEAST_RUN {
                    self.add_full(number, chunks);
                    next = (number + chunks) * CHUNK_PAGES;
                    continue;
                }
            }
            let chunk = self.chunk_to_fill(number);
            let (were_empty, evicted) = (chunk.add(span, Order(0)), chunk.evicted);
            self.nodes += were_empty;
            let first = number * CHUNK_PAGES + span.from as u64;
            let pages = span.pages() as u64;
            if active == 0 || !self.shadows.any_since(&evicted, recent) {
                self.inactive.push(Extent { start: first, pages, order: Order(0) });
            } else if pages == 1 {
                self.enter(first, Order(0));
            } else {
                let pages = (PageIndex(first), PageIndex(first + pages));
                by_word(pages.0, pages.1).for_each(|(number, mask)| self.enter_word(number, mask));
            }
        }
        if let Some(marked) = marked {
            self.set_range(marked, marked + 1, |flags, bit| flags.marked |= bit);
        }
    }

    /// Whether the words of all chunks take little memory beside the pages that can be cached.
    fn has_room_for_words(&self) -> bool {
        let limited = if self.capacity < u64::MAX { self.capacity / PAGES_FOR_WORDS } else { 0 };
        self.chunks.count() <= SMALL_CHUNKS.max(limited)
    }

    /// Chunk `number`, made if it is not there, to which pages are added.
    #[inline]
    fn chunk_to_fill(&mut self, number: u64) -> &mut Chunk {
        let is_roomy = self.has_room_for_words();
        let chunk = self.chunks.get_or_make(number);
        if is_roomy {
            chunk.keep_all_words();
        }
        chunk
    }

    /// Adds all pages of so many chunks that hold nothing, from chunk `first` on.
    fn add_full(&mut self, first: u64, chunks: u64) {
        self.chunks.add_full(first, first + chunks);
        self.nodes += chunks * CHUNK_WORDS as u64;
        let (start, pages) = (first * CHUNK_PAGES, chunks * CHUNK_PAGES);
        self.inactive.push(Extent { start, pages, order: Order(0) });
    }

    /// Puts the base pages of `mask` in a word, which were added, where their last evictions say.
    fn enter_word(&mut self, number: u64, mask: u64) {
        let (known, since) = (self.known.statistics.active, self.recent_since());
        let word = number as usize % CHUNK_WORDS;
        let chunk = self.chunks.get_mut(number / CHUNK_WORDS as u64).expect("pages are cached");
        let last = self.shadows.last_of_word(&chunk.evicted, word, mask, since);
        let (mut left, mut active) = (last.pages, 0);
        while left != 0 {
            let clock = last.clocks[left.trailing_zeros() as usize];
            if workingset::is_kept(self.clock, clock, self.capacity)
                && workingset::is_recent(self.clock, clock, known)
            {
                active |= left & left.wrapping_neg();
                self.clock += 1;
            }
            left &= left - 1;
        }
        if active != 0 {
            chunk.change_flags(word, |flags| {
                flags.active |= active;
                flags.workingset |= active & last.workingset;
            });
        }
        let first = number * WORD_PAGES;
        let activated = self.active.push_mask(first, active);
        self.known.refaults.count(PageCount(activated));
        self.inactive.push_mask(first, mask & !active);
    }

    /// No eviction before this clock is recent.
    fn recent_since(&self) -> u64 {
        self.clock.saturating_sub(self.known.statistics.active.0.min(self.capacity))
    }

    fn add_folio(&mut self, head: u64, order: Order, marked: bool) {
        let end = head + order.pages();
        let mut were_empty = 0;
        for (number, span) in by_chunk(head, end) {
            were_empty += self.chunk_to_fill(number).add(span, order);
        }
        self.nodes += if in_leaf(order) { were_empty } else { 0 };
        if marked {
            self.set_range(head, end, |flags, mask| flags.marked |= mask);
        }
        self.enter(head, order);
    }

    /// Puts a folio that was added on the list where its last eviction says.
    fn enter(&mut self, head: u64, order: Order) {
        let extent = Extent { start: head, pages: order.pages(), order };
        let shadow = match order {
            Order(0) => self.last_eviction(head, self.recent_since()),
            _ => self.last_of_folio(head, order.pages()),
        };
        let shadow = shadow.filter(|last| workingset::is_kept(self.clock, last.0, self.capacity));
        match shadow {
            Some((clock, workingset))
                if workingset::is_recent(self.clock, clock, self.known.statistics.active) =>
            {
                self.clock += order.pages();
                self.known.refaults.count(PageCount(order.pages()));
                self.set_range(head, head + order.pages(), |flags, mask| {
                    flags.active |= mask;
                    flags.workingset |= if workingset { mask } else { 0 };
                });
                self.active.push(extent);
            }
            _ => self.inactive.push(extent),
        }
    }

    /// Clock and workingset flag of the last eviction of a page at or after the clock `since`, or
    /// of one before it.
    fn last_eviction(&self, page: u64, since: u64) -> Option<(u64, bool)> {
        let chunk = self.chunks.get(page / CHUNK_PAGES)?;
        self.shadows.last(&chunk.evicted, (page % CHUNK_PAGES) as usize, since)
    }

    /// The same of the last page of a folio whose eviction still counts.
    fn last_of_folio(&self, head: u64, pages: u64) -> Option<(u64, bool)> {
        let since = self.clock.saturating_sub(self.capacity);
        let (first, end) = (PageIndex(head), PageIndex(head + pages));
        words(first, end).rev().find_map(|number| {
            let chunk = self.chunks.get(number / CHUNK_WORDS as u64)?;
            if !self.shadows.any_since(&chunk.evicted, since) {
                return None;
            }
            let (word, mask) = (number as usize % CHUNK_WORDS, word_mask(number, first, end));
            let last = self.shadows.last_of_word(&chunk.evicted, word, mask, since);
            let is_kept = |bit: &usize| {
                last.pages >> bit & 1 == 1
                    && workingset::is_kept(self.clock, last.clocks[*bit], self.capacity)
            };
            let bit = (0..WORD_PAGES as usize).rev().find(is_kept)?;
            Some((last.clocks[bit], last.workingset >> bit & 1 == 1))
        })
    }

    /// Changes the flags of cached pages `from..end`: gets those of each word, and the mask of its
    /// pages.
    fn set_range(&mut self, from: u64, end: u64, mut change: impl FnMut(&mut Flags, u64)) {
        for number in from / WORD_PAGES..end.div_ceil(WORD_PAGES) {
            let mask = word_mask(number, PageIndex(from), PageIndex(end));
            let chunk = self.chunks.get_mut(number / CHUNK_WORDS as u64).expect("pages are cached");
            chunk.change_flags(number as usize % CHUNK_WORDS, |flags| change(flags, mask));
        }
    }

    /// The first page in `from..end` that is cached, or the first that is not, or `end`.
    // Within its callers it would have too few registers, as the next one.
    #[inline(never)]
    fn find(&self, from: u64, end: u64, cached: bool) -> u64 {
        for (number, span) in by_chunk(from, end) {
            let found = match self.chunks.get(number) {
                Some(chunk) => chunk.find(span, cached),
                None => (!cached).then_some(span.from),
            };
            if let Some(offset) = found {
                return number * CHUNK_PAGES + offset as u64;
            }
        }
        end
    }

    /// The first absent pages of `from..end`: none, at `end`, where all are cached.
    #[inline(never)]
    fn gap(&self, from: u64, end: u64) -> Range<u64> {
        let mut start = None;
        for (number, span) in by_chunk(from, end) {
            let first = number * CHUNK_PAGES;
            let Some(chunk) = self.chunks.get(number) else {
                start.get_or_insert(first + span.from as u64);
                continue;
            };
            let mut behind = span;
            if start.is_none() {
                let Some(absent) = chunk.find(span, false) else { continue };
                start = Some(first + absent as u64);
                behind.from = absent;
            }
            if let Some(present) = chunk.find(behind, true) {
                return start.unwrap_or(end)..first + present as u64;
            }
        }
        start.unwrap_or(end)..end
    }

    /// The folio that holds a page of the row, which is `index` in its file.
    // Its callers are few, and most of them ask for a part of it.
    #[inline(always)]
    fn folio(&self, page: u64, index: PageIndex) -> Option<Folio> {
        let chunk = self.chunks.get(page / CHUNK_PAGES)?;
        let offset = (page % CHUNK_PAGES) as usize;
        if !chunk.has(offset) {
            return None;
        }
        let order = chunk.order(offset);
        let locked = self.locked.any(page, page + 1);
        let flags = chunk.some_flags(offset / WORD_PAGES as usize);
        let marked = flags.is_some_and(|flags| flags.marked >> (page % WORD_PAGES) & 1 == 1);
        Some(Folio { head: index.align_down(order), order, locked, marked })
    }

    /// The last absent page of the row at or before `last` that is not before `floor`.
    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex> {
        let behind = last + PageCount(1);
        let absent_in = |number: u64| {
            let chunk = self.chunks.get(number);
            if chunk.is_some_and(|chunk| chunk.pages() == CHUNK_PAGES) {
                return None;
            }
            let first = PageIndex(number * CHUNK_PAGES);
            let of_chunk = words(floor.max(first), behind.min(first + PageCount(CHUNK_PAGES)));
            of_chunk.rev().find_map(|word| {
                let present = chunk.map_or(0, |chunk| chunk.present(word as usize % CHUNK_WORDS));
                let absent = !present & word_mask(word, floor, behind);
                absent.checked_ilog2().map(|bit| PageIndex(word * WORD_PAGES + u64::from(bit)))
            })
        };
        (floor.0 / CHUNK_PAGES..=last.0 / CHUNK_PAGES).rev().find_map(absent_in)
    }

    /// Cached pages of `from..end` of the row.
    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount {
        let pages = self.chunks.iter().map(|(number, chunk)| {
            let first = PageIndex(number * CHUNK_PAGES);
            let behind = first + PageCount(CHUNK_PAGES);
            if from <= first && behind <= end {
                return chunk.pages();
            }
            if from.max(first) >= end.min(behind) {
                return 0;
            }
            let words = (number * CHUNK_WORDS as u64..).zip(0..CHUNK_WORDS);
            let cached = words.map(|(at, word)| chunk.present(word) & word_mask(at, from, end));
            cached.map(|pages| u64::from(pages.count_ones())).sum::<u64>()
        });
        PageCount(pages.sum::<u64>() + self.chunks.full_pages(from, end))
    }
}
