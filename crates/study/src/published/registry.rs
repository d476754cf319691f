//! Registry of the published series.

use super::cell::Cell;
use super::data::{Notes, Series};
use super::study::{PublishedOptions, StudyLength, StudyResult};
use super::{exec_order, mm_owner, mmap_miss, vma_bound, vma_retry};

/// The functions of one series.
pub(super) struct SeriesFunctions {
    pub name: &'static str,
    pub study: fn(&PublishedOptions, StudyLength) -> StudyResult,
    /// Number of published figures.
    pub figures: fn() -> usize,
    /// Values for the placeholders of its notes.
    pub notes: for<'a> fn(&Series, &'a [Cell]) -> Notes<'a>,
}

pub(super) const KINDS: [SeriesFunctions; 5] = [
    SeriesFunctions {
        name: mmap_miss::NAME,
        study: mmap_miss::study,
        figures: mmap_miss::figures,
        notes: mmap_miss::notes,
    },
    SeriesFunctions {
        name: vma_bound::NAME,
        study: vma_bound::study,
        figures: vma_bound::figures,
        notes: vma_bound::notes,
    },
    SeriesFunctions {
        name: exec_order::NAME,
        study: exec_order::study,
        figures: exec_order::figures,
        notes: exec_order::notes,
    },
    SeriesFunctions {
        name: vma_retry::NAME,
        study: vma_retry::study,
        figures: vma_retry::figures,
        notes: vma_retry::notes,
    },
    SeriesFunctions {
        name: mm_owner::NAME,
        study: mm_owner::study,
        figures: mm_owner::figures,
        notes: mm_owner::notes,
    },
];

/// Names of all published series.
pub const NAMES: [&str; 5] =
    [KINDS[0].name, KINDS[1].name, KINDS[2].name, KINDS[3].name, KINDS[4].name];

/// Series with cells that depend on a seed.
pub const RANDOM: [&str; 2] = [mmap_miss::NAME, vma_retry::NAME];

/// The series that also runs programs of this machine.
pub const OF_PROGRAMS: &str = vma_bound::NAME;
