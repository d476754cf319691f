//! The inactive and the active list.

use std::ops::AddAssign;

use super::statistics::{Known, Refaults, Statistics};
use crate::address::reverse_map::ReverseMap;
use crate::decision::Log;
use crate::units::PageCount;

/// What one pass over the inactive list's tail did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// Pages evicted.
    pub evicted: PageCount,
    /// Those of them that were mapped: their entries are gone, and every CPU has to be told. 0
    /// where the scan did not ask for it.
    pub unmapped: PageCount,
    /// Pages that went round the inactive list, or to the active one.
    pub kept: PageCount,
    /// Those of them that were locked.
    pub locked: PageCount,
    /// Those of them that went to the active one.
    pub activated: PageCount,
}

impl AddAssign for Shrunk {
    fn add_assign(&mut self, other: Shrunk) {
        self.evicted += other.evicted;
        self.unmapped += other.unmapped;
        self.kept += other.kept;
        self.locked += other.locked;
        self.activated += other.activated;
    }
}

/// How far a pass over the inactive list's tail goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Until so many pages are evicted.
    pub goal: PageCount,
    /// Until so many pages were looked at.
    pub look: PageCount,
    /// Whether [`Shrunk::unmapped`] is wanted, which takes time to count.
    pub counts_unmapped: bool,
}

impl Scan {
    /// Over the whole list, where that takes it.
    pub const fn until(goal: PageCount) -> Scan {
        Scan { goal, look: PageCount(u64::MAX), counts_unmapped: false }
    }
}

/// The lists of one memory, to which folios of all files belong.
pub trait Lists {
    /// Pages on the inactive list.
    fn inactive(&self) -> PageCount;

    /// Pages on the active list.
    fn active(&self) -> PageCount;

    /// What reclaim knows of the lists.
    fn known(&self) -> Known;

    /// The same, to be changed.
    fn known_mut(&mut self) -> &mut Known;

    /// The sizes of the lists at the last flush.
    fn statistics(&self) -> Statistics {
        self.known().statistics
    }

    /// Refaults that went to the active list.
    fn refaults(&mut self) -> &mut Refaults {
        &mut self.known_mut().refaults
    }

    /// The statistics catch up with the lists and the refaults.
    fn flush_statistics(&mut self) {
        let statistics = Statistics { inactive: self.inactive(), active: self.active() };
        self.known_mut().flush(statistics);
    }

    /// Moves folios from the active list's tail to the inactive list's head until at least
    /// `pages` pages have moved; young executable ones stay ([`super::reclaim`]), each of which
    /// moves the clock of evictions ([`super::workingset`]).
    fn age(&mut self, pages: PageCount, mappings: &ReverseMap);

    /// Takes folios from the inactive list's tail as far as `scan` says, each folio that was on
    /// the list once at most; [`super::reclaim`] judges them. What becomes active moves the clock
    /// of evictions in the end.
    fn shrink(&mut self, scan: Scan, mappings: &ReverseMap, log: &mut impl Log) -> Shrunk;
}
