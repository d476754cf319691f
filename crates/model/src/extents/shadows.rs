//! Shadows: what the cache remembers about evicted pages.

mod table;

use std::collections::VecDeque;

use filemap_core::cache::{WORD_PAGES, word_mask};
use filemap_core::units::{Order, PageIndex};

use super::lists::bit_runs;
use super::span::{Span, WORD, chunk_pages, limit};

use self::table::{CLOCK_BITS, ShadowTable};

/// The eviction of consecutive folios of a chunk, or of part of a folio; or a record that earlier
/// evictions of these pages are void.
#[derive(Clone, Copy, Debug)]
pub struct Shadow {
    /// Offset of the first page in the chunk.
    pub offset: u16,
    pub pages: u16,
    /// Clock at the eviction of the first page.
    pub clock: u64,
    /// Order of the folios; all pages of a folio are evicted at the same clock.
    pub order: Order,
    pub workingset: bool,
    /// Not an eviction, but the erasure of earlier ones.
    pub is_erasure: bool,
}

impl Shadow {
    /// The folios of `span`, evicted from clock `clock` on.
    pub fn new(span: Span, order: Order, clock: u64, workingset: bool) -> Shadow {
        let (offset, pages) = (span.from as u16, span.pages() as u16);
        Shadow { offset, pages, clock, order, workingset, is_erasure: false }
    }

    /// Clock at the eviction of the page at `offset`.
    fn clock_of(&self, offset: usize) -> u64 {
        let within = offset as u64 - u64::from(self.offset);
        self.clock + (within >> self.order.0 << self.order.0)
    }

    /// Clock after the eviction.
    fn end(&self) -> u64 {
        self.clock + if self.is_erasure { 0 } else { u64::from(self.pages) }
    }

    /// Whether `other` directly continues this eviction.
    // Unpredictable branches: all conditions are evaluated.
    #[inline(always)]
    fn is_continued_by(&self, other: &Shadow) -> bool {
        !(self.is_erasure | other.is_erasure)
            & (self.order == other.order)
            & (self.workingset == other.workingset)
            & (self.offset + self.pages == other.offset)
            & (self.end() == other.clock)
    }

    fn span(&self) -> Span {
        Span { from: self.offset.into(), end: usize::from(self.offset + self.pages) }
    }

    /// Its pages in `word` of the chunk.
    fn mask(&self, word: usize) -> u64 {
        let Span { from, end } = self.span();
        word_mask(word as u64, PageIndex(from as u64), PageIndex(end as u64))
    }
}

/// The shadows of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkShadows {
    /// The newest one in the shared queue: its number, from 1, or 0.
    newest: u64,
    /// Upper bound of its shadows in the queue, unless it has a table.
    links: u32,
    /// Number of its table, from 1, or 0.
    table: u32,
}

impl ChunkShadows {
    /// No shadows.
    pub const NONE: ChunkShadows = ChunkShadows { newest: 0, links: 0, table: 0 };
}

/// Consecutive pages whose last evictions had consecutive clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowRun {
    /// Offset of the first page in the chunk.
    pub offset: usize,
    /// Number of pages.
    pub pages: u64,
    /// Clock at the eviction of the first page.
    pub clock: u64,
    /// Workingset flag.
    pub workingset: bool,
}

/// The shadows of all chunks in one queue, so that adding one does not miss the cache on memory of
/// its chunk. The newest shadow of a page is the valid one. A chunk with many shadows has a table
/// instead.
#[derive(Debug)]
pub struct Shadows<const W: usize> {
    /// Oldest first, each with the number of the previous one in its chunk.
    evictions: VecDeque<(Shadow, u64)>,
    /// Number of dropped shadows.
    forgotten: u64,
    /// Shadows before this clock are obsolete.
    oldest: u64,
    tables: Vec<ShadowTable<W>>,
    /// Unused tables.
    free: Vec<u32>,
    /// Whether all relevant clocks fit into a table.
    has_tables: bool,
}

impl<const W: usize> Shadows<W> {
    /// Maximum number of shadows per chunk that are searched linearly; a chunk with more gets a
    /// table with an entry per page.
    const MAX_LINKS: u32 = limit(W, 64, 3) as u32;

    /// No shadows. Those older than `capacity` clocks will be obsolete.
    pub fn new(capacity: u64) -> Shadows<W> {
        Shadows {
            evictions: VecDeque::new(),
            forgotten: 0,
            oldest: 0,
            tables: Vec::new(),
            free: Vec::new(),
            has_tables: capacity < 1 << (CLOCK_BITS - 2),
        }
    }

    /// Memory used, in bytes.
    pub fn held_bytes(&self) -> u64 {
        let tables = self.tables.len() as u64 * chunk_pages(W) * 4;
        (self.evictions.len() * size_of::<(Shadow, u64)>()) as u64 + tables
    }

    /// Voids earlier evictions of the pages of `span`.
    pub fn forget_pages(&mut self, evicted: &mut ChunkShadows, span: Span, clock: u64) {
        if *evicted != ChunkShadows::NONE {
            let shadow = Shadow::new(span, Order(0), clock, false);
            self.push(evicted, Shadow { is_erasure: true, ..shadow });
        }
    }

    /// Drops shadows from before the clock `oldest`.
    pub fn forget(&mut self, oldest: u64) {
        let old = self.evictions.iter().take_while(|(shadow, _)| shadow.end() < oldest).count();
        self.evictions.drain(..old);
        self.forgotten += old as u64;
        self.oldest = oldest;
    }

    /// Adds a shadow to a chunk, merged with its newest one if that is continued.
    #[inline(always)]
    pub fn push(&mut self, evicted: &mut ChunkShadows, shadow: Shadow) {
        if evicted.table != 0 {
            return self.tables[evicted.table as usize - 1].record(shadow, self.oldest);
        }
        let count = self.forgotten + self.evictions.len() as u64;
        if evicted.newest == count
            && let Some((last, _)) = self.evictions.back_mut()
            && last.is_continued_by(&shadow)
        {
            last.pages += shadow.pages;
            return;
        }
        self.evictions.push_back((shadow, evicted.newest));
        evicted.newest = count + 1;
        evicted.links += 1;
        if evicted.links > Self::MAX_LINKS && self.has_tables {
            self.move_to_table(evicted);
        }
    }

    /// Moves the remaining shadows of a chunk to a table, unless there are few.
    #[inline(never)]
    fn move_to_table(&mut self, evicted: &mut ChunkShadows) {
        let mut newest_first: Vec<Shadow> = self.newest_first(evicted).copied().collect();
        evicted.links = newest_first.len() as u32;
        if evicted.links <= Self::MAX_LINKS / 2 {
            return;
        }
        let table = self.free.pop().unwrap_or_else(|| {
            self.tables.push(ShadowTable::default());
            self.tables.len() as u32 - 1
        });
        let of_chunk = &mut self.tables[table as usize];
        of_chunk.reset(newest_first.last().map_or(0, |oldest| oldest.clock));
        while let Some(shadow) = newest_first.pop() {
            of_chunk.record(shadow, self.oldest);
        }
        *evicted = ChunkShadows { table: table + 1, ..ChunkShadows::NONE };
    }

    /// The shadows of a chunk without a table, newest first.
    fn newest_first(&self, evicted: &ChunkShadows) -> impl Iterator<Item = &Shadow> {
        let get =
            |number: u64| self.evictions.get(number.checked_sub(self.forgotten + 1)? as usize);
        std::iter::successors(get(evicted.newest), move |(_, before)| get(*before))
            .map(|(shadow, _)| shadow)
    }

    /// Clock and workingset flag of the last eviction of the page at `offset`. Evictions before
    /// `since` may be left out.
    pub fn last(&self, evicted: &ChunkShadows, offset: usize, since: u64) -> Option<(u64, bool)> {
        if evicted.table != 0 {
            return self.tables[evicted.table as usize - 1].last(offset);
        }
        let has_page = |shadow: &&Shadow| {
            (offset as u16).checked_sub(shadow.offset).is_some_and(|within| within < shadow.pages)
        };
        let mut newer = self.newest_first(evicted).take_while(|shadow| shadow.end() >= since);
        let shadow = newer.find(has_page).filter(|shadow| !shadow.is_erasure)?;
        Some((shadow.clock_of(offset), shadow.workingset))
    }

    /// The last evictions of the pages of `span`, which lies in one word, in page order. Evictions
    /// before `since` may be left out.
    pub fn runs_in_word(
        &self,
        evicted: &ChunkShadows,
        span: Span,
        since: u64,
        pieces: &mut Vec<ShadowRun>,
    ) {
        pieces.clear();
        if evicted.table != 0 {
            return self.tables[evicted.table as usize - 1].pieces(span, since, pieces);
        }
        let word = span.from / WORD;
        let mut left = span.mask(word);
        for shadow in self.newest_first(evicted).take_while(|shadow| shadow.end() >= since) {
            let pages = shadow.mask(word) & left;
            left &= !pages;
            if shadow.is_erasure || pages == 0 {
                continue;
            }
            // All pages of a large folio share one clock.
            let most = if shadow.order == Order(0) { WORD_PAGES } else { 1 };
            for (bit, length) in bit_runs(pages) {
                for within in (0..length).step_by(most as usize) {
                    let offset = word * WORD + (bit + within) as usize;
                    let (clock, workingset) = (shadow.clock_of(offset), shadow.workingset);
                    let pages = most.min(length - within);
                    pieces.push(ShadowRun { offset, pages, clock, workingset });
                }
            }
            if left == 0 {
                break;
            }
        }
        pieces.sort_unstable_by_key(|piece| piece.offset);
    }

    /// The words of `span`, one bit each, with a page that may have been evicted at or after
    /// `since`.
    #[inline]
    pub fn words_since(&self, evicted: &ChunkShadows, span: Span, since: u64) -> u64 {
        if !self.any_since(evicted, since) {
            return 0;
        }
        if evicted.table != 0 {
            return self.tables[evicted.table as usize - 1].words_since(span, since);
        }
        let newer = self.newest_first(evicted).take_while(|shadow| shadow.end() > since);
        newer.fold(0, |words, shadow| words | shadow.span().words()) & span.words()
    }

    /// Whether the chunk has a shadow at or after `clock`.
    pub fn any_since(&self, evicted: &ChunkShadows, clock: u64) -> bool {
        if evicted.table != 0 {
            return self.tables[evicted.table as usize - 1].end() > clock;
        }
        self.newest_first(evicted).next().is_some_and(|shadow| shadow.end() > clock)
    }

    /// Releases the shadows of a chunk that is freed.
    pub fn release(&mut self, evicted: &mut ChunkShadows) {
        if let Some(table) = evicted.table.checked_sub(1) {
            self.free.push(table);
        }
        *evicted = ChunkShadows::NONE;
    }
}
