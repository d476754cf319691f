//! The page cache as extents and bitmaps: a window costs by its words, not by its pages.
//!
//! What a chunk of 4096 pages keeps depends on how crowded it is:
//!
//! | what is there | how it is kept | in |
//! |---|---|---|
//! | four chunks or more that one window fills | they are one entry together | `chunks` |
//! | a chunk of empty and full words | the summary alone | `chunk` |
//! | up to 20 runs of pages that are alike | 4 bytes a run | `words::few` |
//! | up to 7 words of each kind, where memory is large enough | a row of 0.6 KiB | `words::row` |
//! | more | 64 bytes for each word, 4 KiB in all | `words` |
//! | large folios | 4 bytes for each run of one order | `orders` |
//! | up to 64 evictions that still count | runs in one row for all chunks | `shadows` |
//! | more | the last eviction of each page, 16 KiB in all | `shadows::table` |
//!
//! The two kinds of words of a row are those of which some pages are cached and some not, and those
//! in which a page is mapped, marked or special in another way. The pages of all words of the first
//! kind lie in one cache line, and so do the flags of each word of the second, so a window touches
//! few lines. A chunk that outgrows its runs keeps all words. Where few are left, or none, it keeps
//! a row.

mod adding;
mod advised;
mod aging;
mod aliases;
mod chunk;
mod chunks;
mod evicting;
mod file;
mod invalidate;
pub(crate) mod lists;
mod locked;
mod orders;
mod page_cache;
mod paged_out;
mod reclaim;
mod shadows;
mod short_list;
mod span;
mod words;
mod young;

use std::collections::VecDeque;
use std::ops::Range;

use filemap_core::cache::{Folio, WORD_PAGES, word_mask, words};
use filemap_core::lru::statistics::Known;
use filemap_core::units::{PageCount, PageIndex};

use self::aliases::Aliases;
use self::chunk::Flags;
use self::chunks::Chunks;
use self::lists::{List, Stale};
use self::locked::Locked;
use self::paged_out::PagedOut;
use self::shadows::{Piece, Shadows};
use self::span::{CHUNK_WORDS, FEW_WORDS, by_chunk, first_span, pages_of};

/// The page cache of the model.
pub type ExtentCache = Extents<CHUNK_WORDS>;

/// The same in chunks so small that small files have many: for tests.
pub type TinyChunks = Extents<FEW_WORDS>;

/// A page cache in chunks of `W` words.
///
/// Pages are bits in chunks of so many words; the reclaim lists are extents of folios of one order.
/// Memory grows with what is cached and what was evicted lately. All files lie in one row of pages,
/// each with room for the largest (`file::first_page`), so that one set of chunks, lists and
/// shadows serves them all.
#[derive(Debug)]
pub struct Extents<const W: usize> {
    chunks: Chunks<W>,
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
    shadows: Shadows<W>,
    /// What was evicted on demand, of which nothing is in the shadows.
    paged_out: PagedOut,
    /// Room for the last evictions of the pages of a word.
    pieces: Vec<Piece>,
    /// The clock at which old evictions are forgotten next.
    forgets_at: u64,
    /// Chunks that became empty, with the clock then: forgotten once no eviction in them matters.
    retired: VecDeque<(u64, u64)>,
}

impl<const W: usize> Extents<W> {
    /// An empty cache that never holds more than `capacity` pages.
    pub fn new(capacity: Option<PageCount>) -> Extents<W> {
        let chunks = Chunks::new(capacity);
        let capacity = capacity.map_or(u64::MAX, |pages| pages.0);
        Extents {
            chunks,
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
            paged_out: PagedOut::default(),
            pieces: Vec::new(),
            forgets_at: 0,
            retired: VecDeque::new(),
        }
    }

    /// Changes the flags of cached pages `from..end`: gets those of each word, and the mask of its
    /// pages.
    fn set_range(&mut self, from: u64, end: u64, mut change: impl FnMut(&mut Flags, u64)) {
        for number in from / WORD_PAGES..end.div_ceil(WORD_PAGES) {
            let mask = word_mask(number, PageIndex(from), PageIndex(end));
            let chunk = self.chunks.get_mut(number / W as u64).expect("pages are cached");
            chunk.change_flags(number as usize % W, |flags| change(flags, mask));
        }
    }

    /// The first page in `from..end` that is cached, or the first that is not, or `end`.
    // Within its callers it would have too few registers, as the next one.
    #[inline(never)]
    fn find(&self, from: u64, end: u64, cached: bool) -> u64 {
        for (number, span) in by_chunk::<W>(from, end) {
            let found = match self.chunks.get(number) {
                Some(chunk) => chunk.find(span, cached),
                None => (!cached).then_some(span.from),
            };
            if let Some(offset) = found {
                return number * pages_of(W) + offset as u64;
            }
        }
        end
    }

    /// The first absent pages of `from..end`: none, at `end`, where all are cached.
    #[inline(never)]
    fn gap(&self, from: u64, end: u64) -> Range<u64> {
        if from >= end {
            return end..end;
        }
        let (number, span) = first_span::<W>(from, end);
        let (first, behind) = (number * pages_of(W), (number + 1) * pages_of(W));
        let gap = self.chunks.get(number).map_or((Some(span.from), None), |chunk| chunk.gap(span));
        let start = match gap.0 {
            Some(start) => first + start as u64,
            None => self.find(behind, end, false),
        };
        let stop = match gap.1 {
            Some(stop) => first + stop as u64,
            None if behind < end => self.find(start.max(behind), end, true),
            None => end,
        };
        start..stop
    }

    /// The folio that holds a page of the row, which is `index` in its file.
    // Its callers are few, and most of them ask for a part of it.
    #[inline(always)]
    fn folio(&self, page: u64, index: PageIndex) -> Option<Folio> {
        let chunk = self.chunks.get(page / pages_of(W))?;
        let offset = (page % pages_of(W)) as usize;
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
            if chunk.is_some_and(|chunk| chunk.pages() == pages_of(W)) {
                return None;
            }
            let first = PageIndex(number * pages_of(W));
            let of_chunk = words(floor.max(first), behind.min(first + PageCount(pages_of(W))));
            of_chunk.rev().find_map(|word| {
                let present = chunk.map_or(0, |chunk| chunk.present(word as usize % W));
                let absent = !present & word_mask(word, floor, behind);
                absent.checked_ilog2().map(|bit| PageIndex(word * WORD_PAGES + u64::from(bit)))
            })
        };
        (floor.0 / pages_of(W)..=last.0 / pages_of(W)).rev().find_map(absent_in)
    }

    /// Cached pages of `from..end` of the row.
    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount {
        let pages = self.chunks.iter().map(|(number, chunk)| {
            let first = PageIndex(number * pages_of(W));
            let behind = first + PageCount(pages_of(W));
            if from <= first && behind <= end {
                return chunk.pages();
            }
            if from.max(first) >= end.min(behind) {
                return 0;
            }
            let words = (number * W as u64..).zip(0..W);
            let cached = words.map(|(at, word)| chunk.present(word) & word_mask(at, from, end));
            cached.map(|pages| u64::from(pages.count_ones())).sum::<u64>()
        });
        PageCount(pages.sum::<u64>() + self.chunks.full_pages(from, end))
    }
}
