//! Records the history of a file while a log is read.

use filemap_core::units::PageIndex;

use super::history::{
    Grid, History, HistoryWindow, INTERVALS, MAX_WINDOWS, ROWS, first_access, interval_of,
};
use super::origin::Origin;

/// Builds a [`History`].
#[derive(Debug)]
pub(super) struct HistoryRecorder {
    /// Without windows or grid: [`HistoryRecorder::finish`] adds one of them.
    history: History,
    /// The first `max_windows` windows.
    windows: Vec<HistoryWindow>,
    grid: Grid,
    max_windows: usize,
    intervals: u64,
    /// The current interval.
    interval: u64,
    mark: Mark,
    present: u64,
    present_used: u64,
}

/// When a page was read: the number of its window, or [`MAX_WINDOWS`] plus its interval where the
/// window is not listed.
pub(super) type Mark = u16;

impl HistoryRecorder {
    /// A recorder for a run of `accesses` accesses that reads pages of `start..end`. Up to
    /// `max_windows` windows are listed, [`MAX_WINDOWS`] at most.
    pub(super) fn new(accesses: u64, max_windows: usize, start: PageIndex, end: PageIndex) -> Self {
        let intervals = accesses.clamp(1, INTERVALS);
        let cells = || vec![vec![0; ROWS as usize]; intervals as usize];
        let row_pages = end.0.saturating_sub(start.0).div_ceil(ROWS).max(1);
        let calls = vec![0; intervals as usize];
        HistoryRecorder {
            history: History { accesses, calls, ..History::default() },
            windows: Vec::new(),
            grid: Grid { start: start.0, row_pages, read: cells(), used: cells() },
            max_windows,
            intervals,
            interval: 0,
            mark: MAX_WINDOWS as Mark,
            present: 0,
            present_used: 0,
        }
    }

    /// Access number `access` requested a window.
    pub(super) fn call(&mut self, by: Origin, start: PageIndex, pages: u64, access: u64) {
        let interval = interval_of(access, self.history.accesses, self.intervals);
        self.history.calls[interval as usize] += 1;
        self.mark = MAX_WINDOWS as Mark + interval as Mark;
        if self.windows.len() < self.max_windows {
            self.mark = self.windows.len() as Mark;
            let by = by.key().to_string();
            let start = start.0;
            self.windows.push(HistoryWindow { access, by, start, pages, read: 0, used: 0 });
        }
    }

    /// Extends the last window to `start..end`.
    pub(super) fn extend(&mut self, start: PageIndex, end: PageIndex) {
        if let Some(window) = self.windows.get_mut(usize::from(self.mark)) {
            let last = (window.start + window.pages).max(end.0);
            window.start = window.start.min(start.0);
            window.pages = last - window.start;
        }
    }

    /// Pages entered the cache.
    pub(super) fn add(&mut self, pages: u64) -> Mark {
        self.present += pages;
        self.mark
    }

    /// A cached page was accessed for the first time.
    pub(super) fn touch(&mut self) {
        self.present_used += 1;
    }

    /// A page leaves the cache, or the run ends.
    pub(super) fn settle(&mut self, index: PageIndex, mark: Mark, touched: bool) {
        let used = u64::from(touched);
        self.present -= 1;
        self.present_used -= used;
        let interval = match self.windows.get_mut(usize::from(mark)) {
            Some(window) => {
                window.read += 1;
                window.used += used;
                interval_of(window.access, self.history.accesses, self.intervals)
            }
            None => u64::from(mark).saturating_sub(MAX_WINDOWS as u64),
        };
        let Grid { start, row_pages, .. } = self.grid;
        let row = (index.0.saturating_sub(start) / row_pages).min(ROWS - 1) as usize;
        self.grid.read[interval as usize][row] += 1;
        self.grid.used[interval as usize][row] += used;
    }

    /// Ends the intervals of the first `done` accesses.
    pub(super) fn advance(&mut self, done: u64) {
        while self.interval < self.intervals && done >= self.end_of_interval() {
            self.end_interval();
        }
    }

    /// Ends the last intervals, while all pages that are cached still count.
    pub(super) fn end(&mut self) {
        while self.interval < self.intervals {
            self.end_interval();
        }
    }

    fn end_of_interval(&self) -> u64 {
        first_access(self.interval + 1, self.history.accesses, self.intervals)
    }

    fn end_interval(&mut self) {
        self.history.resident.push(self.present);
        self.history.resident_used.push(self.present_used);
        self.interval += 1;
    }

    /// The history, once every page has left or been settled.
    pub(super) fn finish(self, page_bytes: u64, mapped: (PageIndex, PageIndex)) -> History {
        let is_listed = self.history.calls.iter().sum::<u64>() <= self.max_windows as u64;
        let sums = |cells: &[Vec<u64>]| cells.iter().map(|rows| rows.iter().sum()).collect();
        History {
            page_bytes,
            mapped: [mapped.0.0, mapped.1.0],
            read: sums(&self.grid.read),
            used: sums(&self.grid.used),
            windows: is_listed.then_some(self.windows),
            grid: (!is_listed).then_some(self.grid),
            ..self.history
        }
    }
}
