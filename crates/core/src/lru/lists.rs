//! The inactive and the active list.

use super::statistics::Statistics;
use crate::address::reverse_map::ReverseMap;
use crate::decision::Log;
use crate::units::PageCount;

/// What one pass over the inactive list's tail did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// Pages evicted.
    pub evicted: PageCount,
    /// Pages that went round the inactive list, or to the active one.
    pub kept: PageCount,
    /// Those of them that went to the active one.
    pub activated: PageCount,
}

/// The lists of one memory, to which folios of all files belong.
pub trait Lists {
    /// Pages on the inactive list.
    fn inactive(&self) -> PageCount;

    /// Pages on the active list.
    fn active(&self) -> PageCount;

    /// The sizes of the lists at the last flush.
    fn statistics(&self) -> Statistics;

    /// The statistics catch up with the lists.
    fn flush_statistics(&mut self);

    /// Moves folios from the active list's tail to the inactive list's head until at least
    /// `pages` pages have moved; young executable ones stay ([`super::reclaim`]), each of which
    /// moves the clock of evictions ([`super::workingset`]).
    fn age(&mut self, pages: PageCount, mappings: &ReverseMap);

    /// Takes folios from the inactive list's tail until `goal` pages are evicted or each folio
    /// that was on the list has been looked at once; [`super::reclaim`] judges them. What becomes
    /// active moves the clock of evictions in the end.
    fn shrink(&mut self, goal: PageCount, mappings: &ReverseMap, log: &mut impl Log) -> Shrunk;
}
