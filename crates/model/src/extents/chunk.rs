//! 2048 pages of a file.

use filemap_core::address::entries::Unmapped;
use filemap_core::cache::WORD_PAGES;
use filemap_core::units::Order;

use super::orders::Orders;
use super::shadows::Evicted;
use super::span::Span;

pub use super::span::{CHUNK_PAGES, CHUNK_WORDS};

/// What 64 pages are, one bit a page. An absent page is nothing but `copied`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub marked: u64,
    pub workingset: u64,
    pub mapped: u64,
    pub young: u64,
    pub referenced: u64,
    pub active: u64,
    pub copied: u64,
}

/// The flags of pages that have none.
const PLAIN: Flags =
    Flags { marked: 0, workingset: 0, mapped: 0, young: 0, referenced: 0, active: 0, copied: 0 };

impl Flags {
    /// Forgets the cached pages of `mask`.
    fn clear(&mut self, mask: u64) {
        let keep = !mask;
        self.marked &= keep;
        self.workingset &= keep;
        self.mapped &= keep;
        self.young &= keep;
        self.referenced &= keep;
        self.active &= keep;
    }

    /// The pages of `mask` whose entries were accessed.
    pub fn accessed(&self, mask: u64) -> u64 {
        self.mapped & self.young & mask
    }
}

/// 64 pages, in a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Word {
    present: u64,
    flags: Flags,
}

/// 2048 pages. Most words are empty, or full of pages without a flag, and become one from the
/// other without a look at them: the bits that say so lie side by side, one for each word.
#[derive(Debug)]
pub struct Chunk {
    /// Words of which a page is cached.
    some: u32,
    /// Words of which every page is cached. `present` counts in the words that are neither full
    /// nor empty; in others it is anything.
    full: u32,
    /// Words in which a page may have a flag. `flags` count in those; in others they are anything.
    flagged: u32,
    /// Cached pages.
    pages: u16,
    /// Private copies.
    copied: u16,
    /// Its evictions.
    pub evicted: Evicted,
    orders: Orders,
    words: Box<[Word; CHUNK_WORDS]>,
}

const WORD: usize = WORD_PAGES as usize;

impl Default for Chunk {
    fn default() -> Self {
        Chunk {
            some: 0,
            full: 0,
            flagged: 0,
            pages: 0,
            copied: 0,
            evicted: Evicted::default(),
            orders: Orders::default(),
            words: Box::new([Word::default(); CHUNK_WORDS]),
        }
    }
}

impl Chunk {
    /// Whether the page at `offset` is cached.
    pub fn has(&self, offset: usize) -> bool {
        self.present(offset / WORD) >> (offset % WORD) & 1 == 1
    }

    /// The cached pages of `word`.
    pub fn present(&self, word: usize) -> u64 {
        let bit = 1 << word;
        if self.full & bit != 0 {
            return u64::MAX;
        }
        if self.some & bit != 0 { self.words[word].present } else { 0 }
    }

    /// Whether it is known of the pages of `word` that all or none of them are cached, in folios of
    /// one page and without a flag.
    #[inline]
    pub fn is_even(&self, word: usize) -> bool {
        (self.flagged | self.orders.large_words() | self.some ^ self.full) >> word & 1 == 0
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
    pub fn flags(&self, word: usize) -> &Flags {
        self.some_flags(word).unwrap_or(&PLAIN)
    }

    /// The flags of the pages of `word`; `None` where it is known that they have none.
    #[inline]
    pub fn some_flags(&self, word: usize) -> Option<&Flags> {
        (self.flagged >> word & 1 == 1).then(|| &self.words[word].flags)
    }

    /// The flags of the pages of `word`, to be changed; `None` where it is known that they have
    /// none.
    #[inline]
    pub fn some_flags_mut(&mut self, word: usize) -> Option<&mut Flags> {
        (self.flagged >> word & 1 == 1).then(|| &mut self.words[word].flags)
    }

    /// The flags of the pages of `word`, to be changed.
    pub fn flags_mut(&mut self, word: usize) -> &mut Flags {
        if self.flagged >> word & 1 == 0 {
            self.flagged |= 1 << word;
            self.words[word].flags = PLAIN;
        }
        &mut self.words[word].flags
    }

    /// Order of the folio that the page at `offset` is in; meaningless for an absent page.
    pub fn order(&self, offset: usize) -> Order {
        self.orders.of(offset)
    }

    /// Whether it keeps the order of each page.
    pub fn keeps_orders(&self) -> bool {
        self.orders.are_kept()
    }

    /// The pages of `word` that are in large folios.
    pub fn large(&self, word: usize) -> u64 {
        self.orders.large(word) & self.present(word)
    }

    /// The base pages of `word` that are cached and have no mark.
    pub fn plain(&self, word: usize) -> u64 {
        let marked = self.some_flags(word).map_or(0, |flags| flags.marked);
        self.present(word) & !marked & !self.orders.large(word)
    }

    /// The first page of `span` that is cached, or the first that is not.
    pub fn find(&self, span: Span, cached: bool) -> Option<usize> {
        let first = span.from / WORD;
        let pages = |word: usize| if cached { self.present(word) } else { !self.present(word) };
        let of_first = pages(first) >> (span.from % WORD);
        let found = if of_first != 0 {
            span.from + of_first.trailing_zeros() as usize
        } else {
            let behind = if cached { self.some } else { !self.full } & u32::MAX << first << 1;
            if behind == 0 {
                return None;
            }
            let word = behind.trailing_zeros() as usize;
            word * WORD + pages(word).trailing_zeros() as usize
        };
        (found < span.end).then_some(found)
    }

    /// The first page of `span` whose entry was accessed.
    // One call, in what evicts spans by the million.
    #[inline(always)]
    pub fn first_accessed(&self, span: Span) -> Option<usize> {
        self.first_flagged(span, |flags| flags.accessed(u64::MAX))
    }

    /// The end of the pages of `span` that have the workingset flag as its first page has it, and
    /// whether that has it.
    #[inline(always)]
    pub fn workingset_until(&self, span: Span) -> (usize, bool) {
        let Some(first) = self.first_flagged(span, |flags| flags.workingset) else {
            return (span.end, false);
        };
        if first > span.from {
            return (first, false);
        }
        let word = first / WORD;
        let unlike = !(self.words[word].flags.workingset >> (first % WORD));
        ((first + unlike.trailing_zeros() as usize).min(word * WORD + WORD).min(span.end), true)
    }

    /// The first page of `span` with the flag that `of` takes.
    #[inline(always)]
    fn first_flagged(&self, span: Span, of: impl Fn(&Flags) -> u64) -> Option<usize> {
        let mut flagged = self.flagged & span.words();
        while flagged != 0 {
            let word = flagged.trailing_zeros() as usize;
            let pages = of(&self.words[word].flags) & span.mask(word);
            if pages != 0 {
                return Some(word * WORD + pages.trailing_zeros() as usize);
            }
            flagged &= flagged - 1;
        }
        None
    }

    /// Adds the pages of `span`, all of them absent, in folios of `order`. Returns how many words
    /// had no page.
    // Its callers are few, and add spans by the million.
    #[inline(always)]
    pub fn add(&mut self, span: Span, order: Order) -> u64 {
        self.orders.set(span, order);
        let parts = span.parts();
        self.some |= parts.inner;
        self.full |= parts.inner;
        self.pages += span.pages() as u16;
        let mut were_empty = parts.inner_words() as u64 + self.add_in(parts.first);
        if let Some(last) = parts.last {
            were_empty += self.add_in(last);
        }
        were_empty
    }

    /// The pages of `span`, all of them present, leave the cache. Returns how many words are left
    /// without one.
    // Its callers are few, and evict spans by the million.
    #[inline(always)]
    pub fn remove(&mut self, span: Span) -> u64 {
        let parts = span.parts();
        self.some &= !parts.inner;
        self.full &= !parts.inner;
        self.pages -= span.pages() as u16;
        let mut empty = parts.inner_words() as u64 + self.remove_in(parts.first);
        if let Some(last) = parts.last {
            empty += self.remove_in(last);
        }
        if self.copied == 0 {
            self.flagged &= self.some;
        } else {
            self.clear_words(parts.inner);
        }
        empty
    }

    /// The mapped pages of a span.
    #[inline]
    pub fn mapped(&self, span: Span) -> u64 {
        let mut flagged = self.flagged & span.words();
        let mut mapped = 0;
        while flagged != 0 {
            let word = flagged.trailing_zeros() as usize;
            mapped += u64::from((self.words[word].flags.mapped & span.mask(word)).count_ones());
            flagged &= flagged - 1;
        }
        mapped
    }

    /// Notes a private copy of the page at `offset`, which is no longer mapped.
    pub fn copy(&mut self, offset: usize) {
        self.copied += 1;
        let bit = 1 << (offset % WORD);
        let flags = self.flags_mut(offset / WORD);
        flags.mapped &= !bit;
        flags.young &= !bit;
        flags.copied |= bit;
    }

    /// The words in which a page is mapped or copied.
    pub fn words_with_entries(&self) -> impl Iterator<Item = usize> {
        let mapped = |&word: &usize| {
            let flags = self.flags(word);
            flags.mapped | flags.copied != 0
        };
        (0..CHUNK_WORDS).filter(mapped)
    }

    /// Takes away the entries and private copies of the pages of `mask` in `word`.
    pub fn unmap(&mut self, word: usize, mask: u64) -> Unmapped {
        if self.flagged >> word & 1 == 0 {
            return Unmapped::default();
        }
        let flags = &mut self.words[word].flags;
        let mapped = flags.mapped & mask;
        let (accessed, copied) = (flags.accessed(mask), flags.copied & mask);
        let unmapped = Unmapped { mapped, accessed, copied };
        flags.mapped &= !mask;
        flags.young &= !mask;
        flags.copied &= !mask;
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

    /// Adds absent pages to a word; returns 1 where it had none.
    #[inline(always)]
    fn add_in(&mut self, (word, pages): (usize, u64)) -> u64 {
        let bit = 1 << word;
        let was_empty = self.some & bit == 0;
        let of_word = &mut self.words[word];
        of_word.present = if was_empty { pages } else { of_word.present | pages };
        self.some |= bit;
        if of_word.present == u64::MAX {
            self.full |= bit;
        }
        u64::from(was_empty)
    }

    /// Removes cached pages from a word; returns 1 where it has none left.
    #[inline(always)]
    fn remove_in(&mut self, (word, pages): (usize, u64)) -> u64 {
        let bit = 1 << word;
        let of_word = &mut self.words[word];
        let present = if self.full & bit == 0 { of_word.present } else { u64::MAX };
        of_word.present = present & !pages;
        self.full &= !bit;
        if self.flagged & bit != 0 {
            of_word.flags.clear(pages);
        }
        let is_empty = of_word.present == 0;
        if is_empty {
            self.some &= !bit;
        }
        u64::from(is_empty)
    }

    /// Forgets the cached pages of `words`, whole words.
    fn clear_words(&mut self, words: u32) {
        let mut flagged = self.flagged & words;
        while flagged != 0 {
            self.words[flagged.trailing_zeros() as usize].flags.clear(u64::MAX);
            flagged &= flagged - 1;
        }
    }
}
