//! Pages of a file in words of 64, one bit per page.

use crate::units::PageIndex;

/// Pages in one word: as many as its bits.
pub const WORD_PAGES: u64 = u64::BITS as u64;

/// The bits of the pages `from..end` that lie in `word`.
pub fn word_mask(word: u64, from: PageIndex, end: PageIndex) -> u64 {
    let first = word * WORD_PAGES;
    let low = from.0.max(first);
    let high = end.0.min(first + WORD_PAGES);
    if low >= high {
        return 0;
    }
    let length = high - low;
    (u64::MAX >> (WORD_PAGES - length)) << (low - first)
}

/// The words that the pages `from..end` lie in.
pub fn words(from: PageIndex, end: PageIndex) -> std::ops::Range<u64> {
    if from >= end {
        return 0..0;
    }
    from.0 / WORD_PAGES..end.0.div_ceil(WORD_PAGES)
}

/// Splits the pages `from..end` by word: its number, and the bits of its pages.
#[inline]
pub fn by_word(from: PageIndex, end: PageIndex) -> impl Iterator<Item = (u64, u64)> {
    let mut next = from.0;
    std::iter::from_fn(move || {
        if next >= end.0 {
            return None;
        }
        let (word, low) = (next / WORD_PAGES, next % WORD_PAGES);
        let count = (end.0 - next).min(WORD_PAGES - low);
        next += count;
        Some((word, u64::MAX >> (WORD_PAGES - count) << low))
    })
}

/// The bits up to the one that is the `count`-th set in `mask`; `count` is at least 1 and at most
/// the number of set bits.
#[inline]
pub fn up_to_bit(mask: u64, count: u64) -> u64 {
    let mut rest = mask;
    for _ in 1..count {
        rest &= rest - 1;
    }
    let last = rest & rest.wrapping_neg();
    last | (last - 1)
}
