//! Pages of a file that lie side by side: 4096, in all but some tests.

mod pages;
mod used;

use filemap_core::address::entries::Unmapped;
use filemap_core::cache::WORD_PAGES;
use filemap_core::units::Order;

use super::orders::Orders;
use super::shadows::Evicted;
use super::span::{Span, WORD, pages_of};
use super::words::{Counted, Words};

pub use super::words::Flags;

/// The pages of `W` words. Most words are empty, or full of pages without a flag, and become one
/// from the other without a look at them: the bits that say so lie side by side, one for each word.
#[derive(Debug)]
pub struct Chunk<const W: usize> {
    /// Words of which a page is cached.
    some: u64,
    /// Words of which every page is cached. `present` counts in the words that are neither full
    /// nor empty; in others it is anything.
    full: u64,
    /// Words in which a page may have a flag. `flags` count in those; in others they are anything.
    flagged: u64,
    /// Those of them in which a page may be young or have the workingset flag: reclaim looks at no
    /// others.
    notable: u64,
    /// Cached pages.
    pages: u16,
    /// Private copies.
    copied: u16,
    /// Its evictions.
    pub evicted: Evicted,
    orders: Orders<W>,
    words: Words<W>,
}

impl<const W: usize> Default for Chunk<W> {
    fn default() -> Self {
        Chunk::plain(0)
    }
}

impl<const W: usize> Chunk<W> {
    /// A chunk all pages of which are cached in these words, one bit each, as base pages without a
    /// flag, and none in others.
    const fn plain(words: u64) -> Chunk<W> {
        Chunk {
            some: words,
            full: words,
            flagged: 0,
            notable: 0,
            pages: (words.count_ones() as u64 * WORD_PAGES) as u16,
            copied: 0,
            evicted: Evicted::NONE,
            orders: Orders::NONE,
            words: Words::ANY,
        }
    }

    /// A chunk whose pages are all cached, as base pages without a flag.
    pub const FULL: Chunk<W> = Chunk::plain(Self::ALL_WORDS);

    /// One bit for each word.
    const ALL_WORDS: u64 = u64::MAX >> (64 - W);

    /// All pages of a chunk that has none are cached from now on.
    pub fn fill(&mut self) {
        debug_assert!(self.is_empty(), "no page is cached");
        (self.some, self.full) = (Self::ALL_WORDS, Self::ALL_WORDS);
        self.pages = pages_of(W) as u16;
    }

    /// Whether the page at `offset` is cached.
    #[inline]
    pub fn has(&self, offset: usize) -> bool {
        self.present(offset / WORD) >> (offset % WORD) & 1 == 1
    }

    /// The cached pages of `word`.
    #[inline]
    pub fn present(&self, word: usize) -> u64 {
        let bit = 1 << word;
        if self.full & bit != 0 {
            return u64::MAX;
        }
        if self.some & bit != 0 { self.words.present(word) } else { 0 }
    }

    /// Cached pages.
    pub fn pages(&self) -> u64 {
        self.pages.into()
    }

    /// Whether no page is cached or copied.
    pub fn is_empty(&self) -> bool {
        self.pages == 0 && self.copied == 0
    }

    /// The flags of the pages of `word`.
    #[inline]
    pub fn flags(&self, word: usize) -> Flags {
        self.some_flags(word).unwrap_or_default()
    }

    /// The flags of the pages of `word`; `None` where it is known that they have none.
    #[inline]
    pub fn some_flags(&self, word: usize) -> Option<Flags> {
        (self.flagged >> word & 1 == 1).then(|| self.words.get(word, |flags| *flags))
    }

    /// Changes the flags of the pages of `word`, but where it is known that they have none.
    #[inline]
    pub fn change_some_flags<R>(
        &mut self,
        word: usize,
        change: impl FnOnce(&mut Flags) -> R,
    ) -> Option<R> {
        (self.flagged >> word & 1 == 1).then(|| self.change_flags(word, change))
    }

    /// Changes the flags of the pages of `word`.
    // Its callers are few, and change words by the million.
    #[inline(always)]
    pub fn change_flags<R>(&mut self, word: usize, change: impl FnOnce(&mut Flags) -> R) -> R {
        let is_new = self.flagged >> word & 1 == 0;
        self.flagged |= 1 << word;
        let used = self.counted();
        let (changed, is_notable) = self.words.change(word, used, |flags| {
            if is_new {
                *flags = Flags::default();
            }
            let changed = change(flags);
            (changed, flags.young | flags.workingset != 0)
        });
        self.notable = self.notable & !(1 << word) | u64::from(is_notable) << word;
        changed
    }

    /// Keeps words in a row from now on, of a chunk that has nothing.
    pub fn keep_in_row(&mut self) {
        self.words.keep_in_row();
    }

    /// The words of which something counts that is kept.
    #[inline(always)]
    fn counted(&self) -> Counted {
        Counted { flagged: self.flagged, partial: self.some & !self.full }
    }

    /// Order of the folio that the page at `offset` is in; meaningless for an absent page.
    pub fn order(&self, offset: usize) -> Order {
        self.orders.of(offset)
    }

    /// Bytes of memory that it takes.
    pub fn held_bytes(&self) -> u64 {
        size_of::<Chunk<W>>() as u64 + self.words.held_bytes() + self.orders.held_bytes()
    }

    /// The pages of `word` that are in large folios, and meaningless bits for absent ones.
    #[inline]
    pub fn large(&self, word: usize) -> u64 {
        self.orders.large(word)
    }

    /// The pages of `word` that are cached and have no mark.
    pub fn unmarked(&self, word: usize) -> u64 {
        let is_flagged = self.flagged >> word & 1 == 1;
        let marked = |word| self.words.get(word, |flags| flags.marked);
        self.present(word) & !if is_flagged { marked(word) } else { 0 }
    }

    /// Whether it is known that all pages of `word` that are cached are in folios of `order`.
    pub fn is_of_order(&self, word: usize, order: Order) -> bool {
        self.orders.are(word, order)
    }

    /// The first page of `span` that is cached, or the first that is not.
    #[inline(always)]
    pub fn find(&self, span: Span, cached: bool) -> Option<usize> {
        let present = self.present(span.from / WORD);
        self.next(span.from, if cached { present } else { !present }, cached)
            .filter(|&found| found < span.end)
    }

    /// The first page of `span` that is not cached, and the first one after that which is.
    #[inline(always)]
    pub fn gap(&self, span: Span) -> (Option<usize>, Option<usize>) {
        let word = span.from / WORD;
        let present = self.present(word);
        let within = |&found: &usize| found < span.end;
        let Some(start) = self.next(span.from, !present, false).filter(within) else {
            return (None, None);
        };
        let present = if start / WORD == word { present } else { self.present(start / WORD) };
        (Some(start), self.next(start, present, true).filter(within))
    }

    /// The first page from `from` on that is cached, or the first that is not: those in its word
    /// are `of_word`.
    #[inline(always)]
    fn next(&self, from: usize, of_word: u64, cached: bool) -> Option<usize> {
        let here = of_word >> (from % WORD);
        if here != 0 {
            return Some(from + here.trailing_zeros() as usize);
        }
        let some = if cached { self.some } else { !self.full };
        let behind = some & u64::MAX << (from / WORD) << 1;
        if behind == 0 {
            return None;
        }
        let word = behind.trailing_zeros() as usize;
        let pages = if cached { self.present(word) } else { !self.present(word) };
        Some(word * WORD + pages.trailing_zeros() as usize)
    }

    /// The mapped pages of a span.
    #[inline]
    pub fn mapped(&self, span: Span) -> u64 {
        let mut flagged = self.flagged & span.words();
        let mut mapped = 0;
        while flagged != 0 {
            let word = flagged.trailing_zeros() as usize;
            let of_word = self.words.get(word, |flags| flags.mapped);
            mapped += u64::from((of_word & span.mask(word)).count_ones());
            flagged &= flagged - 1;
        }
        mapped
    }

    /// Notes a private copy of the page at `offset`, which is no longer mapped.
    pub fn copy(&mut self, offset: usize) {
        self.copied += 1;
        let bit = 1 << (offset % WORD);
        self.change_flags(offset / WORD, |flags| {
            flags.mapped &= !bit;
            flags.young &= !bit;
            flags.copied |= bit;
        });
    }

    /// The words in which a page is mapped or copied.
    pub fn words_with_entries(&self) -> impl Iterator<Item = usize> {
        let mapped = |&word: &usize| {
            let flags = self.flags(word);
            flags.mapped | flags.copied != 0
        };
        (0..W).filter(mapped)
    }

    /// Takes away the entries and private copies of the pages of `mask` in `word`.
    pub fn unmap(&mut self, word: usize, mask: u64) -> Unmapped {
        let unmap = |flags: &mut Flags| {
            let mapped = flags.mapped & mask;
            let (accessed, copied) = (flags.accessed(mask), flags.copied & mask);
            flags.mapped &= !mask;
            flags.young &= !mask;
            flags.copied &= !mask;
            Unmapped { mapped, accessed, copied }
        };
        let Some(unmapped) = self.change_some_flags(word, unmap) else {
            return Unmapped::default();
        };
        self.copied -= unmapped.copied.count_ones() as u16;
        if self.copied == 0 {
            self.flagged &= self.some;
        }
        unmapped
    }

    /// Forgets the orders of pages. What has no page has no flag, so nothing else is left.
    pub fn forget(&mut self) {
        debug_assert!(self.is_empty() && self.some == 0 && self.flagged == 0);
        self.orders.forget();
    }
}
