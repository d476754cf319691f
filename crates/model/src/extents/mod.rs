//! The page cache as extents and bitmaps: the cost of a window is per word, not per page.
//!
//! The storage of a chunk of 4096 pages depends on its contents:
//!
//! | contents | storage | module |
//! |---|---|---|
//! | at least four chunks filled by one window | one entry for all of them | `chunks` |
//! | a chunk of empty and full words | summary bitmaps only | `chunk` |
//! | up to 20 runs of pages with equal flags | 4 bytes per run | `words::runs` |
//! | up to 7 words of each kind, if memory allows | slots in 0.6 KiB | `words::slots` |
//! | more words | 64 bytes per word, 4 KiB in total | `words` |
//! | large folios | 4 bytes per run of one order | `orders` |
//! | up to 64 recent evictions | runs in a queue shared by all chunks | `shadows` |
//! | more evictions | the last eviction of each page, 16 KiB in total | `shadows::table` |
//!
//! Slots hold words of two kinds: partially cached ones, and ones with mapped, marked or otherwise
//! flagged pages. The `present` masks of all slots share one cache line, and the flags of each word
//! have their own, so a window touches few lines. A chunk that outgrows its runs stores all words.
//! Once few or none are in use, it stores slots.

mod add;
mod advice;
mod aging;
mod aliases;
mod chunk;
mod chunks;
mod evict;
mod file;
mod invalidate;
pub(crate) mod lists;
mod locked;
mod orders;
mod page_cache;
mod paged_out;
mod reclaim;
mod shadows;
mod span;
mod words;
mod young;

use std::collections::VecDeque;
use std::ops::Range;

use filemap_core::cache::{Folio, WORD_PAGES, word_mask, words};
use filemap_core::lru::statistics::LruvecStats;
use filemap_core::units::{PageCount, PageIndex};

use self::aliases::Aliases;
use self::chunk::Flags;
use self::chunks::Chunks;
use self::lists::{ExtentList, StaleEntries};
use self::locked::LockedPages;
use self::paged_out::PagedOutPages;
use self::shadows::{ShadowRun, Shadows};
use self::span::{CHUNK_WORDS, TINY_CHUNK_WORDS, by_chunk, chunk_pages, first_span};

/// The page cache of the model.
pub type ExtentCache = Extents<CHUNK_WORDS>;

/// A cache with tiny chunks, so that small files have many: for tests.
pub type TinyChunks = Extents<TINY_CHUNK_WORDS>;

/// A page cache in chunks of `W` words.
///
/// Pages are bits in chunks; the LRU lists are extents of folios of one order. Memory grows with
/// the cached and recently evicted pages. All files share one global page number space, each with
/// room for the largest file (`file::first_page`), so that one set of chunks, lists and shadows
/// serves them all.
#[derive(Debug)]
pub struct Extents<const W: usize> {
    chunks: Chunks<W>,
    /// Page-table entries of all layers but the first, whose entries are in the chunks.
    aliases: Aliases,
    inactive: ExtentList,
    active: ExtentList,
    stale: StaleEntries,
    locked: LockedPages,
    /// Leaf nodes of the index: words with a page in a folio smaller than a word.
    nodes: u64,
    /// The refault clock: evictions and activations so far, in pages.
    clock: u64,
    known: LruvecStats,
    /// Maximum length of a list; older evictions cannot matter.
    capacity: u64,
    shadows: Shadows<W>,
    /// Pages evicted on demand, which have no shadows.
    paged_out: PagedOutPages,
    /// Scratch buffer for the shadows of a word.
    pieces: Vec<ShadowRun>,
    /// Clock at which old shadows are dropped next.
    forgets_at: u64,
    /// Chunks that became empty, with the clock at the time; freed once their shadows are obsolete.
    retired: VecDeque<(u64, u64)>,
}

impl<const W: usize> Extents<W> {
    /// An empty cache of at most `capacity` pages.
    pub fn new(capacity: Option<PageCount>) -> Extents<W> {
        let chunks = Chunks::new(capacity);
        let capacity = capacity.map_or(u64::MAX, |pages| pages.0);
        Extents {
            chunks,
            aliases: Aliases::default(),
            inactive: ExtentList::default(),
            active: ExtentList::default(),
            stale: StaleEntries::default(),
            locked: LockedPages::default(),
            nodes: 0,
            clock: 0,
            known: LruvecStats::default(),
            capacity,
            shadows: Shadows::new(capacity),
            paged_out: PagedOutPages::default(),
            pieces: Vec::new(),
            forgets_at: 0,
            retired: VecDeque::new(),
        }
    }

    /// Changes the flags of the cached pages `from..end`: calls `change` with the flags and page
    /// mask of each word.
    fn set_range(&mut self, from: u64, end: u64, mut change: impl FnMut(&mut Flags, u64)) {
        for number in from / WORD_PAGES..end.div_ceil(WORD_PAGES) {
            let mask = word_mask(number, PageIndex(from), PageIndex(end));
            let chunk = self.chunks.get_mut(number / W as u64).expect("pages are cached");
            chunk.change_flags(number as usize % W, |flags| change(flags, mask));
        }
    }

    /// The first page in `from..end` that is cached, or that is not; else `end`.
    // Out of line, as is the next one: inlining costs registers in the callers.
    #[inline(never)]
    fn find(&self, from: u64, end: u64, cached: bool) -> u64 {
        for (number, span) in by_chunk::<W>(from, end) {
            let found = match self.chunks.get(number) {
                Some(chunk) => chunk.find(span, cached),
                None => (!cached).then_some(span.from),
            };
            if let Some(offset) = found {
                return number * chunk_pages(W) + offset as u64;
            }
        }
        end
    }

    /// The first run of absent pages in `from..end`; empty at `end` if all are cached.
    #[inline(never)]
    fn gap(&self, from: u64, end: u64) -> Range<u64> {
        if from >= end {
            return end..end;
        }
        let (number, span) = first_span::<W>(from, end);
        let (first, after) = (number * chunk_pages(W), (number + 1) * chunk_pages(W));
        let gap = self.chunks.get(number).map_or((Some(span.from), None), |chunk| chunk.gap(span));
        let start = match gap.0 {
            Some(start) => first + start as u64,
            None => self.find(after, end, false),
        };
        let stop = match gap.1 {
            Some(stop) => first + stop as u64,
            None if after < end => self.find(start.max(after), end, true),
            None => end,
        };
        start..stop
    }

    /// The folio that holds global page `page`, which is `index` in its file.
    // Few callers, and most use only part of the result.
    #[inline(always)]
    fn folio(&self, page: u64, index: PageIndex) -> Option<Folio> {
        let chunk = self.chunks.get(page / chunk_pages(W))?;
        let offset = (page % chunk_pages(W)) as usize;
        if !chunk.has(offset) {
            return None;
        }
        let order = chunk.order(offset);
        let locked = self.locked.any(page, page + 1);
        let flags = chunk.known_flags(offset / WORD_PAGES as usize);
        let marked = flags.is_some_and(|flags| flags.marked >> (page % WORD_PAGES) & 1 == 1);
        Some(Folio { head: index.align_down(order), order, locked, marked })
    }

    /// The last absent page at or before `last`, not before `floor`.
    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex> {
        let after = last + PageCount(1);
        let absent_in = |number: u64| {
            let chunk = self.chunks.get(number);
            if chunk.is_some_and(|chunk| chunk.pages() == chunk_pages(W)) {
                return None;
            }
            let first = PageIndex(number * chunk_pages(W));
            let of_chunk = words(floor.max(first), after.min(first + PageCount(chunk_pages(W))));
            of_chunk.rev().find_map(|word| {
                let present = chunk.map_or(0, |chunk| chunk.present(word as usize % W));
                let absent = !present & word_mask(word, floor, after);
                absent.checked_ilog2().map(|bit| PageIndex(word * WORD_PAGES + u64::from(bit)))
            })
        };
        (floor.0 / chunk_pages(W)..=last.0 / chunk_pages(W)).rev().find_map(absent_in)
    }

    /// Number of cached pages of `from..end`.
    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount {
        let pages = self.chunks.iter().map(|(number, chunk)| {
            let first = PageIndex(number * chunk_pages(W));
            let after = first + PageCount(chunk_pages(W));
            if from <= first && after <= end {
                return chunk.pages();
            }
            if from.max(first) >= end.min(after) {
                return 0;
            }
            let words = (number * W as u64..).zip(0..W);
            let cached = words.map(|(at, word)| chunk.present(word) & word_mask(at, from, end));
            cached.map(|pages| u64::from(pages.count_ones())).sum::<u64>()
        });
        PageCount(pages.sum::<u64>() + self.chunks.full_pages(from, end))
    }
}
