//! Memory cgroup statistics: list sizes and refaults as reclaim sees them.

use crate::units::PageCount;

/// Interval between flushes in nanoseconds (`FLUSH_TIME`, 6.12 and 6.18).
pub const FLUSH_INTERVAL_NS: u64 = 2_000_000_000;

/// List sizes as of the last flush; zero before the first.
///
/// Stands for `lruvec_page_state` after `flush_memcg_stats_dwork`, 6.12 and 6.18: counts are kept
/// per CPU and summed up every two seconds for all cgroups. Reclaim does not request a flush of its
/// own while the periodic one is on time. Test: `tests/statistics.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListSizes {
    /// Pages on the inactive list.
    pub inactive: PageCount,
    /// Pages on the active list.
    pub active: PageCount,
}

/// Statistics of the lists of a memory cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LruvecStats {
    /// Flushed list sizes.
    pub sizes: ListSizes,
    /// Activated refaults.
    pub refaults: Refaults,
}

impl LruvecStats {
    /// Flushes the statistics, given the current list sizes.
    pub fn flush(&mut self, statistics: ListSizes) {
        self.sizes = statistics;
        self.refaults.flush();
    }
}

/// Pages of activated refaults: current, as of the last flush, and as of the last reclaim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refaults {
    counted: u64,
    flushed: u64,
    known: u64,
}

impl Refaults {
    /// Counts activated refaults.
    pub fn count(&mut self, pages: PageCount) {
        self.counted += pages.0;
    }

    fn flush(&mut self) {
        self.flushed = self.counted;
    }

    /// Whether the flushed count has changed since the last reclaim: then this reclaim ages the
    /// active list.
    ///
    /// Mirrors `prepare_scan_control`, 6.12 and 6.18. Test: `tests/statistics.rs`.
    pub fn are_new(&self) -> bool {
        self.flushed != self.known
    }

    /// Takes a snapshot at the end of a reclaim.
    ///
    /// Mirrors `snapshot_refaults`, 6.12 and 6.18. Test: `tests/statistics.rs`.
    pub fn end_reclaim(&mut self) {
        self.known = self.flushed;
    }
}
