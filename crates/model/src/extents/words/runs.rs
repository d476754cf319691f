//! Words of a chunk as runs of pages with equal state.

use std::ops::Range;

use super::super::lists::low_bits;
use super::super::span::{ShortList, replace};
use super::super::span::{Span, WORD, limit};
use super::{LiveWords, Word};

/// Consecutive pages with equal state, packed from the highest bits: first page, length minus one,
/// and one bit for each of [`Word::masks`].
#[derive(Clone, Copy, Debug)]
pub struct FlagRun(u32);

impl FlagRun {
    #[inline]
    fn new(first: u32, end: u32, kinds: u32) -> FlagRun {
        FlagRun(first << 20 | (end - 1 - first) << 8 | kinds)
    }

    #[inline]
    fn first(self) -> u32 {
        self.0 >> 20
    }

    /// The page after the last.
    #[inline]
    fn end(self) -> u32 {
        self.first() + (self.0 >> 8 & 0xfff) + 1
    }

    #[inline]
    fn masks(self) -> u32 {
        self.0 & 0xff
    }

    #[inline]
    fn span(self) -> Span {
        Span { from: self.first() as usize, end: self.end() as usize }
    }
}

/// Capacity of the run buffer.
const RUN_CAPACITY: usize = 20;

/// Runs of pages with any bit set, in order. Words that are not live may have arbitrary runs.
#[derive(Debug, Default)]
pub struct PageRuns<const W: usize>(ShortList<FlagRun>);

impl<const W: usize> PageRuns<W> {
    /// Maximum number of runs; beyond it all words are stored.
    const MAX_RUNS: usize = limit(W, RUN_CAPACITY as u64, 4) as usize;

    /// No runs.
    pub const EMPTY: PageRuns<W> = PageRuns(ShortList::new_const());

    /// Word `number`.
    #[inline(never)]
    pub fn word(&self, number: usize) -> Word {
        let mut word = Word::default();
        let (from, end) = ((number * WORD) as u32, (number * WORD + WORD) as u32);
        let of_word = self.0.iter().skip_while(|run| run.end() <= from);
        for run in of_word.take_while(|run| run.first() < end) {
            let mask = run.span().mask(number);
            for (bit, of_word) in word.masks_mut().into_iter().enumerate() {
                *of_word |= if run.0 >> bit & 1 == 1 { mask } else { 0 };
            }
        }
        word
    }

    /// Number of words from `number` on that are known to be uniform and equal.
    #[inline]
    pub fn uniform_words(&self, number: usize) -> usize {
        let from = (number * WORD) as u32;
        let run = self.0.iter().find(|run| run.end() > from);
        run.filter(|run| run.first() <= from).map_or(0, |run| run.end() as usize / WORD - number)
    }

    /// Heap memory used, in bytes.
    pub fn held_bytes(&self) -> u64 {
        if self.0.spilled() { (self.0.capacity() * size_of::<FlagRun>()) as u64 } else { 0 }
    }

    /// Removes all runs.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Stores a word, or several uniform ones. Runs outside of `used` words may be dropped. Returns
    /// all words if there would be too many runs.
    #[inline(never)]
    pub fn set_words(
        &mut self,
        numbers: Range<usize>,
        word: &Word,
        used: LiveWords,
    ) -> Option<[Word; W]> {
        let runs = &mut self.0;
        let (from, end) = ((numbers.start * WORD) as u32, (numbers.end * WORD) as u32);
        // Runs that overlap or touch the words.
        let first = runs.iter().take_while(|run| run.end() < from).count();
        let reach = runs[first..].iter().take_while(|run| run.first() <= end);
        let touched = first..first + reach.count();
        let mut made = RunBuffer { runs: [FlagRun(0); RUN_CAPACITY], count: 0 };
        if let Some(run) = runs[touched.clone()].first().filter(|run| run.first() < from) {
            made.push(FlagRun::new(run.first(), run.end().min(from), run.masks()));
        }
        word_runs(from..end, word).for_each(|run| made.push(run));
        if let Some(run) = runs[touched.clone()].last().filter(|run| run.end() > end) {
            made.push(FlagRun::new(run.first().max(end), run.end(), run.masks()));
        }
        let count = runs.len() - touched.len() + made.count;
        if count > Self::MAX_RUNS.min(runs.capacity()) {
            // Some runs may be outside of live words.
            let before = runs.len();
            let counts = used.flagged | used.partial;
            runs.retain(|run| run.span().words() & counts != 0);
            if runs.len() < before {
                return self.set_words(numbers, word, used);
            }
            if count > Self::MAX_RUNS {
                let mut words = std::array::from_fn(|number| self.word(number));
                words[numbers].fill(*word);
                return Some(words);
            }
        }
        replace(runs, touched, &made.runs[..made.count]);
        None
    }
}

/// A buffer of runs in order.
struct RunBuffer {
    runs: [FlagRun; RUN_CAPACITY],
    /// Number of runs, which may exceed the capacity.
    count: usize,
}

impl RunBuffer {
    /// Appends a run, merging it with the last one if possible.
    #[inline]
    fn push(&mut self, run: FlagRun) {
        if let Some(last) = self.count.checked_sub(1).and_then(|last| self.runs.get_mut(last))
            && (last.end(), last.masks()) == (run.first(), run.masks())
        {
            *last = FlagRun::new(last.first(), run.end(), run.masks());
            return;
        }
        if let Some(room) = self.runs.get_mut(self.count) {
            *room = run;
        }
        self.count += 1;
    }
}

/// The runs of a word, located at `at`; a uniform word may stand for several.
fn word_runs(at: Range<u32>, word: &Word) -> impl Iterator<Item = FlagRun> {
    let masks = word.masks();
    let any = masks.iter().fold(0, |any, mask| any | mask);
    let mut left = any;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let first = left.trailing_zeros();
        let unlike = |mask: &u64| mask ^ (mask >> first & 1).wrapping_neg();
        let others = masks.iter().fold(!any, |others, mask| others | unlike(mask)) >> first;
        let pages = others.trailing_zeros().min(u64::BITS - first);
        left &= !(low_bits(pages) << first);
        let kinds =
            masks.iter().rev().fold(0, |kinds, mask| kinds << 1 | (mask >> first & 1) as u32);
        let end = if pages == u64::BITS { at.end } else { at.start + first + pages };
        Some(FlagRun::new(at.start + first, end, kinds))
    })
}
