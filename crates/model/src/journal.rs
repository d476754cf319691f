//! What a run notes of its own decisions as they go to the log.

use filemap_core::decision::{Decision, Log};
use filemap_core::units::{FileId, PageCount};

/// The log of a run, which counts on the way what the engine needs of it.
#[derive(Debug)]
pub struct Journal<'a, L> {
    log: &'a mut L,
    /// The file that decisions are about.
    file: FileId,
    /// Pages that fault-around mapped, until they are taken.
    mapped: PageCount,
}

impl<'a, L: Log> Journal<'a, L> {
    /// Nothing noted yet.
    pub fn new(log: &'a mut L) -> Journal<'a, L> {
        Journal { log, file: FileId::FIRST, mapped: PageCount(0) }
    }

    /// Decisions from here on belong to access `number`, which goes on in `file`.
    pub fn resume(&mut self, file: FileId, number: u64) {
        self.about(file);
        self.log.access(number);
    }

    /// Pages that fault-around mapped since the last call.
    pub fn take_mapped(&mut self) -> PageCount {
        std::mem::take(&mut self.mapped)
    }
}

impl<L: Log> Log for Journal<'_, L> {
    fn record(&mut self, decision: Decision) {
        if let Decision::MapPages { mapped, .. } = decision {
            self.mapped += mapped;
        }
        self.log.record(decision);
    }

    fn access(&mut self, number: u64) {
        self.log.access(number);
    }

    fn about(&mut self, file: FileId) {
        if file != self.file {
            self.file = file;
            self.log.record(Decision::File(file));
        }
    }
}
