//! Ranges of pages by chunk and by word, and short lists of them.

use std::ops::Range;

use filemap_core::cache::WORD_PAGES;
use smallvec::SmallVec;

/// Words in a chunk.
pub const CHUNK_WORDS: usize = 64;

/// Words per chunk in tests, so that small files have many chunks.
pub const TINY_CHUNK_WORDS: usize = 2;

/// Pages in a chunk of `words` words.
pub const fn chunk_pages(words: usize) -> u64 {
    words as u64 * WORD_PAGES
}

/// A limit that is lowered to `least` for chunks with few words, so that tests reach it.
pub const fn limit(words: usize, usual: u64, least: u64) -> u64 {
    if words < CHUNK_WORDS { least } else { usual }
}

/// Consecutive pages of a chunk, as offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First page.
    pub from: usize,
    /// The page after the last; greater than `from`.
    pub end: usize,
}

/// The pages of a [`Span`] by word.
pub struct SpanWords {
    /// The first word, and the pages in it.
    pub first: (usize, u64),
    /// The words in between, one bit each; the span covers them.
    pub inner: u64,
    /// The last word and the pages in it, if it is not the first.
    pub last: Option<(usize, u64)>,
}

/// Pages in a word.
pub const WORD: usize = WORD_PAGES as usize;

impl Span {
    /// Number of pages.
    pub fn pages(self) -> usize {
        self.end - self.from
    }

    /// The words it touches, one bit each.
    pub fn words(self) -> u64 {
        u64::MAX << (self.from / WORD) & u64::MAX >> (63 - (self.end - 1) / WORD)
    }

    /// Its pages in `word`, which it has to touch.
    pub fn mask(self, word: usize) -> u64 {
        let low = self.from.max(word * WORD) % WORD;
        let last = (self.end - 1).min(word * WORD + WORD - 1) % WORD;
        u64::MAX << low & u64::MAX >> (WORD - 1 - last)
    }

    /// Its pages by word.
    pub fn by_word(self) -> SpanWords {
        let (first, last) = (self.from / WORD, (self.end - 1) / WORD);
        let from = u64::MAX << (self.from % WORD);
        let to = u64::MAX >> (WORD - 1 - (self.end - 1) % WORD);
        if first == last {
            return SpanWords { first: (first, from & to), inner: 0, last: None };
        }
        let inner = u64::MAX << first << 1 & !(u64::MAX << last);
        SpanWords { first: (first, from), inner, last: Some((last, to)) }
    }
}

impl SpanWords {
    /// Number of words between the first and the last.
    pub fn inner_words(&self) -> usize {
        self.last.map_or(0, |last| last.0 - self.first.0 - 1)
    }
}

/// The chunk of global page `from`, and the part of `from..end` in it.
#[inline]
pub fn first_span<const W: usize>(from: u64, end: u64) -> (u64, Span) {
    let number = from / chunk_pages(W);
    let first = number * chunk_pages(W);
    (
        number,
        Span { from: (from - first) as usize, end: (end - first).min(chunk_pages(W)) as usize },
    )
}

/// Splits the global pages `from..end` by chunk: its number and the pages in it.
pub fn by_chunk<const W: usize>(from: u64, end: u64) -> impl Iterator<Item = (u64, Span)> {
    let mut next = from;
    std::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        let (number, span) = first_span::<W>(next, end);
        next = (number + 1) * chunk_pages(W);
        Some((number, span))
    })
}

/// A list that stores up to four elements inline.
pub type ShortList<T> = SmallVec<[T; 4]>;

/// Replaces the elements `replaced` by `made`.
#[inline]
pub fn replace<T: Copy>(list: &mut ShortList<T>, replaced: Range<usize>, made: &[T]) {
    let common = replaced.len().min(made.len());
    list[replaced.start..replaced.start + common].copy_from_slice(&made[..common]);
    if made.len() > common {
        list.insert_from_slice(replaced.end, &made[common..]);
    } else if replaced.len() > common {
        list.drain(replaced.start + common..replaced.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_as_a_spliced_vector() {
        for length in 0..8_u8 {
            for start in 0..=length {
                for end in start..=length {
                    for made in 0..6_u8 {
                        let mut list: ShortList<u8> = (0..length).collect();
                        let mut vector = list.to_vec();
                        let new: Vec<u8> = (100..100 + made).collect();
                        let range = usize::from(start)..usize::from(end);
                        vector.splice(range.clone(), new.iter().copied());
                        replace(&mut list, range, &new);
                        assert_eq!(list[..], vector[..], "{length} {start}..{end} {made}");
                    }
                }
            }
        }
    }
}
