//! What came into the page cache in the course of a run, and what of it was used: as much as a
//! picture needs, and no more, however long the run is.
//!
//! It has 160 intervals, and for each the windows, the pages read, how many of them were used, and
//! what is in the cache at its end. Up to 1000 windows are listed one by one. Where there are more,
//! pages are counted in a grid of the intervals by 64 parts of the file. A page is counted where it
//! came in, and is used if it was accessed before it left.

use serde::{Deserialize, Serialize};

use super::origin::CausePages;

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
    /// The first page that is mapped, and the first one after all that are.
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
    pub(super) fn is_sound(&self) -> bool {
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

/// The counter of misses in one piece of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Point {
    /// Number of the first access of the piece, from 0.
    pub access: u64,
    /// Lowest value.
    pub low: u16,
    /// Highest value.
    pub high: u16,
    /// Last value.
    pub last: u16,
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
