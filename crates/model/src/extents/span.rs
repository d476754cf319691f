//! Ranges of pages by chunk and by word.

use filemap_core::cache::WORD_PAGES;

/// Words in a chunk.
pub const CHUNK_WORDS: usize = 64;

/// Words in a chunk of tests, whose small files then have many.
pub const FEW_WORDS: usize = 2;

/// Pages in a chunk of so many words.
pub const fn pages_of(words: usize) -> u64 {
    words as u64 * WORD_PAGES
}

/// A limit that is `usual`, and `least` where chunks have fewer words, so that tests reach it.
pub const fn limit(words: usize, usual: u64, least: u64) -> u64 {
    if words < CHUNK_WORDS { least } else { usual }
}

/// Pages of one chunk, counted from its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First page.
    pub from: usize,
    /// The page after the last; not `from`.
    pub end: usize,
}

/// The pages of a [`Span`] by word.
pub struct Parts {
    /// The first word, and the pages in it.
    pub first: (usize, u64),
    /// The words between the first and the last, one bit each: the span covers them.
    pub inner: u64,
    /// The last word, where it is another than the first.
    pub last: Option<(usize, u64)>,
}

/// Pages in a word.
pub const WORD: usize = WORD_PAGES as usize;

impl Span {
    /// How many pages.
    pub fn pages(self) -> usize {
        self.end - self.from
    }

    /// The words that it lies in, one bit each.
    pub fn words(self) -> u64 {
        u64::MAX << (self.from / WORD) & u64::MAX >> (63 - (self.end - 1) / WORD)
    }

    /// Its pages in `word`, which it lies in.
    pub fn mask(self, word: usize) -> u64 {
        let low = self.from.max(word * WORD) % WORD;
        let last = (self.end - 1).min(word * WORD + WORD - 1) % WORD;
        u64::MAX << low & u64::MAX >> (WORD - 1 - last)
    }

    /// Its pages by word.
    pub fn parts(self) -> Parts {
        let (first, last) = (self.from / WORD, (self.end - 1) / WORD);
        let from = u64::MAX << (self.from % WORD);
        let to = u64::MAX >> (WORD - 1 - (self.end - 1) % WORD);
        if first == last {
            return Parts { first: (first, from & to), inner: 0, last: None };
        }
        let inner = u64::MAX << first << 1 & !(u64::MAX << last);
        Parts { first: (first, from), inner, last: Some((last, to)) }
    }
}

impl Parts {
    /// How many words the span covers between the first and the last.
    pub fn inner_words(&self) -> usize {
        self.last.map_or(0, |last| last.0 - self.first.0 - 1)
    }
}

/// The chunk of `W` words that page `from` of a row lies in, and the pages `from..end` there.
#[inline]
pub fn first_span<const W: usize>(from: u64, end: u64) -> (u64, Span) {
    let number = from / pages_of(W);
    let first = number * pages_of(W);
    (number, Span { from: (from - first) as usize, end: (end - first).min(pages_of(W)) as usize })
}

/// The pages `from..end` of a row by chunk of `W` words: its number, and the pages in it.
pub fn by_chunk<const W: usize>(from: u64, end: u64) -> impl Iterator<Item = (u64, Span)> {
    let mut next = from;
    std::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        let (number, span) = first_span::<W>(next, end);
        next = (number + 1) * pages_of(W);
        Some((number, span))
    })
}
