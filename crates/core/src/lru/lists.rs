//! The inactive and the active list of a memory.

use std::ops::AddAssign;

use super::statistics::{ListSizes, LruvecStats, Refaults};
use crate::address::reverse_map::ReverseMap;
use crate::decision::Log;
use crate::units::PageCount;

/// Results of a scan of the inactive list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShrinkStats {
    /// Pages evicted.
    pub evicted: PageCount,
    /// Evicted pages that were mapped, which requires a TLB flush on all CPUs. 0 unless the scan
    /// counts them.
    pub unmapped: PageCount,
    /// Pages kept: rotated or activated.
    pub kept: PageCount,
    /// Kept pages that were locked.
    pub locked: PageCount,
    /// Kept pages that were activated.
    pub activated: PageCount,
}

impl AddAssign for ShrinkStats {
    fn add_assign(&mut self, other: ShrinkStats) {
        self.evicted += other.evicted;
        self.unmapped += other.unmapped;
        self.kept += other.kept;
        self.locked += other.locked;
        self.activated += other.activated;
    }
}

/// Limits of a scan of the inactive list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Stop after this many evicted pages.
    pub goal: PageCount,
    /// Stop after this many scanned pages.
    pub max_scan: PageCount,
    /// Whether to count [`ShrinkStats::unmapped`], which takes time.
    pub counts_unmapped: bool,
}

impl Scan {
    /// Scans the whole list if necessary to reach `goal`.
    pub const fn until(goal: PageCount) -> Scan {
        Scan { goal, max_scan: PageCount(u64::MAX), counts_unmapped: false }
    }
}

/// The LRU lists of one memory (`lruvec`), with folios of all files.
pub trait LruLists {
    /// Pages on the inactive list.
    fn inactive(&self) -> PageCount;

    /// Pages on the active list.
    fn active(&self) -> PageCount;

    /// The statistics reclaim uses.
    fn lruvec_stats(&self) -> LruvecStats;

    /// The statistics, mutable.
    fn lruvec_stats_mut(&mut self) -> &mut LruvecStats;

    /// List sizes as of the last flush.
    fn flushed_sizes(&self) -> ListSizes {
        self.lruvec_stats().sizes
    }

    /// Activated refaults.
    fn refaults(&mut self) -> &mut Refaults {
        &mut self.lruvec_stats_mut().refaults
    }

    /// Flushes the statistics: they catch up with the lists and the refaults.
    fn flush_statistics(&mut self) {
        let statistics = ListSizes { inactive: self.inactive(), active: self.active() };
        self.lruvec_stats_mut().flush(statistics);
    }

    /// Moves folios from the tail of the active list to the head of the inactive list until at
    /// least `pages` pages have moved. Young executable folios are rotated instead
    /// ([`super::reclaim`]), which advances the refault clock ([`super::workingset`]).
    fn age(&mut self, pages: PageCount, mappings: &ReverseMap);

    /// Scans the inactive list from the tail as far as `scan` says, each folio at most once, and
    /// applies the decisions of [`super::reclaim`]. Activations advance the refault clock at the
    /// end.
    fn shrink(&mut self, scan: Scan, mappings: &ReverseMap, log: &mut impl Log) -> ShrinkStats;
}
