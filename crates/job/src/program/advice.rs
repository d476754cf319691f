//! Advice of `madvise` and `fadvise`.

use filemap_core::address::vma::{AdviceFlag, ReadHint};
use serde::{Deserialize, Serialize};

use crate::size::format_size;

/// Advice of `madvise(2)` for a range of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Madvise {
    /// Advice kept as flags of the VMA.
    Flag(AdviceFlag),
    /// MADV_WILLNEED: reads the range ahead.
    WillNeed,
    /// MADV_DONTNEED: drops page-table entries and private copies.
    DontNeed,
    /// MADV_COLD: makes the pages the first candidates for eviction.
    Cold,
    /// MADV_PAGEOUT: evicts the pages.
    PageOut,
    /// MADV_POPULATE_READ: faults in every page.
    PopulateRead,
}

impl Madvise {
    /// All of them.
    pub const ALL: [Madvise; 10] = [
        Madvise::Flag(AdviceFlag::Read(ReadHint::Normal)),
        Madvise::Flag(AdviceFlag::Read(ReadHint::Random)),
        Madvise::Flag(AdviceFlag::Read(ReadHint::Sequential)),
        Madvise::Flag(AdviceFlag::Huge),
        Madvise::Flag(AdviceFlag::NoHuge),
        Madvise::WillNeed,
        Madvise::DontNeed,
        Madvise::Cold,
        Madvise::PageOut,
        Madvise::PopulateRead,
    ];

    /// Name in job files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Madvise::Flag(AdviceFlag::Read(ReadHint::Normal)) => "normal",
            Madvise::Flag(AdviceFlag::Read(ReadHint::Random)) => "random",
            Madvise::Flag(AdviceFlag::Read(ReadHint::Sequential)) => "sequential",
            Madvise::Flag(AdviceFlag::Huge) => "hugepage",
            Madvise::Flag(AdviceFlag::NoHuge) => "nohugepage",
            Madvise::WillNeed => "willneed",
            Madvise::DontNeed => "dontneed",
            Madvise::Cold => "cold",
            Madvise::PageOut => "pageout",
            Madvise::PopulateRead => "populate-read",
        }
    }
}

/// Advice of `posix_fadvise(2)` for an open file or a range of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fadvise {
    /// POSIX_FADV_NORMAL: resets the next three.
    Normal,
    /// POSIX_FADV_RANDOM: disables readahead.
    Random,
    /// POSIX_FADV_SEQUENTIAL: doubles the readahead size.
    Sequential,
    /// POSIX_FADV_NOREUSE: reclaim ignores accesses through its mappings.
    NoReuse,
    /// POSIX_FADV_WILLNEED: reads the range ahead.
    WillNeed,
    /// POSIX_FADV_DONTNEED: drops the range from the page cache.
    DontNeed,
}

impl Fadvise {
    /// All of them.
    pub const ALL: [Fadvise; 6] = [
        Fadvise::Normal,
        Fadvise::Random,
        Fadvise::Sequential,
        Fadvise::NoReuse,
        Fadvise::WillNeed,
        Fadvise::DontNeed,
    ];

    /// Name in job files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Fadvise::Normal => "normal",
            Fadvise::Random => "random",
            Fadvise::Sequential => "sequential",
            Fadvise::NoReuse => "noreuse",
            Fadvise::WillNeed => "willneed",
            Fadvise::DontNeed => "dontneed",
        }
    }

    /// Whether it applies to the given range. The others apply to the whole open file.
    pub const fn has_range(self) -> bool {
        matches!(self, Fadvise::WillNeed | Fadvise::DontNeed)
    }
}

/// A range for reports; empty for the whole file.
pub(super) fn shown_range(offset: u64, len: Option<u64>) -> String {
    match (offset, len) {
        (0, None) => String::new(),
        (offset, None) => format!(" from {}", format_size(offset)),
        (offset, Some(len)) => format!(" of {} from {}", format_size(len), format_size(offset)),
    }
}
