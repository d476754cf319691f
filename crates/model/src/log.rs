//! Decision logs: the log of a run, and the digest of a log.

use std::fmt;
use std::hash::{Hash, Hasher};

use filemap_core::decision::{Decision, Log, MissChange, TaskWait, TaskWork};
use filemap_core::units::{FileId, PageCount, PageIndex};

use crate::open::OpenFile;

/// Wraps the log of a run and records [`Decision::File`] whenever the file changes.
///
/// One type for all logs, so that the engine is compiled once, and here, where it is optimized.
pub struct RunLog<'a> {
    /// `None` where decisions are not used.
    log: Option<&'a mut dyn Log>,
    /// File of the last decision.
    file: FileId,
}

impl fmt::Debug for RunLog<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RunLog").field("file", &self.file).finish_non_exhaustive()
    }
}

impl<'a> RunLog<'a> {
    /// A log about the first file.
    pub fn new(log: &'a mut dyn Log) -> RunLog<'a> {
        RunLog { log: log.is_kept().then_some(log), file: FileId::FIRST }
    }

    /// Attributes the following decisions to access `number`, which continues through `open`.
    pub fn resume(&mut self, open: &OpenFile, number: u64) {
        self.about(open.file);
        self.through(open.number);
        self.access(number);
    }
}

impl Log for RunLog<'_> {
    fn is_kept(&self) -> bool {
        self.log.is_some()
    }

    fn record(&mut self, decision: Decision) {
        if let Some(log) = &mut self.log {
            log.record(decision);
        }
    }

    fn access(&mut self, number: u64) {
        if let Some(log) = &mut self.log {
            log.access(number);
        }
    }

    fn through(&mut self, open: u32) {
        if let Some(log) = &mut self.log {
            log.through(open);
        }
    }

    fn mapping(&mut self, mapping: Option<usize>) {
        if let Some(log) = &mut self.log {
            log.mapping(mapping);
        }
    }

    fn mmap_miss_changed(&mut self, change: MissChange) {
        if let Some(log) = &mut self.log {
            log.mmap_miss_changed(change);
        }
    }

    fn describe_access(&mut self, start: PageIndex, pages: PageCount) {
        if let Some(log) = &mut self.log {
            log.describe_access(start, pages);
        }
    }

    fn at(&mut self, task: usize, now_ns: u64) {
        if let Some(log) = &mut self.log {
            log.at(task, now_ns);
        }
    }

    fn waited(&mut self, task: usize, wait: TaskWait, from_ns: u64, until_ns: u64) {
        if let Some(log) = &mut self.log {
            log.waited(task, wait, from_ns, until_ns);
        }
    }

    fn ended(&mut self, task: usize, work: TaskWork, from_ns: u64, until_ns: u64) {
        if let Some(log) = &mut self.log {
            log.ended(task, work, from_ns, until_ns);
        }
    }

    fn requests_changed(&mut self, at_ns: u64, change: i64) {
        if let Some(log) = &mut self.log {
            log.requests_changed(at_ns, change);
        }
    }

    fn about(&mut self, file: FileId) {
        if file != self.file {
            self.file = file;
            self.record(Decision::File { file });
        }
    }
}

/// Hash of the decisions recorded so far: 64-bit FNV-1a over the fields' 64-bit values, identical
/// on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    state: u64,
    decisions: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Digest { state: 0xcbf2_9ce4_8422_2325, decisions: 0 }
    }
}

impl Digest {
    /// The hash of the decisions so far.
    pub fn value(&self) -> u64 {
        self.state
    }

    /// Number of decisions recorded.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }
}

impl Log for Digest {
    fn record(&mut self, decision: Decision) {
        self.decisions += 1;
        decision.hash(self);
    }
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.write(&value.to_le_bytes());
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
