//! The log of a run, in which each decision belongs to a file and an access.

use filemap_core::decision::{Decision, Log, MissChange, Wait};
use filemap_core::units::{FileId, PageCount, PageIndex};

use crate::open::OpenFile;

/// The log of a run. A file is named where decisions begin to be about another one.
#[derive(Debug)]
pub struct Journal<'a, L> {
    log: &'a mut L,
    /// The file that decisions are about.
    file: FileId,
}

impl<'a, L: Log> Journal<'a, L> {
    /// Nothing noted yet.
    pub fn new(log: &'a mut L) -> Journal<'a, L> {
        Journal { log, file: FileId::FIRST }
    }

    /// Decisions from here on belong to access `number`, which goes on through `open`.
    pub fn resume(&mut self, open: &OpenFile, number: u64) {
        self.about(open.file);
        self.log.through(open.number);
        self.log.access(number);
    }
}

impl<L: Log> Log for Journal<'_, L> {
    const IS_KEPT: bool = L::IS_KEPT;

    fn record(&mut self, decision: Decision) {
        self.log.record(decision);
    }

    fn access(&mut self, number: u64) {
        self.log.access(number);
    }

    fn through(&mut self, open: u32) {
        self.log.through(open);
    }

    fn mapping(&mut self, mapping: Option<usize>) {
        self.log.mapping(mapping);
    }

    fn mmap_miss_changed(&mut self, change: MissChange) {
        self.log.mmap_miss_changed(change);
    }

    fn accessed(&mut self, start: PageIndex, pages: PageCount) {
        self.log.accessed(start, pages);
    }

    fn waited(&mut self, task: usize, wait: Wait, ns: u64) {
        self.log.waited(task, wait, ns);
    }

    fn about(&mut self, file: FileId) {
        if file != self.file {
            self.file = file;
            self.log.record(Decision::File { file });
        }
    }
}
