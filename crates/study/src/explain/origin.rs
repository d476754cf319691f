//! Why a page was read, and which part of a window is rounding to large folios.

use filemap_core::decision::Cause;
use filemap_core::units::{PageCount, PageIndex};
use serde::{Deserialize, Serialize};

/// Why a page was read; see the documentation of [`crate::explain`]. Each page that enters the
/// cache is counted under exactly one origin, when it leaves or at the end of the run. All origins
/// but the first two are for pages that were not accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Origin {
    Used,
    Refetched,
    BeyondMapping,
    BetweenSegments,
    FolioRounding,
    ReadAround,
    Async,
    OnDemand,
    WillNeed,
    Governor,
    Executable,
    HugePage,
    Single,
}

impl Origin {
    /// Every origin, in the order of reports, with its name there and its key in JSON.
    pub const ALL: [(Origin, &'static str, &'static str); 13] = [
        (Origin::Used, "used", "used"),
        (Origin::Refetched, "refetched after eviction", "refetched"),
        (Origin::BeyondMapping, "beyond the mapping", "beyond-mapping"),
        (Origin::BetweenSegments, "between the segments", "between-segments"),
        (Origin::FolioRounding, "large-folio rounding", "folio-rounding"),
        (Origin::ReadAround, "read-around", "read-around"),
        (Origin::Async, "async readahead", "async"),
        (Origin::OnDemand, "on-demand readahead", "on-demand"),
        (Origin::WillNeed, "advised WILLNEED", "will-need"),
        (Origin::Governor, "governor", "governor"),
        (Origin::Executable, "executable readahead", "executable"),
        (Origin::HugePage, "huge-page readahead", "huge-page"),
        (Origin::Single, "single page", "single"),
    ];

    /// The origin of the pages of a window that `cause` requested.
    pub(super) fn from_cause(cause: Cause) -> Origin {
        match cause {
            Cause::HugePage => Origin::HugePage,
            Cause::Executable => Origin::Executable,
            Cause::ReadAround => Origin::ReadAround,
            Cause::AsyncFault | Cause::AsyncRead => Origin::Async,
            Cause::SequentialFault
            | Cause::SequentialSingle
            | Cause::SequentialForced
            | Cause::ReadStream
            | Cause::ReadSingle
            | Cause::ReadForced => Origin::OnDemand,
            Cause::WillNeed => Origin::WillNeed,
            Cause::Governor => Origin::Governor,
        }
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        Origin::ALL[self as usize].1
    }

    /// The key in JSON.
    pub fn key(self) -> &'static str {
        Origin::ALL[self as usize].2
    }

    /// The name in reports of the origin with this key; an unknown key stands for itself.
    pub(crate) fn name_for_key(key: &str) -> String {
        Origin::with_key(key).map_or_else(|| key.to_string(), |origin| origin.name().to_string())
    }

    /// The origin with this key in JSON.
    pub fn with_key(key: &str) -> Option<Origin> {
        Origin::ALL.into_iter().find(|(.., known)| *known == key).map(|(origin, ..)| origin)
    }
}

/// A value for each [`Origin`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerOrigin<T>([T; Origin::ALL.len()]);

impl<T> PerOrigin<T> {
    /// The value for `origin`.
    pub fn get(&self, origin: Origin) -> &T {
        &self.0[origin as usize]
    }

    pub(super) fn get_mut(&mut self, origin: Origin) -> &mut T {
        &mut self.0[origin as usize]
    }

    /// Combines each value with the one of `other` by `add`.
    pub(super) fn add(&mut self, other: &Self, add: fn(&mut T, &T)) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| add(own, other));
    }

    /// All values, in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Origin, &T)> {
        Origin::ALL.iter().map(|(origin, ..)| *origin).zip(&self.0)
    }
}

/// The pages of one origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageTotal {
    /// How many entered the cache; a page counts each time that it does.
    pub pages: u64,
    /// Of these, pages that had been cached before.
    pub again: u64,
}

impl PageTotal {
    pub(super) fn add(&mut self, other: &PageTotal) {
        self.pages += other.pages;
        self.again += other.again;
    }
}

/// Pages that one kind of readahead, or single-page reads, added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceTotal {
    /// Windows requested, or misses that read a single page.
    pub calls: u64,
    /// Pages that they added.
    pub pages: u64,
    /// Of these, accessed while they were cached.
    pub used: u64,
}

impl SourceTotal {
    pub(super) fn add(&mut self, other: &SourceTotal) {
        self.calls += other.calls;
        self.pages += other.pages;
        self.used += other.used;
    }
}

/// Pages that were read for one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CausePages {
    /// The cause: the key of an [`Origin`].
    pub(super) cause: String,
    /// Pages that entered the cache; a page counts each time.
    pub(super) pages: u64,
    #[serde(default)]
    pub(super) bytes: u64,
    /// Of these pages, those that had been in before.
    pub(super) again: u64,
}

impl CausePages {
    /// The pages of every cause, in the order of reports.
    pub(super) fn from_totals(totals: &PerOrigin<PageTotal>, page_bytes: u64) -> Vec<CausePages> {
        let cause_pages = |(origin, total): (Origin, &PageTotal)| CausePages {
            cause: origin.key().to_string(),
            pages: total.pages,
            bytes: total.pages * page_bytes,
            again: total.again,
        };
        totals.iter().map(cause_pages).collect()
    }
}

/// The window requested last for a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastWindow {
    pub(super) cause: Cause,
    /// The page that was accessed.
    pub(super) index: PageIndex,
    pub(super) start: PageIndex,
    pub(super) end: PageIndex,
}

impl LastWindow {
    /// Whether it contains page `index`.
    pub(super) fn holds(&self, index: PageIndex) -> bool {
        self.start <= index && index < self.end
    }

    /// Extends it by a part that is laid out in base pages.
    pub(super) fn extend(&mut self, start: PageIndex, size: PageCount) {
        self.start = self.start.min(start);
        self.end = self.end.max(start + size);
    }
}

/// Splits the pages `start..end`, added in folios of `folio_pages` pages when `window` was the last
/// window asked for, into three parts in order, each with its origin.
pub(super) fn split_by_origin(
    window: Option<LastWindow>,
    (start, end): (PageIndex, PageIndex),
    folio_pages: u64,
    read_ahead: PageCount,
) -> [(PageIndex, PageIndex, Origin); 3] {
    let Some(window) = window.filter(|window| window.holds(start)) else {
        return [(start, start), (start, end), (end, end)].map(|(a, b)| (a, b, Origin::Single));
    };
    let by = Origin::from_cause(window.cause);
    // Base pages would have read `from..to` as well, and the rest is rounding; if
    // `inside_is_rounding`, the inside is rounding instead.
    let LastWindow { index, .. } = window;
    let (from, to, inside_is_rounding) = match window.cause {
        Cause::HugePage => {
            let head = PageIndex(index.0 - index.0 % folio_pages);
            (head, head + PageCount(folio_pages), true)
        }
        Cause::Executable => (index, index + read_ahead, false),
        _ => (start, end, false),
    };
    let (from, to) = (from.clamp(start, end), to.clamp(start, end));
    let rounding = Origin::FolioRounding;
    let (inside, outside) = if inside_is_rounding { (rounding, by) } else { (by, rounding) };
    [(start, from, outside), (from, to, inside), (to, end, outside)]
}
