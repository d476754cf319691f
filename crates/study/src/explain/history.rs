//! What came into the page cache in the course of a run, and what of it was used: as much as a
//! picture needs, and no more, however long the run is.

use filemap_core::units::PageIndex;
use serde::{Deserialize, Serialize};

use super::counter::Point;
use super::origin::Origin;

/// Intervals of a run, which divide its accesses evenly.
pub const INTERVALS: u64 = 160;

/// Parts of the file in a [`Grid`].
pub const ROWS: u64 = 64;

/// Windows that are listed one by one. Of a run with more there is a [`Grid`].
pub const MAX_WINDOWS: usize = 1000;

/// The course of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct History {
    /// Accesses of the run. Interval `i` of `n` begins with access `i * accesses / n`, rounded up.
    pub accesses: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The first page that is mapped, and the first one behind all that are.
    pub mapped: [u64; 2],
    /// In each interval, windows that were asked for, and pages that were read alone.
    pub calls: Vec<u64>,
    /// Pages that entered the cache in each interval.
    pub read: Vec<u64>,
    /// Of these, pages that were accessed before they left, whenever that was.
    pub used: Vec<u64>,
    /// Pages that are in the cache at the end of each interval.
    pub resident: Vec<u64>,
    /// Of these, pages that were accessed since they came in.
    pub resident_used: Vec<u64>,
    /// Every window, where there are at most [`MAX_WINDOWS`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub windows: Option<Vec<Window>>,
    /// The same by interval and part of the file, where there are more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grid: Option<Grid>,
    /// Pages by what they were read for, where the record does not say it elsewhere.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub causes: Option<Vec<CausePages>>,
    /// The course of `mmap_miss`, where the record does not say it elsewhere.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mmap_miss: Option<Vec<Point>>,
}

/// Longer histories than any of ours are not drawn.
pub(super) const MOST_KEPT: usize = 4096;

/// Pages and accesses beyond this are not exact in a picture.
pub(super) const MOST_COUNTED: u64 = 1 << 52;

impl History {
    /// Whether its numbers can be drawn: a record may have come from elsewhere.
    pub(crate) fn is_sound(&self) -> bool {
        let lists = [&self.calls, &self.read, &self.used, &self.resident, &self.resident_used];
        let intervals = self.calls.len();
        let rows = |grid: &Grid| grid.read.first().map_or(0, Vec::len);
        let has_shape = |grid: &Grid| {
            let lists = || [&grid.read, &grid.used];
            let whole = lists().iter().all(|list| {
                list.len() == intervals && list.iter().all(|own| own.len() == rows(grid))
            });
            whole && (1..=MOST_KEPT).contains(&rows(grid)) && grid.row_pages > 0
        };
        let of_grid = self.grid.iter().flat_map(|grid| {
            let cells = grid.read.iter().chain(&grid.used).flatten();
            cells.chain([&grid.start, &grid.row_pages])
        });
        let of_windows = self.windows.iter().flatten().flat_map(|window| {
            [&window.access, &window.start, &window.pages, &window.read, &window.used]
        });
        let alone = [&self.accesses, &self.page_bytes].into_iter().chain(&self.mapped);
        let mut all = lists.into_iter().flatten().chain(of_grid).chain(of_windows).chain(alone);
        (1..=MOST_KEPT).contains(&intervals)
            && lists.iter().all(|list| list.len() == intervals)
            && self.windows.as_ref().is_none_or(|windows| windows.len() <= MOST_KEPT)
            && self.grid.as_ref().is_none_or(has_shape)
            && all.all(|&value| value <= MOST_COUNTED)
            && self.mapped[0] <= self.mapped[1]
    }
}

/// A window that was asked for, or a page that was read alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Window {
    /// Number of the access that asked, from 0.
    pub access: u64,
    /// What asked, as in `brought_in` of `explain`.
    pub by: String,
    /// Its first page.
    pub start: u64,
    /// Pages that were asked for.
    pub pages: u64,
    /// Of these, pages that entered the cache.
    pub read: u64,
    /// Of these, pages that were accessed before they left.
    pub used: u64,
}

/// Pages by interval of the run and part of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Grid {
    /// The first page of the first row.
    pub start: u64,
    /// Pages of a row.
    pub row_pages: u64,
    /// Pages that entered the cache: for each interval, each row.
    pub read: Vec<Vec<u64>>,
    /// Of these, pages that were accessed before they left.
    pub used: Vec<Vec<u64>>,
}

/// Pages that were read for one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CausePages {
    /// The cause, as in `causes` of `explain`.
    pub cause: String,
    /// Pages that entered the cache; a page counts each time.
    pub pages: u64,
    /// Of these, pages that had been in before.
    pub again: u64,
}

/// A [`History`] while its run goes on.
#[derive(Debug)]
pub(super) struct Recorder {
    accesses: u64,
    intervals: u64,
    /// The interval that goes on.
    interval: u64,
    start: u64,
    row_pages: u64,
    calls: Vec<u64>,
    /// For each interval, each row.
    read: Vec<u64>,
    used: Vec<u64>,
    resident: Vec<u64>,
    resident_used: Vec<u64>,
    /// The first windows, as many as are listed at most.
    windows: Vec<Window>,
    most_windows: usize,
    windows_in_all: u64,
    mark: Mark,
    present: u64,
    present_used: u64,
}

/// When a page came in: the number of its window, or behind those that are listed of its interval.
pub(super) type Mark = u16;

impl Recorder {
    /// Of a run of so many accesses, which reads pages of `start..end`. Up to `most_windows`, which
    /// are [`MAX_WINDOWS`] at most, are listed one by one.
    pub(super) fn new(
        accesses: u64,
        most_windows: usize,
        start: PageIndex,
        end: PageIndex,
    ) -> Self {
        let intervals = accesses.clamp(1, INTERVALS);
        let cells = (intervals * ROWS) as usize;
        Recorder {
            accesses,
            intervals,
            interval: 0,
            start: start.0,
            row_pages: end.0.saturating_sub(start.0).div_ceil(ROWS).max(1),
            calls: vec![0; intervals as usize],
            read: vec![0; cells],
            used: vec![0; cells],
            resident: Vec::new(),
            resident_used: Vec::new(),
            windows: Vec::new(),
            most_windows,
            windows_in_all: 0,
            mark: MAX_WINDOWS as Mark,
            present: 0,
            present_used: 0,
        }
    }

    /// A window was asked for in an access before which `done` were made.
    pub(super) fn call(&mut self, by: Origin, start: PageIndex, pages: u64, done: u64) {
        let interval = interval_of(done, self.accesses, self.intervals);
        self.calls[interval as usize] += 1;
        self.windows_in_all += 1;
        self.mark = MAX_WINDOWS as Mark + interval as Mark;
        if self.windows.len() < self.most_windows {
            self.mark = self.windows.len() as Mark;
            let by = by.key().to_string();
            self.windows.push(Window { access: done, by, start: start.0, pages, read: 0, used: 0 });
        }
    }

    /// The window at hand reaches over `start..end` too.
    pub(super) fn reach(&mut self, start: PageIndex, end: PageIndex) {
        if let Some(window) = self.windows.get_mut(usize::from(self.mark)) {
            let last = (window.start + window.pages).max(end.0);
            window.start = window.start.min(start.0);
            window.pages = last - window.start;
        }
    }

    /// Pages entered the cache. Returns what says when.
    pub(super) fn came(&mut self, pages: u64) -> Mark {
        self.present += pages;
        self.mark
    }

    /// A page that is in was accessed for the first time.
    pub(super) fn touched(&mut self) {
        self.present_used += 1;
    }

    /// A page leaves, or the run ends.
    pub(super) fn settle(&mut self, index: PageIndex, mark: Mark, touched: bool) {
        let used = u64::from(touched);
        self.present -= 1;
        self.present_used -= used;
        let interval = match self.windows.get_mut(usize::from(mark)) {
            Some(window) => {
                window.read += 1;
                window.used += used;
                interval_of(window.access, self.accesses, self.intervals)
            }
            None => u64::from(mark).saturating_sub(MAX_WINDOWS as u64),
        };
        let row = (index.0.saturating_sub(self.start) / self.row_pages).min(ROWS - 1);
        let cell = (interval * ROWS + row) as usize;
        self.read[cell] += 1;
        self.used[cell] += used;
    }

    /// So many accesses are done.
    pub(super) fn accessed(&mut self, done: u64) {
        while self.interval < self.intervals && done >= self.end_of_interval() {
            self.end_interval();
        }
    }

    /// The run has ended, with what is in the cache still in.
    pub(super) fn end(&mut self) {
        while self.interval < self.intervals {
            self.end_interval();
        }
    }

    fn end_of_interval(&self) -> u64 {
        first_access(self.interval + 1, self.accesses, self.intervals)
    }

    fn end_interval(&mut self) {
        self.resident.push(self.present);
        self.resident_used.push(self.present_used);
        self.interval += 1;
    }

    /// The history, of which every page is settled.
    pub(super) fn finish(self, page_bytes: u64, mapped: (PageIndex, PageIndex)) -> History {
        let by_interval = |cells: &[u64]| -> Vec<Vec<u64>> {
            cells.chunks(ROWS as usize).map(<[u64]>::to_vec).collect()
        };
        let (read, used) = (by_interval(&self.read), by_interval(&self.used));
        let is_listed = self.windows_in_all <= self.most_windows as u64;
        let sums = |cells: &[Vec<u64>]| cells.iter().map(|rows| rows.iter().sum()).collect();
        let (sum_read, sum_used) = (sums(&read), sums(&used));
        let grid = Grid { start: self.start, row_pages: self.row_pages, read, used };
        History {
            accesses: self.accesses,
            page_bytes,
            mapped: [mapped.0.0, mapped.1.0],
            calls: self.calls,
            read: sum_read,
            used: sum_used,
            resident: self.resident,
            resident_used: self.resident_used,
            windows: is_listed.then_some(self.windows),
            grid: (!is_listed).then_some(grid),
            causes: None,
            mmap_miss: None,
        }
    }
}

/// The interval of an access.
pub(super) fn interval_of(access: u64, accesses: u64, intervals: u64) -> u64 {
    let interval = u128::from(access) * u128::from(intervals) / u128::from(accesses.max(1));
    (interval as u64).min(intervals - 1)
}

/// The first access of an interval.
pub(crate) fn first_access(interval: u64, accesses: u64, intervals: u64) -> u64 {
    let product = u128::from(interval) * u128::from(accesses);
    product.div_ceil(u128::from(intervals.max(1))) as u64
}
