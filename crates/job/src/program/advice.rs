//! Advice that a program gives: what `madvise` and `fadvise` can say.

use filemap_core::address::vma::{AdviceFlag, ReadHint};
use serde::{Deserialize, Serialize};

use crate::size::format_size;

/// What `madvise(2)` says of a range of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Madvise {
    /// Advice that the range keeps.
    Flag(AdviceFlag),
    /// MADV_WILLNEED: reads the range ahead.
    WillNeed,
    /// MADV_DONTNEED: takes its page-table entries and private copies away.
    DontNeed,
    /// MADV_COLD: its pages are the next to be evicted.
    Cold,
    /// MADV_PAGEOUT: evicts its pages.
    PageOut,
    /// MADV_POPULATE_READ: faults each of its pages in.
    PopulateRead,
}

impl Madvise {
    /// Every one.
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

    /// The name in job files and reports.
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

/// What `posix_fadvise(2)` says of an open file, or of a range of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fadvise {
    /// POSIX_FADV_NORMAL: takes the next three back.
    Normal,
    /// POSIX_FADV_RANDOM: reads no more than is asked for.
    Random,
    /// POSIX_FADV_SEQUENTIAL: doubles the readahead size.
    Sequential,
    /// POSIX_FADV_NOREUSE: accesses through its mappings do not count for reclaim.
    NoReuse,
    /// POSIX_FADV_WILLNEED: reads the range ahead.
    WillNeed,
    /// POSIX_FADV_DONTNEED: drops the range from the page cache.
    DontNeed,
}

impl Fadvise {
    /// Every one.
    pub const ALL: [Fadvise; 6] = [
        Fadvise::Normal,
        Fadvise::Random,
        Fadvise::Sequential,
        Fadvise::NoReuse,
        Fadvise::WillNeed,
        Fadvise::DontNeed,
    ];

    /// The name in job files and reports.
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

    /// Whether it is about a range; others are about the open file, whatever range is given.
    pub const fn has_range(self) -> bool {
        matches!(self, Fadvise::WillNeed | Fadvise::DontNeed)
    }
}

/// A range in words: empty where it is everything.
pub(super) fn shown_range(offset: u64, len: Option<u64>) -> String {
    match (offset, len) {
        (0, None) => String::new(),
        (offset, None) => format!(" from {}", format_size(offset)),
        (offset, Some(len)) => format!(" of {} from {}", format_size(len), format_size(offset)),
    }
}
