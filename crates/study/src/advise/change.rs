//! Changes to a program or its machine that could reduce what it reads.

use filemap_core::address::vma::ReadHint;
use filemap_job::format_size;
use filemap_job::program::Madvise;

/// Mappings of a file, or open files of one that is not mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdviceTarget {
    /// The file, as an index.
    pub file: usize,
    /// Name of the file, or of the mapping.
    pub name: String,
    /// Indexes of its mappings in the job; of its open files if it is only read.
    pub numbers: Vec<usize>,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdviceChange {
    /// `madvise(2)` of the read pattern, replacing the program's own advice.
    Madvise(AdviceTarget, ReadHint),
    /// MADV_WILLNEED or MADV_POPULATE_READ of the used part of each mapping before its first touch:
    /// first page and number of pages.
    Ask(AdviceTarget, Madvise, Vec<(u64, u64)>),
    /// `posix_fadvise(2)` of the read pattern, replacing the program's own advice.
    Fadvise(AdviceTarget, ReadHint),
    /// Leaves out what the program itself prefetches of the file: MAP_POPULATE, MADV_POPULATE_READ,
    /// MADV_WILLNEED, POSIX_FADV_WILLNEED and readahead(2).
    OmitPrefetch(AdviceTarget),
    /// The readahead size of the device, in KiB.
    ReadAhead(u64),
    /// The fault-around size, in bytes.
    FaultAround(u64),
    /// `filemap govern`.
    Governor,
}

impl AdviceChange {
    /// Label, such as `MADV_RANDOM on data.mdb`.
    pub fn label(&self) -> String {
        match self {
            AdviceChange::Madvise(on, hint) => format!("MADV_{} on {}", hint_name(*hint), on.name),
            AdviceChange::Ask(on, ask, _) => format!("MADV_{} on {}", ask_name(*ask), on.name),
            AdviceChange::Fadvise(on, hint) => {
                format!("POSIX_FADV_{} on {}", hint_name(*hint), on.name)
            }
            AdviceChange::OmitPrefetch(on) => format!("no prefetch of {}", on.name),
            AdviceChange::ReadAhead(kb) => format!("read_ahead_kb={kb}"),
            AdviceChange::FaultAround(bytes) => format!("fault_around={}", format_size(*bytes)),
            AdviceChange::Governor => "filemap govern".to_string(),
        }
    }

    /// The call or setting, as named in a sentence.
    pub fn call(&self) -> String {
        match self {
            AdviceChange::Madvise(on, hint) => {
                format!("madvise(MADV_{}) on {}", hint_name(*hint), on.name)
            }
            AdviceChange::Ask(on, ask, _) => format!(
                "madvise(MADV_{}) of what is used, once it is mapped, on {}",
                ask_name(*ask),
                on.name
            ),
            AdviceChange::OmitPrefetch(on) => format!(
                "without the program's own MAP_POPULATE, MADV_WILLNEED or readahead of {}",
                on.name
            ),
            change => change.label(),
        }
    }

    /// Scope, in ascending order: advice affects one mapping, the governor the mappings of a
    /// program, sizes every program. Ties go to the smallest scope.
    pub fn reach(&self) -> u32 {
        match self {
            AdviceChange::Madvise(..)
            | AdviceChange::Fadvise(..)
            | AdviceChange::OmitPrefetch(_) => 0,
            AdviceChange::Ask(..) => 1,
            AdviceChange::Governor => 2,
            AdviceChange::ReadAhead(_) => 3,
            AdviceChange::FaultAround(_) => 4,
        }
    }

    /// Whether it affects every program on the machine or device.
    pub fn is_for_all(&self) -> bool {
        matches!(self, AdviceChange::ReadAhead(_) | AdviceChange::FaultAround(_))
    }

    /// The file that it affects; `None` for all files.
    pub fn file(&self) -> Option<usize> {
        match self {
            AdviceChange::Madvise(on, _)
            | AdviceChange::Ask(on, ..)
            | AdviceChange::Fadvise(on, _)
            | AdviceChange::OmitPrefetch(on) => Some(on.file),
            _ => None,
        }
    }

    /// Whether both can be combined: they are not two values of one setting.
    pub fn goes_with(&self, other: &AdviceChange) -> bool {
        // The governor leaves advised mappings alone.
        match (self, other) {
            (AdviceChange::Governor, _) | (_, AdviceChange::Governor) => false,
            (AdviceChange::OmitPrefetch(one), AdviceChange::OmitPrefetch(two))
            | (AdviceChange::OmitPrefetch(one), AdviceChange::Ask(two, ..))
            | (AdviceChange::Ask(one, ..), AdviceChange::OmitPrefetch(two)) => one.file != two.file,
            (
                AdviceChange::Madvise(one, _) | AdviceChange::Fadvise(one, _),
                AdviceChange::Madvise(two, _) | AdviceChange::Fadvise(two, _),
            )
            | (AdviceChange::Ask(one, ..), AdviceChange::Ask(two, ..)) => {
                one.numbers.iter().all(|number| !two.numbers.contains(number))
                    && (one.file, &one.name) != (two.file, &two.name)
            }
            _ => std::mem::discriminant(self) != std::mem::discriminant(other),
        }
    }
}

/// `RANDOM`.
pub(super) fn hint_name(hint: ReadHint) -> String {
    format!("{hint:?}").to_uppercase()
}

/// `POPULATE_READ`.
pub(super) fn ask_name(ask: Madvise) -> String {
    ask.name().to_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicting_changes_are_not_combined() {
        let on = |file: usize| AdviceTarget { file, name: format!("f{file}"), numbers: vec![file] };
        let random = |file| AdviceChange::Madvise(on(file), ReadHint::Random);
        let sequential = |file| AdviceChange::Madvise(on(file), ReadHint::Sequential);
        assert!(!random(0).goes_with(&sequential(0)));
        assert!(random(0).goes_with(&sequential(1)));
        assert!(random(0).goes_with(&AdviceChange::Ask(on(0), Madvise::WillNeed, vec![(0, 9)])));
        assert!(random(0).goes_with(&AdviceChange::ReadAhead(128)));
        assert!(!AdviceChange::ReadAhead(64).goes_with(&AdviceChange::ReadAhead(128)));
        assert!(!random(0).goes_with(&AdviceChange::Governor));
    }
}
