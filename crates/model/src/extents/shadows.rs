//! What evicted pages leave behind.

mod table;

use std::collections::VecDeque;

use filemap_core::cache::{WORD_PAGES, word_mask};
use filemap_core::units::{Order, PageIndex};

use super::lists::runs;
use super::span::{Span, WORD, limit, pages_of};

use self::table::{CLOCK_BITS, Table};

/// The eviction of consecutive folios of a chunk, one after the other, or of a part of one; or
/// that evictions of pages are forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Shadow {
    /// First page, from the start of the chunk.
    pub offset: u16,
    pub pages: u16,
    /// Clock at the eviction of the first page.
    pub clock: u64,
    /// The folios' order: all pages of one left together.
    pub order: Order,
    pub workingset: bool,
    /// Not an eviction: what was noted of these pages before does not count any more.
    pub forgets: bool,
}

impl Shadow {
    /// The folios of `span` are evicted from the clock `clock` on.
    pub fn new(span: Span, order: Order, clock: u64, workingset: bool) -> Shadow {
        let (offset, pages) = (span.from as u16, span.pages() as u16);
        Shadow { offset, pages, clock, order, workingset, forgets: false }
    }

    /// The clock at which the page at `offset`, one of its own, was evicted.
    fn clock_of(&self, offset: usize) -> u64 {
        let within = offset as u64 - u64::from(self.offset);
        self.clock + (within >> self.order.0 << self.order.0)
    }

    /// The clock after the eviction.
    fn end(&self) -> u64 {
        self.clock + if self.forgets { 0 } else { u64::from(self.pages) }
    }

    /// Whether the other is one eviction with it.
    // Which condition fails cannot be predicted, so all are computed.
    #[inline(always)]
    fn goes_on_with(&self, other: &Shadow) -> bool {
        !(self.forgets | other.forgets)
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

/// The evictions of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The newest one in the row: its number, from 1, or 0.
    newest: u64,
    /// How many there are at most in the row; then they have a table instead.
    links: u32,
    /// Its table: its number, from 1, or 0.
    table: u32,
}

impl Evicted {
    /// No page was evicted.
    pub const NONE: Evicted = Evicted { newest: 0, links: 0, table: 0 };
}

/// Pages one after the other whose last evictions had consecutive clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first page in its chunk.
    pub offset: usize,
    /// How many.
    pub pages: u64,
    /// Clock at the eviction of the first one.
    pub clock: u64,
    /// They had the workingset flag.
    pub workingset: bool,
}

/// Evictions of all chunks in one row, so that noting one does not wait for memory that its chunk
/// used long ago. A page may be in several: the last one counts. A chunk with many has a table.
#[derive(Debug)]
pub struct Shadows<const W: usize> {
    /// Oldest first, each with the number of the one before it in its chunk.
    evictions: VecDeque<(Shadow, u64)>,
    /// How many were forgotten.
    forgotten: u64,
    /// Those before this clock do not count any more.
    oldest: u64,
    tables: Vec<Table<W>>,
    /// Tables that no chunk uses.
    free: Vec<u32>,
    /// Whether all clocks that count fit into a table.
    has_tables: bool,
}

impl<const W: usize> Shadows<W> {
    /// So many evictions of one chunk are looked through one by one; where there are more, each
    /// page of the chunk has its own.
    const MOST_LINKS: u32 = limit(W, 64, 3) as u32;

    /// None yet, of which those count that lie at most `capacity` clocks back.
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

    /// Bytes of memory that they take.
    pub fn held_bytes(&self) -> u64 {
        let tables = self.tables.len() as u64 * pages_of(W) * 4;
        (self.evictions.len() * size_of::<(Shadow, u64)>()) as u64 + tables
    }

    /// What was noted of evictions of the pages of `span` does not count any more.
    pub fn forget_pages(&mut self, evicted: &mut Evicted, span: Span, clock: u64) {
        if *evicted != Evicted::NONE {
            let shadow = Shadow::new(span, Order(0), clock, false);
            self.push(evicted, Shadow { forgets: true, ..shadow });
        }
    }

    /// Forgets those that left before the clock `oldest`.
    pub fn forget(&mut self, oldest: u64) {
        let old = self.evictions.iter().take_while(|(shadow, _)| shadow.end() < oldest).count();
        self.evictions.drain(..old);
        self.forgotten += old as u64;
        self.oldest = oldest;
    }

    /// Notes an eviction in a chunk, joined to its last one where it goes on with it.
    #[inline(always)]
    pub fn push(&mut self, evicted: &mut Evicted, shadow: Shadow) {
        if evicted.table != 0 {
            return self.tables[evicted.table as usize - 1].note(shadow, self.oldest);
        }
        let count = self.forgotten + self.evictions.len() as u64;
        if evicted.newest == count
            && let Some((last, _)) = self.evictions.back_mut()
            && last.goes_on_with(&shadow)
        {
            last.pages += shadow.pages;
            return;
        }
        self.evictions.push_back((shadow, evicted.newest));
        evicted.newest = count + 1;
        evicted.links += 1;
        if evicted.links > Self::MOST_LINKS && self.has_tables {
            self.make_table(evicted);
        }
    }

    /// What is left of the chunk's evictions in the row goes to a table, if that is many.
    #[inline(never)]
    fn make_table(&mut self, evicted: &mut Evicted) {
        let mut newest_first: Vec<Shadow> = self.of(evicted).copied().collect();
        evicted.links = newest_first.len() as u32;
        if evicted.links <= Self::MOST_LINKS / 2 {
            return;
        }
        let table = self.free.pop().unwrap_or_else(|| {
            self.tables.push(Table::default());
            self.tables.len() as u32 - 1
        });
        let of_chunk = &mut self.tables[table as usize];
        of_chunk.begin(newest_first.last().map_or(0, |oldest| oldest.clock));
        while let Some(shadow) = newest_first.pop() {
            of_chunk.note(shadow, self.oldest);
        }
        *evicted = Evicted { table: table + 1, ..Evicted::NONE };
    }

    /// The evictions of a chunk that has no table, newest first.
    fn of(&self, evicted: &Evicted) -> impl Iterator<Item = &Shadow> {
        let get =
            |number: u64| self.evictions.get(number.checked_sub(self.forgotten + 1)? as usize);
        std::iter::successors(get(evicted.newest), move |(_, before)| get(*before))
            .map(|(shadow, _)| shadow)
    }

    /// Clock and workingset flag of the last eviction of the page at `offset` of a chunk. One
    /// before the clock `since` may be left out.
    pub fn last(&self, evicted: &Evicted, offset: usize, since: u64) -> Option<(u64, bool)> {
        if evicted.table != 0 {
            return self.tables[evicted.table as usize - 1].last(offset);
        }
        let has_page = |shadow: &&Shadow| {
            (offset as u16).checked_sub(shadow.offset).is_some_and(|within| within < shadow.pages)
        };
        let mut newer = self.of(evicted).take_while(|shadow| shadow.end() >= since);
        let shadow = newer.find(has_page).filter(|shadow| !shadow.forgets)?;
        Some((shadow.clock_of(offset), shadow.workingset))
    }

    /// The last evictions of the pages of `span`, all in one word, in the order of pages. Those
    /// before the clock `since` may be left out.
    pub fn pieces(&self, evicted: &Evicted, span: Span, since: u64, pieces: &mut Vec<Piece>) {
        pieces.clear();
        if evicted.table != 0 {
            return self.tables[evicted.table as usize - 1].pieces(span, since, pieces);
        }
        let word = span.from / WORD;
        let mut left = span.mask(word);
        for shadow in self.of(evicted).take_while(|shadow| shadow.end() >= since) {
            let pages = shadow.mask(word) & left;
            left &= !pages;
            if shadow.forgets || pages == 0 {
                continue;
            }
            // Pages of a large folio have one clock.
            let most = if shadow.order == Order(0) { WORD_PAGES } else { 1 };
            for (bit, length) in runs(pages) {
                for within in (0..length).step_by(most as usize) {
                    let offset = word * WORD + (bit + within) as usize;
                    let (clock, workingset) = (shadow.clock_of(offset), shadow.workingset);
                    let pages = most.min(length - within);
                    pieces.push(Piece { offset, pages, clock, workingset });
                }
            }
            if left == 0 {
                break;
            }
        }
        pieces.sort_unstable_by_key(|piece| piece.offset);
    }

    /// The words of `span`, one bit each, in which a page of it may have been evicted at or after
    /// the clock `since`.
    #[inline]
    pub fn words_since(&self, evicted: &Evicted, span: Span, since: u64) -> u64 {
        if !self.any_since(evicted, since) {
            return 0;
        }
        if evicted.table != 0 {
            return self.tables[evicted.table as usize - 1].words_since(span, since);
        }
        let newer = self.of(evicted).take_while(|shadow| shadow.end() > since);
        newer.fold(0, |words, shadow| words | shadow.span().words()) & span.words()
    }

    /// Whether an eviction in a chunk at or after `clock` is noted.
    pub fn any_since(&self, evicted: &Evicted, clock: u64) -> bool {
        if evicted.table != 0 {
            return self.tables[evicted.table as usize - 1].end() > clock;
        }
        self.of(evicted).next().is_some_and(|shadow| shadow.end() > clock)
    }

    /// A chunk goes, whose evictions do not count any more.
    pub fn release(&mut self, evicted: &mut Evicted) {
        if let Some(table) = evicted.table.checked_sub(1) {
            self.free.push(table);
        }
        *evicted = Evicted::NONE;
    }
}
