//! What a probe's child is: files that it opens, what it maps of them, and its threads.

use std::path::PathBuf;

use filemap_core::address::mapping::{Split, SplitProt};
use filemap_core::address::vma::Advice;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::elf::Segment;
use filemap_job::program::Protection;
use serde::{Deserialize, Serialize};

use super::access::{Access, MAX_READ_BYTES};
use super::step::{Step, ThreadPlan};
use crate::Error;

/// A child process: its files, open file descriptions, mappings and threads. Where threads are of
/// other processes, it forks those when it has opened and mapped all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Paths of the files: at least one.
    #[serde(with = "super::wire::paths")]
    pub files: Vec<PathBuf>,
    /// What it opens, each a file by its number. Every one has readahead state of its own.
    pub opens: Vec<usize>,
    /// What it maps.
    pub mappings: Vec<Area>,
    /// Pages that it holds beside the files, touched and locked before the first step.
    pub anonymous: PageCount,
    /// What each thread does: at least one.
    pub threads: Vec<ThreadPlan>,
    /// How many threads have to come to each barrier before all go on.
    pub barriers: Vec<usize>,
    /// How many CPUs it may run on; all that it has if not given.
    pub cpus: Option<u64>,
    /// After each access, waits until nothing of its file is still being read. What the kernel
    /// does next depends on timing otherwise; the times of the steps mean nothing with it.
    pub settle: bool,
    /// Reports which pages of the first mapping have a page-table entry in the end.
    pub report_mapped: bool,
    /// Whether a governor reads ahead in its mappings.
    pub is_governed: bool,
}

/// A mapping of an open file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    /// The open file, by its number.
    pub open: usize,
    /// Page of the file with which it begins.
    pub offset: PageIndex,
    /// Its length in pages, 1 or more: with segments up to the end of the last of them. It may end
    /// behind its file.
    pub pages: PageCount,
    /// Where it begins: this many pages after an address that a PMD entry begins at.
    pub shift: PageCount,
    /// What `madvise` is told.
    pub advice: Advice,
    /// Mapped executable.
    pub executable: bool,
    /// Mapped writable.
    pub writable: bool,
    /// Mapped private; what is stored stays in the child.
    pub private: bool,
    /// Cut into VMAs: every second piece, from the second on, is protected differently.
    pub split: Option<Split>,
    /// The parts of the file that are mapped instead, each at its own place in the mapping, private
    /// and with its own protection. For none the mapping is of one part of the file.
    pub segments: Vec<Segment>,
    /// Whether it is there before the first step.
    pub at_start: bool,
}

impl Area {
    /// The page of the file that page `page` of the mapping shows; none outside of what is mapped.
    pub fn file_page(&self, page: PageIndex) -> Option<PageIndex> {
        let within = |start: u64, pages: u64, offset: PageIndex| {
            let into = page.0.checked_sub(start).filter(|into| *into < pages)?;
            Some(PageIndex(offset.0 + into))
        };
        if self.segments.is_empty() {
            return within(0, self.pages.0, self.offset);
        }
        let mut segments = self.segments.iter();
        segments.find_map(|part| within(part.start.0, part.pages.0, part.offset))
    }

    /// A mapping of one page, which can be called if it is `executable`.
    pub(super) fn of_one_page(executable: bool) -> Area {
        Area {
            open: 0,
            offset: PageIndex(0),
            pages: PageCount(1),
            shift: PageCount(0),
            advice: Advice::NORMAL,
            executable,
            writable: true,
            private: true,
            split: None,
            segments: Vec::new(),
            at_start: false,
        }
    }

    /// Whether a piece of it is writable that shares its pages with the file.
    pub(super) fn shares_writes(&self) -> bool {
        let writes = self.split.is_some_and(|split| split.prot == SplitProt::Write);
        writes && !self.private && self.segments.is_empty()
    }

    /// The page of the file behind the last one that is mapped.
    pub(super) fn end(&self) -> u64 {
        let ends = self.segments.iter().map(|segment| segment.range().end.0);
        ends.max().unwrap_or(self.offset.0.saturating_add(self.pages.0))
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Plan(why));
        if self.pages.0 == 0 {
            return refuse("a mapping of 0 pages: map at least 1".into());
        }
        if self.split.is_some_and(|split| split.pages.0 == 0) {
            return refuse("pieces of 0 pages: use at least 1".into());
        }
        let pages = self.pages;
        let inside = |segment: &Segment| {
            segment.pages.0 > 0 && segment.start.0.saturating_add(segment.pages.0) <= pages.0
        };
        if !self.segments.iter().all(inside) {
            return refuse(format!("a segment outside the mapping's {pages} pages"));
        }
        Ok(())
    }

    fn check_access(&self, access: Access) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Plan(why));
        let Area { pages, private, executable, .. } = self;
        let (Access::Touch(page) | Access::Store(page) | Access::Call(page)) = access else {
            return Ok(());
        };
        if self.file_page(page).is_none() {
            return refuse(match self.segments.is_empty() {
                true => format!("page {page} is not below the mapping's {pages} pages"),
                false => format!("page {page} of the mapping lies in no segment"),
            });
        }
        match access {
            Access::Store(page) if !private || !self.segments.is_empty() => {
                refuse(format!("a store to page {page} needs a private mapping"))
            }
            Access::Call(page) if !executable || !self.segments.is_empty() => {
                refuse(format!("a call of page {page} needs an executable mapping"))
            }
            Access::Call(_) if cfg!(not(target_arch = "x86_64")) => Err(Error::unavailable(
                "calls of machine code on this architecture",
                "run it on x86-64, or give --on model",
            )),
            _ => Ok(()),
        }
    }
}

impl Process {
    pub(super) fn check(&self) -> Result<(), Error> {
        self.mappings.iter().try_for_each(Area::check)?;
        for step in self.steps() {
            let Step::Accesses { mapping, accesses, .. } = step else { continue };
            for access in accesses {
                check_read(*access)?;
                if let Some(mapping) = mapping {
                    self.mappings[*mapping].check_access(*access)?;
                }
            }
        }
        Ok(())
    }

    /// Every step, whoever takes it.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.threads.iter().flat_map(|thread| &thread.steps)
    }

    /// Every access, whoever makes it.
    pub(super) fn accesses(&self) -> impl Iterator<Item = &Access> {
        self.steps().flat_map(Step::accesses)
    }

    /// How many processes there are: at least one, and those of threads.
    pub(super) fn processes(&self) -> usize {
        self.threads.iter().map(|thread| thread.process + 1).max().unwrap_or(1)
    }

    /// The threads of process `number`, by their numbers.
    pub(super) fn threads_of(&self, number: usize) -> impl Iterator<Item = usize> {
        let of_it = move |(_, thread): &(usize, &ThreadPlan)| thread.process == number;
        self.threads.iter().enumerate().filter(of_it).map(|(thread, _)| thread)
    }

    /// Whether there is one thread, and no process beside its own.
    pub(crate) fn is_alone(&self) -> bool {
        self.threads.len() == 1 && self.processes() == 1
    }

    /// Whether an open file, by its number, is opened for writing as well: a shared mapping of it
    /// can be made writable only then.
    pub(super) fn opens_for_writing(&self, open: usize) -> bool {
        let protects = |number: usize| {
            let makes_writable = |step: &Step| match step {
                Step::Mprotect { mapping, protection, .. } => {
                    *mapping == number && *protection == Protection::Write
                }
                _ => false,
            };
            !self.mappings[number].private && self.steps().any(makes_writable)
        };
        let of_open = self.mappings.iter().enumerate().filter(|(_, area)| area.open == open);
        of_open.into_iter().any(|(number, area)| area.shares_writes() || protects(number))
    }
}

fn check_read(access: Access) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::Plan(why));
    match access {
        Access::Read { bytes, .. } if bytes > MAX_READ_BYTES => {
            refuse(format!("a read of {bytes} bytes: at most {MAX_READ_BYTES}"))
        }
        Access::Read { offset, .. } if offset >> 62 != 0 => {
            refuse(format!("a read at {offset}: at most {}", (1u64 << 62) - 1))
        }
        _ => Ok(()),
    }
}
