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

use filemap_core::cache::{Folio, WORD_PAGES, in_leaf, word_mask, words};
use filemap_core::lru::statistics::Known;
use filemap_core::lru::workingset;
use filemap_core::units::{Order, PageCount, PageIndex};

use self::aliases::Aliases;
use self::chunk::{CHUNK_PAGES, CHUNK_WORDS, Flags};
use self::chunks::Chunks;
use self::lists::{Extent, List, Stale, bits};
use self::locked::Locked;
use self::shadows::Shadows;
use self::span::{Span, by_chunk};

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
    /// While there are no more chunks, all words of each are kept.
    chunks_of_words: u64,
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
        let limited = capacity.map_or(0, |pages| pages.0 / PAGES_FOR_WORDS);
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
            chunks_of_words: SMALL_CHUNKS.max(limited),
            shadows: Shadows::new(capacity),
            forgets_at: 0,
            retired: VecDeque::new(),
        }
    }

    /// Adds folios of one order, all of their pages absent, to the lists where their last evictions
    /// say.
    fn add_folios(&mut self, start: u64, end: u64, order: Order) {
        let mut next = start;
        while next < end {
            let full = if order == Order(0) { self.unused_chunks(next, end) } else { 0 };
            if full > 0 {
                self.add_full(next / CHUNK_PAGES, full);
                next += full * CHUNK_PAGES;
                continue;
            }
            let stop = match order.pages() {
                pages if pages > CHUNK_PAGES => next + pages,
                _ => end.min((next / CHUNK_PAGES + 1) * CHUNK_PAGES),
            };
            let mut recent = 0;
            for (number, span) in by_chunk(next, stop) {
                recent |= self.fill(number, span, order);
            }
            self.enter_pages(next, stop, order, recent);
            next = stop;
        }
    }

    /// How many chunks that page `next` begins can be filled as one: enough of them, and there is
    /// nothing in any.
    #[inline]
    fn unused_chunks(&self, next: u64, end: u64) -> u64 {
        if end - next < chunks::LEAST_RUN * CHUNK_PAGES || next % CHUNK_PAGES != 0 {
            return 0;
        }
        let numbers = next / CHUNK_PAGES..end / CHUNK_PAGES;
        let unused = numbers.take_while(|&number| !self.chunks.has_slot(number)).count() as u64;
        if unused >= chunks::LEAST_RUN && !self.has_room_for_words() { unused } else { 0 }
    }

    /// Adds the pages of `span` to chunk `number`. Returns the words of them, one bit each, in
    /// which a page may have been evicted so lately that it becomes active.
    #[inline]
    fn fill(&mut self, number: u64, span: Span, order: Order) -> u32 {
        let is_roomy = self.has_room_for_words();
        let chunk = self.chunks.get_or_make(number);
        if is_roomy {
            chunk.keep_all_words();
        }
        let (were_empty, evicted) = (chunk.add(span, order), chunk.evicted);
        self.nodes += if in_leaf(order) { were_empty } else { 0 };
        match self.known.statistics.active {
            PageCount(0) => 0,
            _ => self.shadows.words_since(&evicted, span, self.recent_since()),
        }
    }

    /// Whether the words of all chunks take little memory beside the pages that can be cached.
    #[inline]
    fn has_room_for_words(&self) -> bool {
        self.chunks.count() <= self.chunks_of_words
    }

    /// Adds all pages of so many chunks that hold nothing, from chunk `first` on.
    fn add_full(&mut self, first: u64, chunks: u64) {
        self.chunks.add_full(first, first + chunks);
        self.nodes += chunks * CHUNK_WORDS as u64;
        self.inactive.push_pages(first * CHUNK_PAGES, (first + chunks) * CHUNK_PAGES, Order(0));
    }

    /// Puts the folios `from..end` of one chunk, which were added, on their lists: those that have
    /// a page in a word of `recent` where their last evictions say.
    #[inline]
    fn enter_pages(&mut self, from: u64, end: u64, order: Order, mut recent: u32) {
        let unit = order.pages().max(WORD_PAGES);
        let first_word = from / CHUNK_PAGES * CHUNK_WORDS as u64;
        let mut next = from;
        while recent != 0 && next < end {
            let word = first_word + u64::from(recent.trailing_zeros());
            let unit_start = word * WORD_PAGES / unit * unit;
            let (first, stop) = (unit_start.max(next), (unit_start + unit).min(end));
            self.inactive.push_pages(next, first, order);
            if order == Order(0) && stop - first > 1 {
                self.enter_word(word, word_mask(word, PageIndex(first), PageIndex(stop)));
            } else {
                (first..stop).step_by(order.pages() as usize).for_each(|at| self.enter(at, order));
            }
            let done = (stop / WORD_PAGES - first_word).min(CHUNK_WORDS as u64);
            recent &= !(bits(done as u32) as u32);
            next = stop;
        }
        self.inactive.push_pages(next, end, order);
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
        let mut word = last.0 / WORD_PAGES;
        let mut mask = word_mask(word, floor, last + PageCount(1));
        loop {
            let absent = !self.present(word) & mask;
            if absent != 0 {
                return Some(PageIndex(word * WORD_PAGES + u64::from(absent.ilog2())));
            }
            if word <= floor.0 / WORD_PAGES {
                return None;
            }
            word -= 1;
            mask = word_mask(word, floor, last);
        }
    }

    /// The cached pages of a word of the row.
    fn present(&self, word: u64) -> u64 {
        let chunk = self.chunks.get(word / CHUNK_WORDS as u64);
        chunk.map_or(0, |chunk| chunk.present(word as usize % CHUNK_WORDS))
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
