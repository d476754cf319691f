//! The history of a run: what entered the page cache, when, and which of it was accessed. Its size
//! is bounded however long the run is.
//!
//! A run is divided into 160 intervals of equally many accesses. Per interval, a file has the
//! number of windows requested, of pages read and used, and of pages cached at its end. Up to 1000
//! windows are listed; beyond that, pages are counted in a grid of intervals by 64 parts of the
//! file. A page counts in the interval in which it was read, and as used if it was accessed before
//! it left the cache.
//!
//! The six files with the most pages read have a history each, with the job's accesses as the axis,
//! and share the limit on listed windows. Each open file description has its own `mmap_miss`; a
//! file shows the one that changes most often.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::origin::{CausePages, Origin};

/// Intervals of a run, which divide its accesses evenly.
pub const INTERVALS: u64 = 160;

/// Parts of the file in a [`Grid`].
pub const ROWS: u64 = 64;

/// Windows that are listed; a run with more has a [`Grid`].
pub const MAX_WINDOWS: usize = 1000;

/// Files that have a history of their own.
pub(super) const MAX_FILES: usize = 6;

/// Threads whose waits are listed.
pub(super) const MAX_THREADS: usize = 64;

/// The history of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunHistory {
    /// Accesses of all threads. Interval `i` of `n` begins with access `i * accesses / n`, rounded
    /// up.
    pub accesses: u64,
    /// The files with the most pages read, in descending order.
    pub files: Vec<FileHistory>,
    /// Number of further files that were read.
    pub other_files: u64,
    /// Waits by cause: the cause that read the page waited for, as in `brought_in` of `explain`, or
    /// `other-files`, `memory`, `cpu`, `phase` or `lock`.
    pub waits: Vec<WaitHistory>,
    /// The first threads of the job.
    pub threads: Vec<ThreadWaits>,
}

/// The history of one file of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileHistory {
    /// The file.
    pub name: String,
    /// The open file description whose `mmap_miss` the history shows: the file's description with
    /// the most changes of the counter. `null` if none changes.
    pub counter_of: Option<String>,
    /// Its history.
    pub history: History,
}

/// The time waited for one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WaitHistory {
    /// The cause.
    pub cause: String,
    /// Nanoseconds in each interval, summed over threads.
    pub ns: Vec<u64>,
}

/// How long a thread waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadWaits {
    /// The thread.
    pub name: String,
    /// Nanoseconds by cause, in the order of `waits`.
    pub ns: Vec<u64>,
}

/// Number of wait causes: pages by origin, and five more.
const MAX_WAIT_CAUSES: usize = Origin::ALL.len() + 5;

impl RunHistory {
    /// Deserializes a history, and refuses numbers that cannot be drawn.
    pub(crate) fn deserialize_checked<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        match Option::<RunHistory>::deserialize(deserializer)? {
            Some(history) if !history.is_sound() => {
                Err(D::Error::custom("its history contradicts itself"))
            }
            history => Ok(history),
        }
    }

    fn is_sound(&self) -> bool {
        let intervals = self.waits.first().map_or(1, |first| first.ns.len());
        let by_interval = self.waits.iter().flat_map(|wait| &wait.ns);
        let by_thread = self.threads.iter().flat_map(|thread| &thread.ns);
        let mut counts = by_interval.chain(by_thread).chain([&self.accesses]);
        self.files.len() <= MAX_FILES
            && self.waits.len() <= MAX_WAIT_CAUSES
            && self.threads.len() <= MAX_THREADS
            && (1..=MAX_INTERVALS).contains(&intervals)
            && self.files.iter().all(|file| file.history.is_sound())
            && self.waits.iter().all(|wait| wait.ns.len() == intervals)
            && self.threads.iter().all(|thread| thread.ns.len() == self.waits.len())
            && counts.all(|&value| value <= MAX_COUNT)
    }
}

/// What happened to the pages of one file in the course of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct History {
    /// Accesses of the run. Interval `i` of `n` begins with access `i * accesses / n`, rounded up.
    pub accesses: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The first mapped page, and the page after the last mapped one.
    pub mapped: [u64; 2],
    /// In each interval, the number of windows requested plus single-page reads.
    pub calls: Vec<u64>,
    /// Pages that entered the cache in each interval.
    pub read: Vec<u64>,
    /// Of these, pages that were accessed before they left, whenever that was.
    pub used: Vec<u64>,
    /// Pages that are in the cache at the end of each interval.
    pub resident: Vec<u64>,
    /// Of these, pages that were accessed since they came in.
    pub resident_used: Vec<u64>,
    /// The windows, where there are at most [`MAX_WINDOWS`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub windows: Option<Vec<HistoryWindow>>,
    /// The same by interval and part of the file, where there are more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grid: Option<Grid>,
    /// Pages by cause, where the record does not have them elsewhere.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub causes: Option<Vec<CausePages>>,
    /// The values of `mmap_miss` along the run, where the record does not have them elsewhere.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mmap_miss: Option<Vec<CounterPoint>>,
    /// The value of `mmap_miss` above which a miss reads a single page, by the rules that ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mmap_miss_threshold: Option<u16>,
}

/// Maximum number of intervals, rows or windows that are drawn.
pub(super) const MAX_INTERVALS: usize = 4096;

/// Largest count that is drawn; an f64 is exact up to here.
pub(super) const MAX_COUNT: u64 = 1 << 52;

impl History {
    /// Whether its numbers can be drawn: a record may have been edited.
    fn is_sound(&self) -> bool {
        let lists = [&self.calls, &self.read, &self.used, &self.resident, &self.resident_used];
        let intervals = self.calls.len();
        let rows = |grid: &Grid| grid.read.first().map_or(0, Vec::len);
        let has_shape = |grid: &Grid| {
            let lists = || [&grid.read, &grid.used];
            let whole = lists().iter().all(|list| {
                list.len() == intervals && list.iter().all(|own| own.len() == rows(grid))
            });
            whole && (1..=MAX_INTERVALS).contains(&rows(grid)) && grid.row_pages > 0
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
        (1..=MAX_INTERVALS).contains(&intervals)
            && lists.iter().all(|list| list.len() == intervals)
            && self.windows.as_ref().is_none_or(|windows| windows.len() <= MAX_INTERVALS)
            && self.grid.as_ref().is_none_or(has_shape)
            && all.all(|&value| value <= MAX_COUNT)
            && self.mapped[0] <= self.mapped[1]
    }
}

/// A window that was requested, or a single page that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HistoryWindow {
    /// Number of the access that requested it, from 0.
    pub access: u64,
    /// The cause, as in `brought_in` of `explain`.
    pub by: String,
    /// Its first page.
    pub start: u64,
    /// Pages requested.
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

/// The miss counter in one piece of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CounterPoint {
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
