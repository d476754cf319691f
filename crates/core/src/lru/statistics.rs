//! The statistics of a memory cgroup: what reclaim and refaults know of the lists' sizes.

use crate::units::PageCount;

/// Between two flushes, in nanoseconds (`FLUSH_TIME`, 6.12 and 6.18).
pub const FLUSH_NS: u64 = 2_000_000_000;

/// Sizes of the lists as of the last flush: of empty lists before the first.
///
/// Stands for `lruvec_page_state` after `flush_memcg_stats_dwork`, 6.12 and 6.18: counts are kept
/// for each CPU, and summed up every two seconds, for all cgroups. Whoever reclaims asks for no
/// flush of its own while that is on time. Test: `tests/statistics.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Pages on the inactive list.
    pub inactive: PageCount,
    /// Pages on the active list.
    pub active: PageCount,
}

/// What reclaim and refaults know of the lists of a memory cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Their sizes.
    pub statistics: Statistics,
    /// Refaults that went to the active one.
    pub refaults: Refaults,
}

impl Known {
    /// The statistics are flushed: the lists are as `statistics` says.
    pub fn flush(&mut self, statistics: Statistics) {
        self.statistics = statistics;
        self.refaults.flush();
    }
}

/// Refaults that went to the active list, in pages: as they are, as of the last flush, and as the
/// last reclaim knew them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refaults {
    counted: u64,
    flushed: u64,
    known: u64,
}

impl Refaults {
    /// So many pages more.
    pub fn count(&mut self, pages: PageCount) {
        self.counted += pages.0;
    }

    fn flush(&mut self) {
        self.flushed = self.counted;
    }

    /// Whether a flush since the last reclaim saw any: then this reclaim ages the active list.
    ///
    /// Mirrors `prepare_scan_control`, 6.12 and 6.18. Test: `tests/statistics.rs`.
    pub fn are_new(&self) -> bool {
        self.flushed != self.known
    }

    /// A reclaim has ended.
    ///
    /// Mirrors `snapshot_refaults`, 6.12 and 6.18. Test: `tests/statistics.rs`.
    pub fn end_reclaim(&mut self) {
        self.known = self.flushed;
    }
}
