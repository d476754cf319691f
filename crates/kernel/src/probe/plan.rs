//! The plan of one file, one mapping and one thread, as a process.

use std::fs;
use std::path::PathBuf;

use filemap_core::address::mapping::Split;
use filemap_core::address::vma::Advice;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::elf::Segment;

use super::access::Access;
use super::process::{Area, Process};
use super::step::{Step, ThreadPlan};
use crate::{Error, page_size};

/// The mapping of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Page of the file with which it begins.
    pub offset: PageIndex,
    /// Its length in pages, 1 or more: with segments up to the end of the last of them.
    pub pages: PageCount,
    /// Where it begins: this many pages after an address that a PMD entry begins at.
    pub shift: PageCount,
    /// What `madvise` is told.
    pub advice: Advice,
    /// Mapped executable.
    pub executable: bool,
    /// Mapped private; what is stored stays in the child.
    pub private: bool,
    /// Cut into VMAs: every second piece, from the second on, is protected differently.
    pub split: Option<Split>,
}

/// What a probe of one file does, through one mapping and in one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The file.
    pub path: PathBuf,
    /// How it is mapped.
    pub mapping: Mapping,
    /// The parts of the file that are mapped instead, each at its own place in the mapping, private
    /// and with its own protection. For none the mapping is of one part of the file.
    pub segments: Vec<Segment>,
    /// Accesses, counted and timed phase by phase.
    pub phases: Vec<Vec<Access>>,
    /// After each access, waits until nothing of the file is still being read. What the kernel
    /// does next depends on timing otherwise; the times of the phases mean nothing with it.
    pub settle: bool,
    /// Reports which pages of the mapping have a page-table entry in the end.
    pub report_mapped: bool,
    /// Whether a governor reads ahead in the mapping.
    pub is_governed: bool,
}

impl Plan {
    /// The process that does this.
    pub fn process(&self) -> Process {
        let step = |accesses: &Vec<Access>| Step::Accesses {
            open: 0,
            mapping: Some(0),
            accesses: accesses.clone(),
            think_ns: 0,
        };
        Process {
            files: vec![self.path.clone()],
            opens: vec![0],
            mappings: vec![self.area()],
            threads: vec![ThreadPlan::once(self.phases.iter().map(step).collect())],
            settle: self.settle,
            report_mapped: self.report_mapped,
            is_governed: self.is_governed,
            ..Process::default()
        }
    }

    /// The page of the file that page `page` of the mapping shows; none outside of what is mapped.
    pub fn file_page(&self, page: PageIndex) -> Option<PageIndex> {
        self.area().file_page(page)
    }

    /// Refuses a mapping beyond the end of the file, with a better reason than the kernel's.
    pub(super) fn check_length(&self) -> Result<(), Error> {
        let path = &self.path;
        let metadata = fs::metadata(path).map_err(|error| Error::os("open", path, error))?;
        let pages = self.area().end();
        if !metadata.is_file() || pages <= metadata.len().div_ceil(page_size()) {
            return Ok(());
        }
        Err(Error::Plan(format!(
            "the mapping ends after {pages} pages, and '{}' has {} bytes: map less",
            path.display(),
            metadata.len()
        )))
    }

    fn area(&self) -> Area {
        let Mapping { offset, pages, shift, advice, executable, private, split } = self.mapping;
        let stores = |access: &Access| matches!(access, Access::Store(_));
        Area {
            open: 0,
            offset,
            pages,
            shift,
            advice,
            executable,
            writable: self.phases.iter().flatten().any(stores),
            private: private || !self.segments.is_empty(),
            split,
            segments: self.segments.clone(),
            at_start: true,
        }
    }
}
