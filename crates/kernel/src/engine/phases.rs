//! What each phase of a run cost, as far as the kernel tells.

use filemap_job::Counters;

use crate::page_size;
use crate::probe::{CacheCounts, PhaseCost};

/// What `cost` says of pages, where `before` was left by the phase before. Each page of the file
/// that the phase is about takes one of storage where it is `whole`. At most `paged_out` of those
/// that are evicted by its end were paged out by the run itself. The phase has `dropped` so many.
pub(super) fn phase_counters(
    cost: &PhaseCost,
    before: Option<CacheCounts>,
    whole: bool,
    (paged_out, dropped): (u64, u64),
) -> Counters {
    let storage = cost.read_bytes.filter(|_| whole).map(|bytes| bytes.div_ceil(page_size()));
    let grown = cost.cache.zip(before).map(|(now, then)| {
        let cached = now.cached + dropped;
        (now, cached.checked_sub(then.cached))
    });
    let added = match grown {
        // Nothing else ever left: what is there came in.
        Some((CacheCounts { evicted, .. }, Some(more)))
            if evicted <= paged_out && storage.is_none_or(|read| read == more) =>
        {
            Some(more)
        }
        _ => storage,
    };
    let evicted = added
        .zip(cost.cache.zip(before))
        .and_then(|(added, (now, then))| (then.cached + added).checked_sub(now.cached));
    Counters {
        data_pages_read: added,
        bytes_read: cost.read_bytes,
        minor_faults: Some(cost.minor),
        evicted_pages: evicted,
        ..Counters::default()
    }
}

/// What `cost` says of reads that go past the cache, which adds nothing to it.
pub(super) fn direct_counters(cost: &PhaseCost) -> Counters {
    Counters {
        data_pages_read: Some(0),
        bytes_read: cost.read_bytes,
        minor_faults: Some(cost.minor),
        evicted_pages: Some(0),
        ..Counters::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(read: u64, cached: u64, evicted: u64, before: u64, whole: bool) -> [Option<u64>; 2] {
        let cost = PhaseCost {
            read_bytes: Some(read * page_size()),
            cache: Some(CacheCounts { cached, evicted }),
            ..PhaseCost::default()
        };
        let before = Some(CacheCounts { cached: before, evicted: 0 });
        let counters = phase_counters(&cost, before, whole, (0, 0));
        [counters.data_pages_read, counters.evicted_pages]
    }

    #[test]
    fn what_came_in_is_counted_by_phase() {
        assert_eq!(pages(30, 40, 0, 10, true), [Some(30), Some(0)]);
        // Holes come from no storage.
        assert_eq!(pages(0, 40, 0, 10, false), [Some(30), Some(0)]);
        // Under a limit storage says what came in, and what is there how much of it left.
        assert_eq!(pages(30, 15, 25, 10, true), [Some(30), Some(25)]);
        assert_eq!(pages(0, 15, 25, 10, false), [None, None]);
    }

    #[test]
    fn what_is_paged_out_left_by_the_run_itself() {
        let after = |cached, evicted, own| {
            let cost =
                PhaseCost { cache: Some(CacheCounts { cached, evicted }), ..PhaseCost::default() };
            let before = Some(CacheCounts { cached: 50, evicted: 0 });
            let counters = phase_counters(&cost, before, false, own);
            [counters.data_pages_read, counters.evicted_pages]
        };
        assert_eq!(after(20, 30, (30, 30)), [Some(0), Some(30)]);
        assert_eq!(after(60, 20, (30, 0)), [Some(10), Some(0)]);
        assert_eq!(after(60, 31, (30, 0)), [None, None]);
    }

    #[test]
    fn what_is_not_told_is_unknown() {
        let nothing = phase_counters(&PhaseCost::default(), None, true, (0, 0));
        assert_eq!((nothing.data_pages_read, nothing.evicted_pages), (None, None));
    }
}
