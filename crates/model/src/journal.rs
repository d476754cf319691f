//! The log of a run, in which each decision belongs to a file and an access.

use filemap_core::decision::{Decision, Log};
use filemap_core::units::FileId;

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

    /// Decisions from here on belong to access `number`, which goes on in `file`.
    pub fn resume(&mut self, file: FileId, number: u64) {
        self.about(file);
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

    fn about(&mut self, file: FileId) {
        if file != self.file {
            self.file = file;
            self.log.record(Decision::File(file));
        }
    }
}
