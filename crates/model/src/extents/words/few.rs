//! Words of a chunk as runs of pages that are alike.

use std::ops::Range;

use super::super::lists::bits;
use super::super::short_list::{ShortList, replace};
use super::super::span::{Span, WORD, limit};
use super::{Counted, Word};

/// Pages of a chunk that lie one after the other and are alike: the first, one less than their
/// number, and one bit for each of [`Word::masks`]; highest bits first.
#[derive(Clone, Copy, Debug)]
pub struct Run(u32);

impl Run {
    #[inline]
    fn new(first: u32, end: u32, kinds: u32) -> Run {
        Run(first << 20 | (end - 1 - first) << 8 | kinds)
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
    fn kinds(self) -> u32 {
        self.0 & 0xff
    }

    #[inline]
    fn span(self) -> Span {
        Span { from: self.first() as usize, end: self.end() as usize }
    }
}

/// Room for so many runs.
const ROOM: usize = 20;

/// Pages that are anything at all, in order. Words of which nothing is kept are anything.
#[derive(Debug, Default)]
pub struct Few<const W: usize>(ShortList<Run>);

impl<const W: usize> Few<W> {
    /// Where there would be more runs, the words are kept one by one.
    const MOST_RUNS: usize = limit(W, ROOM as u64, 4) as usize;

    /// No page is anything.
    pub const NONE: Few<W> = Few(ShortList::new_const());

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

    /// How many words from `number` on are known to be alike, all pages of each.
    #[inline]
    pub fn alike(&self, number: usize) -> usize {
        let from = (number * WORD) as u32;
        let run = self.0.iter().find(|run| run.end() > from);
        run.filter(|run| run.first() <= from).map_or(0, |run| run.end() as usize / WORD - number)
    }

    /// Bytes of memory that they take beside themselves.
    pub fn held_bytes(&self) -> u64 {
        if self.0.spilled() { (self.0.capacity() * size_of::<Run>()) as u64 } else { 0 }
    }

    /// No page is anything any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Puts a word, or several whose pages are all alike. What is kept of words that are not `used`
    /// counts no more. Where there would be too many runs it returns all words instead.
    #[inline(never)]
    pub fn put(&mut self, numbers: Range<usize>, word: &Word, used: Counted) -> Option<[Word; W]> {
        let runs = &mut self.0;
        let (from, end) = ((numbers.start * WORD) as u32, (numbers.end * WORD) as u32);
        // Those that lie in the words, or reach up to them.
        let first = runs.iter().take_while(|run| run.end() < from).count();
        let reach = runs[first..].iter().take_while(|run| run.first() <= end);
        let touched = first..first + reach.count();
        let mut made = Made { runs: [Run(0); ROOM], count: 0 };
        if let Some(run) = runs[touched.clone()].first().filter(|run| run.first() < from) {
            made.push(Run::new(run.first(), run.end().min(from), run.kinds()));
        }
        runs_of(from..end, word).for_each(|run| made.push(run));
        if let Some(run) = runs[touched.clone()].last().filter(|run| run.end() > end) {
            made.push(Run::new(run.first().max(end), run.end(), run.kinds()));
        }
        let count = runs.len() - touched.len() + made.count;
        if count > Self::MOST_RUNS.min(runs.capacity()) {
            // There may be some that count no more.
            let before = runs.len();
            let counts = used.flagged | used.partial;
            runs.retain(|run| run.span().words() & counts != 0);
            if runs.len() < before {
                return self.put(numbers, word, used);
            }
            if count > Self::MOST_RUNS {
                let mut words = std::array::from_fn(|number| self.word(number));
                words[numbers].fill(*word);
                return Some(words);
            }
        }
        replace(runs, touched, &made.runs[..made.count]);
        None
    }
}

/// Runs in order.
struct Made {
    runs: [Run; ROOM],
    /// How many there are, even if there is no room for all of them.
    count: usize,
}

impl Made {
    /// Adds a run after the others, to the last where it goes on with that.
    #[inline]
    fn push(&mut self, run: Run) {
        if let Some(last) = self.count.checked_sub(1).and_then(|last| self.runs.get_mut(last))
            && (last.end(), last.kinds()) == (run.first(), run.kinds())
        {
            *last = Run::new(last.first(), run.end(), run.kinds());
            return;
        }
        if let Some(room) = self.runs.get_mut(self.count) {
            *room = run;
        }
        self.count += 1;
    }
}

/// The runs of pages of a word that are anything, at `at`: several words where all of its pages
/// are alike.
fn runs_of(at: Range<u32>, word: &Word) -> impl Iterator<Item = Run> {
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
        left &= !(bits(pages) << first);
        let kinds =
            masks.iter().rev().fold(0, |kinds, mask| kinds << 1 | (mask >> first & 1) as u32);
        let end = if pages == u64::BITS { at.end } else { at.start + first + pages };
        Some(Run::new(at.start + first, end, kinds))
    })
}
