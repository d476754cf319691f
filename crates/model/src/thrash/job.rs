//! What is run.

use filemap_core::readahead::Limits;
use filemap_core::rules::{Arch, Rules};
use filemap_core::units::{Order, PageCount};

use super::costs::Costs;
use super::ending::Error;
use super::mechanisms::Mechanisms;
use crate::profile::Device;

/// When a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After so many nanoseconds.
    Elapsed(u64),
    /// When all threads together have completed so many rounds, or after an hour.
    Rounds(u64),
}

/// Rounds that have not been completed after so many nanoseconds are not waited for: one hour.
pub const ROUNDS_WITHIN_NS: u64 = 3_600_000_000_000;

/// Threads of one process, each of which maps a file of its own, reads every page, unmaps it, and
/// begins again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thrash {
    /// Rules of the kernel, with the series.
    pub rules: Rules,
    /// The architecture.
    pub arch: Arch,
    /// Threads that read.
    pub threads: usize,
    /// CPUs.
    pub cpus: usize,
    /// Pages of each file.
    pub file_pages: PageCount,
    /// The files have no blocks on the device.
    pub sparse: bool,
    /// Readahead size.
    pub read_ahead: PageCount,
    /// Fault-around size; 1 is off.
    pub fault_around: PageCount,
    /// Largest folio of the filesystem; `None` where it has base pages only.
    pub max_folio: Option<Order>,
    /// `memory.high`.
    pub high: Option<PageCount>,
    /// `memory.max`.
    pub max: Option<PageCount>,
    /// Threads that change the protection of other mappings of the process.
    pub writers: usize,
    /// The files lie in one large VMA, to which the writers write too: its lock is that of every
    /// fault. It stays mapped. Instead of unmapping its part, each thread drops the pages from it
    /// (MADV_DONTNEED), for which it waits for no lock here. Readahead goes on in each part as if
    /// that were a file of its own.
    pub one_vma: bool,
    /// Threads of other processes that compute all the time.
    pub noise_threads: usize,
    /// When it ends.
    pub until: Until,
    /// What happens before this is not counted.
    pub warm_up_ns: u64,
    /// The threads begin at some time before this.
    pub stagger_ns: u64,
    /// Where they begin.
    pub seed: u64,
    /// What is at work.
    pub mechanisms: Mechanisms,
    /// What things cost.
    pub costs: Costs,
    /// The device that files which are not sparse lie on.
    pub device: Device,
}

impl Thrash {
    /// The number that decides how the job behaves, in percent: what all threads read ahead, of
    /// what the cgroup holds.
    pub fn pressure_percent(&self) -> Option<u64> {
        let holds = self.high.or(self.max)?;
        Some(self.threads as u64 * self.read_ahead.0 * 100 / holds.0.max(1))
    }

    /// The most pages that the cache can hold, or about so many: what `memory.max` lets it.
    pub fn capacity(&self) -> Option<PageCount> {
        self.max.or(self.high.map(|high| high + high))
    }

    /// When it ends at the latest.
    pub(super) fn end_ns(&self) -> u64 {
        match self.until {
            Until::Elapsed(ns) => ns,
            Until::Rounds(_) => ROUNDS_WITHIN_NS,
        }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            rules: self.rules,
            arch: self.arch,
            ra_pages: self.read_ahead,
            io_pages: PageCount(self.device.io_bytes / self.arch.page_size),
            fault_around: self.fault_around,
            max_folio: self.max_folio,
            file_pages: self.file_pages,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let whole = [
            ("threads", self.threads as u64),
            ("cpus", self.cpus as u64),
            ("pages of a file", self.file_pages.0),
            ("fault-around", self.fault_around.0),
        ];
        for (what, value) in whole {
            if value == 0 {
                return Err(Error::Zero { what });
            }
        }
        match self.until {
            Until::Elapsed(ns) if ns <= self.warm_up_ns => {
                return Err(Error::Zero { what: "time" });
            }
            Until::Rounds(0) => return Err(Error::Zero { what: "rounds" }),
            _ => {}
        }
        if let (Some(high), Some(max)) = (self.high, self.max)
            && high > max
        {
            return Err(Error::HighAboveMax { high: high.0, max: max.0 });
        }
        let window = self.read_ahead.0.max(1);
        for (limit, what) in [(self.high, "memory.high"), (self.max, "memory.max")] {
            if let Some(limit) = limit.filter(|limit| limit.0 < window) {
                return Err(Error::BelowWindow { what, limit: limit.0, window });
            }
        }
        Ok(())
    }
}
