//! The plan of one file, one mapping and one thread, as a process.

use std::fs;

use filemap_core::units::PageIndex;

use super::process::{Area, Process, Step};
use super::{Access, Mapping, Plan};
use crate::{Error, page_size};

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
            threads: vec![self.phases.iter().map(step).collect()],
            settle: self.settle,
            report_mapped: self.report_mapped,
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
