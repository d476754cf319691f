//! Pages locked for I/O.

use std::collections::VecDeque;

use filemap_core::cache::{WORD_PAGES, word_mask};
use filemap_core::units::PageIndex;

use super::file::locate;

/// Disjoint runs of locked pages, per file. Most files have one or two. A window interleaved with
/// cached pages can be thousands of runs, and hundreds of files can have some, so lookups must not
/// be linear in either.
#[derive(Debug)]
pub struct LockedPages {
    /// Per file, its runs in ascending order. They are added and removed near the ends, so few have
    /// to move.
    files: Vec<VecDeque<(u64, u64)>>,
    /// Number of files with locked pages.
    count: usize,
    /// Bounds of all locked pages. Most lookups are outside.
    span: (u64, u64),
}

/// Bounds without any locked page.
const EMPTY_SPAN: (u64, u64) = (u64::MAX, 0);

impl Default for LockedPages {
    fn default() -> Self {
        LockedPages { files: Vec::new(), count: 0, span: EMPTY_SPAN }
    }
}

impl LockedPages {
    /// Locks the unlocked pages `from..end` of a file.
    pub fn insert(&mut self, from: u64, end: u64) {
        let file = file_number(from);
        if file >= self.files.len() {
            self.files.resize_with(file + 1, VecDeque::new);
        }
        let runs = &mut self.files[file];
        self.count += usize::from(runs.is_empty());
        self.span = (self.span.0.min(from), self.span.1.max(end));
        let is_last = runs.back().is_none_or(|last| last.1 <= from);
        let place = if is_last { runs.len() } else { first_run_after(runs, from) };
        // Pages of one request form one run.
        if let Some(before) = place.checked_sub(1)
            && runs[before].1 == from
        {
            runs[before].1 = end;
        } else if place == runs.len() {
            runs.push_back((from, end));
        } else {
            runs.insert(place, (from, end));
        }
    }

    /// Unlocks the pages `from..end` of one run.
    pub fn remove(&mut self, from: u64, end: u64) {
        let runs = &mut self.files[file_number(from)];
        let is_first = runs.front().is_some_and(|first| first.0 == from);
        let place = if is_first { 0 } else { first_run_after(runs, from) };
        let run = &mut runs[place];
        debug_assert!(run.0 <= from && end <= run.1, "the pages are locked");
        match (run.0 < from, end < run.1) {
            (false, true) => run.0 = end,
            (true, false) => run.1 = from,
            (true, true) => {
                let last = std::mem::replace(&mut run.1, from);
                runs.insert(place + 1, (end, last));
            }
            (false, false) if place == 0 => drop(runs.pop_front()),
            (false, false) => drop(runs.remove(place)),
        }
        self.count -= usize::from(runs.is_empty());
        self.span = match (self.count, runs.front(), runs.back()) {
            (0, ..) => EMPTY_SPAN,
            (1, Some(first), Some(last)) => (first.0, last.1),
            _ => self.span,
        };
    }

    /// The runs of the file that `page` belongs to.
    fn runs(&self, page: u64) -> Option<&VecDeque<(u64, u64)>> {
        self.files.get(file_number(page))
    }

    /// The first run in its file that ends after `page`.
    fn run(&self, page: u64) -> Option<(u64, u64)> {
        let runs = self.runs(page)?;
        let first = *runs.front()?;
        if page < first.1 { Some(first) } else { runs.get(first_run_after(runs, page)).copied() }
    }

    /// Whether any of the pages `from..end` is locked.
    #[inline]
    pub fn any(&self, from: u64, end: u64) -> bool {
        self.is_near(from, end) && self.has_locked(from, end)
    }

    /// The first of the pages `from..end` that is locked, or `end`.
    #[inline(always)]
    pub fn next(&self, from: u64, end: u64) -> u64 {
        if self.is_near(from, end) { self.next_locked(from, end) } else { end }
    }

    #[inline(never)]
    fn next_locked(&self, from: u64, end: u64) -> u64 {
        self.run(from).map_or(end, |run| run.0.clamp(from, end))
    }

    /// The end of the run that contains the locked page `page`.
    pub fn run_end(&self, page: u64) -> u64 {
        self.run(page).expect("the page is locked").1
    }

    /// The locked pages of `word`.
    #[inline]
    pub fn mask(&self, word: u64) -> u64 {
        let (first, end) = (word * WORD_PAGES, (word + 1) * WORD_PAGES);
        if self.is_near(first, end) { self.word_locked_mask(word, first, end) } else { 0 }
    }

    // Unpredictable branches: both conditions are evaluated.
    fn is_near(&self, from: u64, end: u64) -> bool {
        (from < self.span.1) & (self.span.0 < end)
    }

    // Out of line: most calls return earlier.
    #[inline(never)]
    fn has_locked(&self, from: u64, end: u64) -> bool {
        self.run(from).is_some_and(|run| run.0 < end)
    }

    #[inline(never)]
    fn word_locked_mask(&self, word: u64, first: u64, end: u64) -> u64 {
        let Some(of_file) = self.runs(first) else { return 0 };
        let runs = of_file.range(first_run_after(of_file, first)..).take_while(|run| run.0 < end);
        runs.fold(0, |mask, run| mask | word_mask(word, PageIndex(run.0), PageIndex(run.1)))
    }
}

/// Position of the first run that ends after `page`.
fn first_run_after(runs: &VecDeque<(u64, u64)>, page: u64) -> usize {
    runs.partition_point(|run| run.1 <= page)
}

fn file_number(page: u64) -> usize {
    locate(page).0.number()
}
