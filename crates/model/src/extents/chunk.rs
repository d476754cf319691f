//! A chunk: 4096 consecutive pages of a file (fewer in some tests).

mod pages;
mod untouched;

use filemap_core::address::entries::UnmappedPages;
use filemap_core::cache::WORD_PAGES;
use filemap_core::units::Order;

use super::orders::FolioOrders;
use super::shadows::ChunkShadows;
use super::span::{Span, WORD, chunk_pages};
use super::words::{LiveWords, Words};

pub use super::words::Flags;

/// The pages of `W` words. Most words are empty, or full of pages without flags. Summary bitmaps
/// with one bit per word track these, so that such words change without touching their contents.
#[derive(Debug)]
pub struct Chunk<const W: usize> {
    /// Words with at least one cached page.
    non_empty: u64,
    /// Words whose pages are all cached. `Words::present` is only valid for words that are neither
    /// full nor empty.
    full: u64,
    /// Words in which a page may have a flag. `Words::get` is only valid for these.
    flagged: u64,
    /// Flagged words in which a page may be young or have the workingset flag; reclaim looks at no
    /// others.
    notable: u64,
    /// Cached pages.
    pages: u16,
    /// Private copies.
    copied: u16,
    /// Shadows of its evicted pages.
    pub evicted: ChunkShadows,
    orders: FolioOrders<W>,
    words: Words<W>,
}

impl<const W: usize> Default for Chunk<W> {
    fn default() -> Self {
        Chunk::plain(0)
    }
}

impl<const W: usize> Chunk<W> {
    /// A chunk with all pages of `words` cached as base pages without flags, and no others.
    const fn plain(words: u64) -> Chunk<W> {
        Chunk {
            non_empty: words,
            full: words,
            flagged: 0,
            notable: 0,
            pages: (words.count_ones() as u64 * WORD_PAGES) as u16,
            copied: 0,
            evicted: ChunkShadows::NONE,
            orders: FolioOrders::NONE,
            words: Words::UNSET,
        }
    }

    /// A chunk whose pages are all cached, as base pages without a flag.
    pub const FULL: Chunk<W> = Chunk::plain(Self::ALL_WORDS);

    /// One bit for each word.
    const ALL_WORDS: u64 = u64::MAX >> (64 - W);

    /// Adds all pages to an empty chunk.
    pub fn fill(&mut self) {
        debug_assert!(self.is_empty(), "no page is cached");
        (self.non_empty, self.full) = (Self::ALL_WORDS, Self::ALL_WORDS);
        self.pages = chunk_pages(W) as u16;
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
        if self.non_empty & bit != 0 { self.words.present(word) } else { 0 }
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
        self.known_flags(word).unwrap_or_default()
    }

    /// The flags of the pages of `word`; `None` if it is known to have none.
    #[inline]
    pub fn known_flags(&self, word: usize) -> Option<Flags> {
        (self.flagged >> word & 1 == 1).then(|| self.words.get(word, |flags| *flags))
    }

    /// Changes the flags of the pages of `word`, unless it is known to have none.
    #[inline]
    pub fn change_known_flags<R>(
        &mut self,
        word: usize,
        change: impl FnOnce(&mut Flags) -> R,
    ) -> Option<R> {
        (self.flagged >> word & 1 == 1).then(|| self.change_flags(word, change))
    }

    /// Changes the flags of the pages of `word`.
    // Few callers, millions of calls.
    #[inline(always)]
    pub fn change_flags<R>(&mut self, word: usize, change: impl FnOnce(&mut Flags) -> R) -> R {
        let is_new = self.flagged >> word & 1 == 0;
        self.flagged |= 1 << word;
        let used = self.live_words();
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

    /// Switches an empty chunk to slot storage.
    pub fn use_slots(&mut self) {
        self.words.use_slots();
    }

    /// The words whose stored contents are valid.
    #[inline(always)]
    fn live_words(&self) -> LiveWords {
        LiveWords { flagged: self.flagged, partial: self.non_empty & !self.full }
    }

    /// Order of the folio that the page at `offset` is in; meaningless for an absent page.
    pub fn order(&self, offset: usize) -> Order {
        self.orders.order(offset)
    }

    /// Memory used, in bytes.
    pub fn held_bytes(&self) -> u64 {
        size_of::<Chunk<W>>() as u64 + self.words.held_bytes() + self.orders.held_bytes()
    }

    /// The pages of `word` in large folios; bits of absent pages are meaningless.
    #[inline]
    pub fn large(&self, word: usize) -> u64 {
        self.orders.large(word)
    }

    /// The cached pages of `word` without the readahead mark.
    pub fn unmarked(&self, word: usize) -> u64 {
        let is_flagged = self.flagged >> word & 1 == 1;
        let marked = |word| self.words.get(word, |flags| flags.marked);
        self.present(word) & !if is_flagged { marked(word) } else { 0 }
    }

    /// Whether all cached pages of `word` are known to be in folios of `order`.
    pub fn has_uniform_order(&self, word: usize, order: Order) -> bool {
        self.orders.is_uniform(word, order)
    }

    /// The first page of `span` that is cached, or that is not.
    #[inline(always)]
    pub fn find(&self, span: Span, cached: bool) -> Option<usize> {
        let present = self.present(span.from / WORD);
        self.find_from(span.from, if cached { present } else { !present }, cached)
            .filter(|&found| found < span.end)
    }

    /// The first absent page of `span`, and the first cached one after it.
    #[inline(always)]
    pub fn gap(&self, span: Span) -> (Option<usize>, Option<usize>) {
        let word = span.from / WORD;
        let present = self.present(word);
        let within = |&found: &usize| found < span.end;
        let Some(start) = self.find_from(span.from, !present, false).filter(within) else {
            return (None, None);
        };
        let present = if start / WORD == word { present } else { self.present(start / WORD) };
        (Some(start), self.find_from(start, present, true).filter(within))
    }

    /// The first page from `from` on that is cached, or that is not. `of_word` are the candidates
    /// in its own word.
    #[inline(always)]
    fn find_from(&self, from: usize, of_word: u64, cached: bool) -> Option<usize> {
        let here = of_word >> (from % WORD);
        if here != 0 {
            return Some(from + here.trailing_zeros() as usize);
        }
        let some = if cached { self.non_empty } else { !self.full };
        let after = some & u64::MAX << (from / WORD) << 1;
        if after == 0 {
            return None;
        }
        let word = after.trailing_zeros() as usize;
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

    /// Records a private copy of the page at `offset`, which is unmapped. Returns whether it was
    /// none before.
    pub fn copy(&mut self, offset: usize) -> bool {
        let bit = 1 << (offset % WORD);
        let mut is_new = false;
        self.change_flags(offset / WORD, |flags| {
            is_new = flags.copied & bit == 0;
            flags.mapped &= !bit;
            flags.young &= !bit;
            flags.copied |= bit;
        });
        self.copied += u16::from(is_new);
        is_new
    }

    /// The words in which a page is mapped or copied.
    pub fn words_with_entries(&self) -> impl Iterator<Item = usize> {
        let mapped = |&word: &usize| {
            let flags = self.flags(word);
            flags.mapped | flags.copied != 0
        };
        (0..W).filter(mapped)
    }

    /// Removes the entries and private copies of the pages of `mask` in `word`.
    pub fn unmap(&mut self, word: usize, mask: u64) -> UnmappedPages {
        let unmap = |flags: &mut Flags| {
            let mapped = flags.mapped & mask;
            let (accessed, copied) = (flags.accessed(mask), flags.copied & mask);
            flags.mapped &= !mask;
            flags.young &= !mask;
            flags.copied &= !mask;
            UnmappedPages { mapped, accessed, copied }
        };
        let Some(unmapped) = self.change_known_flags(word, unmap) else {
            return UnmappedPages::default();
        };
        self.copied -= unmapped.copied.count_ones() as u16;
        if self.copied == 0 {
            self.flagged &= self.non_empty;
        }
        unmapped
    }

    /// Clears the folio orders of an empty chunk; it has no flags.
    pub fn forget(&mut self) {
        debug_assert!(self.is_empty() && self.non_empty == 0 && self.flagged == 0);
        self.orders.forget();
    }
}
