//! Why a page was read.

use filemap_core::decision::Cause;
use serde::{Deserialize, Serialize};

/// Why a page was read, as the module says. Each page that enters the cache is counted under
/// exactly one of these, when it leaves or at the end. Those but the first two were not accessed.
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

    /// What a window that was asked for because of `cause` brings in.
    pub(super) fn of(cause: Cause) -> Origin {
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

    /// The name in reports of that with this key; a key that is not known stands for itself.
    pub(crate) fn name_of(key: &str) -> String {
        Origin::with_key(key).map_or_else(|| key.to_string(), |of| of.name().to_string())
    }

    /// That with this key in JSON.
    pub fn with_key(key: &str) -> Option<Origin> {
        Origin::ALL.into_iter().find(|(.., known)| *known == key).map(|(origin, ..)| origin)
    }
}

/// A value for each [`Origin`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerOrigin<T>([T; Origin::ALL.len()]);

impl<T> PerOrigin<T> {
    /// That of `origin`.
    pub fn get(&self, origin: Origin) -> &T {
        &self.0[origin as usize]
    }

    pub(super) fn get_mut(&mut self, origin: Origin) -> &mut T {
        &mut self.0[origin as usize]
    }

    /// Adds each value of `other` to its own by `add`.
    pub(super) fn add(&mut self, other: &Self, add: fn(&mut T, &T)) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| add(own, other));
    }

    /// All of them, in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Origin, &T)> {
        Origin::ALL.iter().map(|(origin, ..)| *origin).zip(&self.0)
    }
}

/// Pages of one origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many entered the cache; a page counts each time that it does.
    pub pages: u64,
    /// Of these, pages that had been in before.
    pub again: u64,
}

impl Amount {
    pub(super) fn add(&mut self, other: &Amount) {
        self.pages += other.pages;
        self.again += other.again;
    }
}

/// What one kind of reading brought in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// Windows asked for, or misses that read a single page.
    pub calls: u64,
    /// Pages that they added.
    pub pages: u64,
    /// Of these, accessed while they were in.
    pub used: u64,
}

impl Brought {
    pub(super) fn add(&mut self, other: &Brought) {
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
    /// Those of all causes.
    pub(super) fn all(amounts: &PerOrigin<Amount>, page_bytes: u64) -> Vec<CausePages> {
        let of = |(origin, amount): (Origin, &Amount)| CausePages {
            cause: origin.key().to_string(),
            pages: amount.pages,
            bytes: amount.pages * page_bytes,
            again: amount.again,
        };
        amounts.iter().map(of).collect()
    }
}
