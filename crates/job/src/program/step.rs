//! Steps of threads.

use std::sync::Arc;

use filemap_core::address::protection::Protection;
use filemap_core::units::PageCount;
use serde::{Deserialize, Serialize};

use super::advice::shown_range;
use super::{Access, Fadvise, Job, Madvise};
use crate::parts::{Pattern, Phase};
use crate::size::{format_duration, format_size};
use crate::waits::Call;
use crate::xorshift::DEFAULT_SEED;

/// A step of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramStep {
    /// `mmap(2)` of a mapping.
    Map {
        /// Index of the mapping.
        mapping: usize,
    },
    /// `munmap(2)` of a mapping or a part of it.
    Unmap {
        /// Index of the mapping.
        mapping: usize,
        /// First page, relative to the mapping.
        first: PageCount,
        /// Number of pages, at least 1.
        pages: PageCount,
    },
    /// Touches pages through a mapping.
    Touch {
        /// Index of the mapping.
        mapping: usize,
        /// The accessed pages.
        accesses: Phase,
        /// What is done to each page.
        access: Access,
        /// Time between two accesses, in nanoseconds.
        think_ns: u64,
    },
    /// `madvise(2)` on a part of a mapping.
    Madvise {
        /// Index of the mapping.
        mapping: usize,
        /// The advice.
        advice: Madvise,
        /// First page, relative to the mapping.
        first: PageCount,
        /// Number of pages, at least 1.
        pages: PageCount,
    },
    /// `mprotect(2)` of a part of a mapping.
    Mprotect {
        /// Index of the mapping.
        mapping: usize,
        /// The new protection.
        protection: Protection,
        /// First page, relative to the mapping.
        first: PageCount,
        /// Number of pages, at least 1.
        pages: PageCount,
    },
    /// `fork(2)` of a child that exits immediately and is waited for.
    Fork,
    /// Waits at a barrier until all of its threads have arrived.
    Barrier {
        /// Index of the barrier.
        barrier: usize,
    },
    /// Sleeps.
    Sleep {
        /// Time in nanoseconds.
        ns: u64,
    },
    /// Allocates anonymous memory.
    Allocate {
        /// Number of pages.
        pages: PageCount,
    },
    /// Frees anonymous memory, the most recently allocated first.
    Free {
        /// Number of pages.
        pages: PageCount,
    },
    /// `posix_fadvise(2)` on an open file.
    Fadvise {
        /// Index of the open file.
        open: usize,
        /// The advice.
        advice: Fadvise,
        /// Start of the range in bytes.
        offset_bytes: u64,
        /// Length of the range in bytes; `None`: up to the end of the file.
        len_bytes: Option<u64>,
    },
    /// Reads with `read(2)`.
    Read {
        /// Index of the open file.
        open: usize,
        /// Start of the range that is read, in bytes.
        offset_bytes: u64,
        /// Length of the range in bytes, within the file.
        len_bytes: u64,
        /// The blocks that are read.
        accesses: Phase,
        /// Time between two reads, in nanoseconds.
        think_ns: u64,
    },
}

impl ProgramStep {
    /// Reads a byte of each of these pages of a mapping, in order.
    pub fn touch(mapping: usize, pages: Vec<u64>) -> ProgramStep {
        let accesses = Phase::from_list(Arc::new(pages), DEFAULT_SEED, 1);
        ProgramStep::Touch { mapping, accesses, access: Access::Read, think_ns: 0 }
    }

    /// Index of the mapping that it uses.
    pub fn mapping(&self) -> Option<usize> {
        match self {
            ProgramStep::Map { mapping } | ProgramStep::Unmap { mapping, .. } => Some(*mapping),
            step => step.touched_mapping(),
        }
    }

    /// Index of the mapping whose pages it touches, advises or protects.
    pub fn touched_mapping(&self) -> Option<usize> {
        match self {
            ProgramStep::Touch { mapping, .. }
            | ProgramStep::Madvise { mapping, .. }
            | ProgramStep::Mprotect { mapping, .. } => Some(*mapping),
            _ => None,
        }
    }

    /// Its accesses, if it makes any.
    pub fn phase(&self) -> Option<&Phase> {
        match self {
            ProgramStep::Touch { accesses, .. } | ProgramStep::Read { accesses, .. } => {
                Some(accesses)
            }
            _ => None,
        }
    }

    pub(crate) fn phase_mut(&mut self) -> Option<&mut Phase> {
        match self {
            ProgramStep::Touch { accesses, .. } | ProgramStep::Read { accesses, .. } => {
                Some(accesses)
            }
            _ => None,
        }
    }

    /// Number of accesses.
    pub fn accesses(&self) -> u64 {
        self.phase().map_or(0, |accesses| accesses.accesses)
    }

    /// Whether it can cause readahead decisions.
    pub fn decides(&self) -> bool {
        match self {
            ProgramStep::Madvise { advice, .. } => {
                matches!(advice, Madvise::WillNeed | Madvise::PopulateRead)
            }
            ProgramStep::Fadvise { advice, .. } => *advice == Fadvise::WillNeed,
            step => step.phase().is_some(),
        }
    }

    /// Time between two accesses, in nanoseconds.
    pub fn think_ns(&self) -> u64 {
        match self {
            ProgramStep::Touch { think_ns, .. } | ProgramStep::Read { think_ns, .. } => *think_ns,
            _ => 0,
        }
    }

    /// Minimum duration in nanoseconds: the sleep, or the sum of think times.
    pub fn takes_ns(&self) -> u64 {
        match self {
            ProgramStep::Sleep { ns } => *ns,
            step => step.accesses().saturating_mul(step.think_ns()),
        }
    }

    /// Its system call, if that takes `mmap_lock` for writing.
    pub fn call(&self) -> Option<Call> {
        match self {
            ProgramStep::Map { .. } => Some(Call::Mmap),
            ProgramStep::Unmap { .. } => Some(Call::Munmap),
            ProgramStep::Mprotect { .. } => Some(Call::Mprotect),
            ProgramStep::Fork => Some(Call::Fork),
            ProgramStep::Madvise { advice: Madvise::Flag(_), .. } => Some(Call::Madvise),
            _ => None,
        }
    }

    /// Whether it takes `mmap_lock` for writing.
    pub fn changes_mappings(&self) -> bool {
        self.call().is_some()
    }

    /// Whether it calls code.
    pub fn calls(&self) -> bool {
        matches!(self, ProgramStep::Touch { access: Access::Call, .. })
    }

    /// Whether it drops pages of its file from the page cache.
    pub fn drops_pages(&self) -> bool {
        let drops = matches!(self, ProgramStep::Fadvise { advice: Fadvise::DontNeed, .. });
        drops || self.pages_out()
    }

    /// Whether it splits folios that lie partly outside its range.
    pub fn splits_folios(&self) -> bool {
        self.pages_out() || matches!(self, ProgramStep::Madvise { advice: Madvise::Cold, .. })
    }

    /// Whether it evicts pages of its file as reclaim does.
    pub fn pages_out(&self) -> bool {
        matches!(self, ProgramStep::Madvise { advice: Madvise::PageOut, .. })
    }
}

impl Job {
    /// Index of the open file that `step` uses.
    pub fn step_open(&self, step: &ProgramStep) -> Option<usize> {
        match step {
            ProgramStep::Map { mapping }
            | ProgramStep::Unmap { mapping, .. }
            | ProgramStep::Madvise { mapping, .. }
            | ProgramStep::Mprotect { mapping, .. }
            | ProgramStep::Touch { mapping, .. } => Some(self.mappings[*mapping].open),
            ProgramStep::Fadvise { open, .. } | ProgramStep::Read { open, .. } => Some(*open),
            _ => None,
        }
    }

    /// Index of the file that `step` uses.
    pub fn step_file(&self, step: &ProgramStep) -> Option<usize> {
        self.step_open(step).map(|open| self.opens[open].file)
    }

    /// Describes `step` for reports.
    pub fn describe_step(&self, step: &ProgramStep) -> String {
        // The name of the table: all threads of a table do the same.
        let mapping = |number: &usize| &self.spec.mapping[self.tables.mappings[*number]].name;
        let open = |number: &usize| &self.spec.open[self.tables.opens[*number]].name;
        match step {
            ProgramStep::Map { mapping: number } => format!("map {}", mapping(number)),
            ProgramStep::Unmap { mapping: number, first, pages } => {
                format!("unmap {}{}", mapping(number), self.part(*number, *first, *pages))
            }
            ProgramStep::Touch { mapping: number, accesses, access, .. } => {
                let does = match access {
                    Access::Read => "touch",
                    Access::Write => "write",
                    Access::Call => "call",
                };
                format!("{does} {}: {}", mapping(number), accesses.pattern)
            }
            ProgramStep::Madvise { mapping: number, advice, first, pages } => {
                let range = self.part(*number, *first, *pages);
                format!("madvise {}: {}{range}", mapping(number), advice.name())
            }
            ProgramStep::Mprotect { mapping: number, protection, first, pages } => {
                let range = self.part(*number, *first, *pages);
                format!("mprotect {}: {}{range}", mapping(number), protection.name())
            }
            ProgramStep::Fork => "fork".to_string(),
            ProgramStep::Barrier { barrier } => format!("barrier {}", self.barriers[*barrier].name),
            ProgramStep::Sleep { ns } => format!("sleep {}", format_duration(*ns)),
            ProgramStep::Allocate { pages } => format!("allocate {}", self.pages_text(*pages)),
            ProgramStep::Free { pages } => format!("free {}", self.pages_text(*pages)),
            ProgramStep::Fadvise { open: of, advice, offset_bytes, len_bytes } => {
                let range = shown_range(*offset_bytes, *len_bytes);
                format!("fadvise {}: {}{range}", open(of), advice.name())
            }
            ProgramStep::Read { open: of, accesses, .. } => {
                let direct = if self.opens[*of].direct { " directly" } else { "" };
                let name = format!("{}{direct}", open(of));
                match &accesses.pattern {
                    Pattern::Listed(list) => format!("read {name}: {} listed", list.pages.len()),
                    pattern => format!("read {name}: {pattern}"),
                }
            }
        }
    }

    fn pages_text(&self, pages: PageCount) -> String {
        format_size(pages.bytes(self.page_size()))
    }

    /// Describes a part of a mapping; empty for the whole mapping.
    fn part(&self, mapping: usize, first: PageCount, pages: PageCount) -> String {
        let is_whole = pages == self.mappings[mapping].mapping.pages;
        let bytes = |pages: PageCount| pages.bytes(self.page_size());
        shown_range(bytes(first), (!is_whole).then(|| bytes(pages)))
    }
}
