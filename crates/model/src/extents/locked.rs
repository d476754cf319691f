//! Pages that are still being read.

use std::collections::VecDeque;

use filemap_core::cache::{WORD_PAGES, word_mask};
use filemap_core::units::PageIndex;

/// Runs of locked pages, no two of which overlap. Most often there are one or two. A window that
/// meets cached pages again and again is thousands of runs, so that looking one up must not cost
/// by their number.
#[derive(Debug)]
pub struct Locked {
    /// Each run's first page and the one behind it, in the order of pages. They are added and
    /// removed near the ends, so that few have to move.
    runs: VecDeque<(u64, u64)>,
    /// No locked page lies before the first of these or from the second on; most pages that are
    /// asked for do.
    span: (u64, u64),
}

/// The span of no page.
const NOTHING: (u64, u64) = (u64::MAX, 0);

impl Default for Locked {
    fn default() -> Self {
        Locked { runs: VecDeque::new(), span: NOTHING }
    }
}

impl Locked {
    /// Locks the pages `from..end`, none of which is locked.
    pub fn insert(&mut self, from: u64, end: u64) {
        let place = if self.span.1 <= from { self.runs.len() } else { self.behind(from) };
        self.span = (self.span.0.min(from), self.span.1.max(end));
        // What one request reads is one run.
        if let Some(before) = place.checked_sub(1)
            && self.runs[before].1 == from
        {
            self.runs[before].1 = end;
        } else if place == self.runs.len() {
            self.runs.push_back((from, end));
        } else {
            self.runs.insert(place, (from, end));
        }
    }

    /// Unlocks the pages `from..end` of one run.
    pub fn remove(&mut self, from: u64, end: u64) {
        let place = if self.span.0 == from { 0 } else { self.behind(from) };
        let run = &mut self.runs[place];
        debug_assert!(run.0 <= from && end <= run.1, "the pages are locked");
        match (run.0 < from, end < run.1) {
            (false, true) => run.0 = end,
            (true, false) => run.1 = from,
            (true, true) => {
                let last = std::mem::replace(&mut run.1, from);
                self.runs.insert(place + 1, (end, last));
            }
            (false, false) if place == 0 => drop(self.runs.pop_front()),
            (false, false) => drop(self.runs.remove(place)),
        }
        self.span = match (self.runs.front(), self.runs.back()) {
            (Some(first), Some(last)) => (first.0, last.1),
            _ => NOTHING,
        };
    }

    /// The place of the first run that ends behind `page`.
    fn behind(&self, page: u64) -> usize {
        self.runs.partition_point(|run| run.1 <= page)
    }

    /// Whether any of the pages `from..end` is locked.
    #[inline]
    pub fn any(&self, from: u64, end: u64) -> bool {
        self.is_near(from, end) && (self.runs.len() == 1 || self.holds_any(from, end))
    }

    /// The first of the pages `from..end` that is locked, or `end`.
    #[inline(always)]
    pub fn next(&self, from: u64, end: u64) -> u64 {
        if self.is_near(from, end) { self.next_of_some(from, end) } else { end }
    }

    #[inline(never)]
    fn next_of_some(&self, from: u64, end: u64) -> u64 {
        let run = self.runs.get(self.behind(from));
        run.map_or(end, |run| run.0.clamp(from, end))
    }

    /// The page behind the run of locked pages that `page` is in, which is locked.
    pub fn run_end(&self, page: u64) -> u64 {
        self.runs[self.behind(page)].1
    }

    /// The locked pages of `word`.
    #[inline]
    pub fn mask(&self, word: u64) -> u64 {
        let (first, end) = (word * WORD_PAGES, (word + 1) * WORD_PAGES);
        if self.is_near(first, end) { self.mask_of(word, first, end) } else { 0 }
    }

    // Which of the two fails cannot be predicted, so both are computed.
    fn is_near(&self, from: u64, end: u64) -> bool {
        (from < self.span.1) & (self.span.0 < end)
    }

    // Most calls do not come this far, and stay small without it.
    #[inline(never)]
    fn holds_any(&self, from: u64, end: u64) -> bool {
        self.runs.get(self.behind(from)).is_some_and(|run| run.0 < end)
    }

    #[inline(never)]
    fn mask_of(&self, word: u64, first: u64, end: u64) -> u64 {
        let runs = self.runs.range(self.behind(first)..).take_while(|run| run.0 < end);
        runs.fold(0, |mask, run| mask | word_mask(word, PageIndex(run.0), PageIndex(run.1)))
    }
}
