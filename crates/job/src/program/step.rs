//! The steps of threads: what there is, and what each is about.

use std::sync::Arc;

use filemap_core::address::protection::Protection;
use filemap_core::units::PageCount;
use serde::{Deserialize, Serialize};

use super::advice::shown_range;
use super::{Access, Fadvise, Job, Madvise};
use crate::parts::{Pattern, Phase};
use crate::size::format_duration;
use crate::waits::Call;
use crate::xorshift::DEFAULT_SEED;

/// What a thread does next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramStep {
    /// `mmap(2)` of a mapping.
    Map {
        /// The mapping, as an index.
        mapping: usize,
    },
    /// `munmap(2)` of a mapping, or of a part of it.
    Unmap {
        /// The mapping, as an index.
        mapping: usize,
        /// Its first page, counted from the mapping's first.
        first: PageCount,
        /// Its pages: at least 1.
        pages: PageCount,
    },
    /// Touches pages through a mapping.
    Touch {
        /// The mapping, as an index.
        mapping: usize,
        /// Which of its pages.
        accesses: Phase,
        /// What it does to each.
        access: Access,
        /// Time between two accesses.
        think_ns: u64,
    },
    /// `madvise(2)` for a part of a mapping.
    Madvise {
        /// The mapping, as an index.
        mapping: usize,
        /// What it says.
        advice: Madvise,
        /// Its first page, counted from the mapping's first.
        first: PageCount,
        /// Its pages: at least 1.
        pages: PageCount,
    },
    /// `mprotect(2)` of a part of a mapping.
    Mprotect {
        /// The mapping, as an index.
        mapping: usize,
        /// What it may be used for then.
        protection: Protection,
        /// Its first page, counted from the mapping's first.
        first: PageCount,
        /// Its pages: at least 1.
        pages: PageCount,
    },
    /// `fork(2)` of a child that ends at once, and is waited for.
    Fork,
    /// Waits until all threads of a barrier have come.
    Barrier {
        /// The barrier, as an index.
        barrier: usize,
    },
    /// Sleeps.
    Sleep {
        /// For how long.
        ns: u64,
    },
    /// `posix_fadvise(2)` for an open file.
    Fadvise {
        /// The open file, as an index.
        open: usize,
        /// What it says.
        advice: Fadvise,
        /// Where the part begins that it is about, in bytes.
        offset_bytes: u64,
        /// How long that is; `None` is up to the end of the file.
        len_bytes: Option<u64>,
    },
    /// Reads with `read(2)`.
    Read {
        /// The open file, as an index.
        open: usize,
        /// Where the part begins that is read, in bytes.
        offset_bytes: u64,
        /// How long it is, up to the end of the file.
        len_bytes: u64,
        /// Which blocks of it.
        accesses: Phase,
        /// Time between two reads.
        think_ns: u64,
    },
}

impl ProgramStep {
    /// Reads a byte of each of these pages of a mapping, in order.
    pub fn touch(mapping: usize, pages: Vec<u64>) -> ProgramStep {
        let accesses = Phase::listed(Arc::new(pages), DEFAULT_SEED, 1);
        ProgramStep::Touch { mapping, accesses, access: Access::Read, think_ns: 0 }
    }

    /// The mapping that it is about.
    pub fn mapping(&self) -> Option<usize> {
        match self {
            ProgramStep::Map { mapping } | ProgramStep::Unmap { mapping, .. } => Some(*mapping),
            step => step.touched(),
        }
    }

    /// The mapping whose pages it touches, advises or protects, as an index.
    pub fn touched(&self) -> Option<usize> {
        match self {
            ProgramStep::Touch { mapping, .. }
            | ProgramStep::Madvise { mapping, .. }
            | ProgramStep::Mprotect { mapping, .. } => Some(*mapping),
            _ => None,
        }
    }

    /// Its accesses, where it makes any.
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

    /// How many accesses it makes.
    pub fn accesses(&self) -> u64 {
        self.phase().map_or(0, |accesses| accesses.accesses)
    }

    /// Whether it leads to decisions about what is read.
    pub fn decides(&self) -> bool {
        match self {
            ProgramStep::Madvise { advice, .. } => {
                matches!(advice, Madvise::WillNeed | Madvise::PopulateRead)
            }
            ProgramStep::Fadvise { advice, .. } => *advice == Fadvise::WillNeed,
            step => step.phase().is_some(),
        }
    }

    /// Time between two of its accesses, in nanoseconds.
    pub fn think_ns(&self) -> u64 {
        match self {
            ProgramStep::Touch { think_ns, .. } | ProgramStep::Read { think_ns, .. } => *think_ns,
            _ => 0,
        }
    }

    /// Time that it takes at least, in nanoseconds: it sleeps, or lets time go by between its
    /// accesses.
    pub fn takes_ns(&self) -> u64 {
        match self {
            ProgramStep::Sleep { ns } => *ns,
            step => step.accesses().saturating_mul(step.think_ns()),
        }
    }

    /// The call that it makes, where that takes `mmap_lock` to write.
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

    /// Whether it takes `mmap_lock` to write.
    pub fn changes_mappings(&self) -> bool {
        self.call().is_some()
    }

    /// Whether it calls code.
    pub fn calls(&self) -> bool {
        matches!(self, ProgramStep::Touch { access: Access::Call, .. })
    }

    /// Whether it drops pages of its file from the cache.
    pub fn drops(&self) -> bool {
        let drops = matches!(self, ProgramStep::Fadvise { advice: Fadvise::DontNeed, .. });
        drops || self.pages_out()
    }

    /// Whether it splits folios that it is for in part.
    pub fn splits_folios(&self) -> bool {
        self.pages_out() || matches!(self, ProgramStep::Madvise { advice: Madvise::Cold, .. })
    }

    /// Whether it evicts pages of its file as reclaim does.
    pub fn pages_out(&self) -> bool {
        matches!(self, ProgramStep::Madvise { advice: Madvise::PageOut, .. })
    }
}

impl Job {
    /// The open file that `step` is about, as an index.
    pub fn open_of(&self, step: &ProgramStep) -> Option<usize> {
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

    /// The file that `step` is about, as an index.
    pub fn file_of(&self, step: &ProgramStep) -> Option<usize> {
        self.open_of(step).map(|open| self.opens[open].file)
    }

    /// What `step` does, in words.
    pub fn shown(&self, step: &ProgramStep) -> String {
        // That of its table: what one thread of a table does, all of them do.
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

    /// A part of a mapping in words: nothing where it is all of it.
    fn part(&self, mapping: usize, first: PageCount, pages: PageCount) -> String {
        let is_whole = pages == self.mappings[mapping].mapping.pages;
        let bytes = |pages: PageCount| pages.bytes(self.page_size());
        shown_range(bytes(first), (!is_whole).then(|| bytes(pages)))
    }
}
