//! Pages that are still being read.

use std::collections::VecDeque;

use filemap_core::cache::{WORD_PAGES, word_mask};
use filemap_core::units::PageIndex;

use super::file::locate;

/// Locked pages of all files. Each file has its own runs: what is locked in others costs nothing.
#[derive(Debug, Default)]
pub struct Locked {
    files: Vec<OfFile>,
}

impl Locked {
    /// Locks the pages `from..end` of a file, none of which is locked.
    pub fn insert(&mut self, from: u64, end: u64) {
        self.of_mut(from).insert(from, end);
    }

    /// Locks the pages `from..end` of a file, none of which is locked, as a run that continues no
    /// other: it may be unlocked before those that were locked before.
    pub fn insert_apart(&mut self, from: u64, end: u64) {
        self.of_mut(from).insert_apart(from, end);
    }

    /// Unlocks the pages `from..end` of one run: most often what the run begins with that was
    /// locked first of those that still are.
    pub fn remove(&mut self, from: u64, end: u64) {
        self.of_mut(from).remove(from, end);
    }

    /// Whether any of the pages `from..end` of a file is locked.
    #[inline]
    pub fn any(&self, from: u64, end: u64) -> bool {
        self.files.get(number(from)).is_some_and(|file| file.any(from, end))
    }

    /// The locked pages of `word`.
    #[inline]
    pub fn mask(&self, word: u64) -> u64 {
        self.files.get(number(word * WORD_PAGES)).map_or(0, |file| file.mask(word))
    }

    fn of_mut(&mut self, page: u64) -> &mut OfFile {
        let number = number(page);
        if number >= self.files.len() {
            self.files.resize_with(number + 1, OfFile::default);
        }
        &mut self.files[number]
    }
}

fn number(page: u64) -> usize {
    locate(page).0.number()
}

/// Runs of locked pages, no two of which overlap. A window that meets cached pages again and again
/// is thousands of runs, so that looking one up must not cost by their number.
///
/// Runs of one device are unlocked in the order in which they were locked.
#[derive(Debug)]
struct OfFile {
    /// Each run's first page and the one behind it, in streaks that ascend in the file. There are
    /// at most as many streaks as windows under way.
    streaks: Vec<VecDeque<(u64, u64)>>,
    /// No locked page lies before the first of these or from the second on; most pages that are
    /// asked for do.
    span: (u64, u64),
}

/// The span of no page.
const NOTHING: (u64, u64) = (u64::MAX, 0);

impl Default for OfFile {
    fn default() -> Self {
        OfFile { streaks: Vec::new(), span: NOTHING }
    }
}

impl OfFile {
    /// Locks the pages `from..end`, none of which is locked.
    fn insert(&mut self, from: u64, end: u64) {
        self.span = (self.span.0.min(from), self.span.1.max(end));
        // Of the streaks that it continues, that which leaves the others the most room: windows
        // that tasks begin in turn, each in a place of its own, are as many streaks as tasks.
        let back = |streak: &VecDeque<(u64, u64)>| streak.back().map_or(0, |last| last.1);
        let continued = self.streaks.iter_mut().filter(|streak| back(streak) <= from);
        match continued.max_by_key(|streak| back(streak)) {
            // What one request reads is one run.
            Some(streak) => match streak.back_mut() {
                Some(last) if last.1 == from => last.1 = end,
                _ => streak.push_back((from, end)),
            },
            None => self.streaks.push(VecDeque::from([(from, end)])),
        }
    }

    /// Locks the pages `from..end`, none of which is locked, as a run that continues no other: it
    /// may be unlocked before those that were locked before.
    fn insert_apart(&mut self, from: u64, end: u64) {
        self.span = (self.span.0.min(from), self.span.1.max(end));
        self.streaks.push(VecDeque::from([(from, end)]));
    }

    /// Unlocks the pages `from..end` of one run: most often what the run begins with that was
    /// locked first of those that still are.
    fn remove(&mut self, from: u64, end: u64) {
        let first = self.streaks.first().expect("a run is locked");
        let is_first = first.front().is_some_and(|run| run.0 == from);
        let (number, place) =
            if is_first { (0, 0) } else { self.find(from).expect("the run is locked") };
        let streak = &mut self.streaks[number];
        let run = streak[place];
        match (run.0 < from, end < run.1) {
            (false, false) => drop(streak.remove(place)),
            (false, true) => streak[place].0 = end,
            (true, false) => streak[place].1 = from,
            (true, true) => {
                streak[place].1 = from;
                streak.insert(place + 1, (end, run.1));
            }
        }
        if streak.is_empty() && self.streaks.len() > 1 {
            self.streaks.remove(number);
        }
        // With one window on its way behind the other, there is always a locked page.
        self.span = self.streaks.iter().fold(NOTHING, |span, streak| {
            match (streak.front(), streak.back()) {
                (Some(first), Some(last)) => (span.0.min(first.0), span.1.max(last.1)),
                _ => span,
            }
        });
    }

    /// The streak and the place in it of the run that holds the page `from`.
    fn find(&self, from: u64) -> Option<(usize, usize)> {
        self.streaks.iter().enumerate().find_map(|(number, runs)| {
            let place = runs.partition_point(|run| run.1 <= from);
            runs.get(place).is_some_and(|run| run.0 <= from).then_some((number, place))
        })
    }

    /// Whether any of the pages `from..end` is locked.
    fn any(&self, from: u64, end: u64) -> bool {
        self.is_near(from, end) && self.holds_any(from, end)
    }

    /// The locked pages of `word`.
    fn mask(&self, word: u64) -> u64 {
        let (first, end) = (word * WORD_PAGES, (word + 1) * WORD_PAGES);
        if self.is_near(first, end) { self.mask_of(word, first, end) } else { 0 }
    }

    fn is_near(&self, from: u64, end: u64) -> bool {
        from < self.span.1 && self.span.0 < end
    }

    // Most calls do not come this far, and stay small without it.
    #[inline(never)]
    fn holds_any(&self, from: u64, end: u64) -> bool {
        self.streaks.iter().any(|runs| last(runs, end).is_some_and(|run| run.1 > from))
    }

    #[inline(never)]
    fn mask_of(&self, word: u64, first: u64, end: u64) -> u64 {
        let mut mask = 0;
        for runs in &self.streaks {
            let behind = runs.partition_point(|run| run.0 < end);
            for run in runs.range(..behind).rev().take_while(|run| run.1 > first) {
                mask |= word_mask(word, PageIndex(run.0), PageIndex(run.1));
            }
        }
        mask
    }
}

/// The last of `runs` that begins before `end`.
fn last(runs: &VecDeque<(u64, u64)>, end: u64) -> Option<(u64, u64)> {
    let behind = runs.partition_point(|run| run.0 < end);
    behind.checked_sub(1).map(|last| runs[last])
}
