//! Page counts of a file after a run, and after each phase.

use filemap_job::Counters;

use crate::page_size;
use crate::probe::{CacheCounts, PhaseCost};
use crate::residency::CacheStat;

/// The pages of one file after a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileCounts {
    /// Bytes read from storage.
    pub(super) read_bytes: Option<u64>,
    /// Pages cached at the end.
    pub(super) cached_pages: Option<u64>,
    /// Pages evicted and not read again.
    evicted_pages: Option<u64>,
    /// Whether each page of the file occupies a page of storage (no holes).
    whole: bool,
    /// Pages that the run itself dropped.
    dropped: DroppedPages,
    /// Maximum number of dropped pages that the kernel counts as evicted: MADV_PAGEOUT evicts like
    /// reclaim, POSIX_FADV_DONTNEED is not counted.
    paged_out: u64,
    /// Pages cached at the beginning.
    start_pages: u64,
}

/// Pages of a file that the run itself dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DroppedPages {
    /// The run drops no pages.
    #[default]
    Nothing,
    /// This many pages; `None` if others were read meanwhile.
    Pages(Option<u64>),
}

impl FileCounts {
    pub(super) fn new(
        read_bytes: Option<u64>,
        stat: Option<CacheStat>,
        whole: bool,
        dropped: DroppedPages,
        paged_out: u64,
    ) -> FileCounts {
        FileCounts {
            read_bytes,
            cached_pages: stat.map(|stat| stat.cached),
            evicted_pages: stat.map(|stat| stat.evicted),
            whole,
            dropped,
            paged_out,
            start_pages: 0,
        }
    }

    /// The counts of a file that was cached like `start` at the beginning.
    pub(super) fn with_start(self, start: Option<CacheStat>) -> FileCounts {
        let Some(CacheStat { cached, evicted, .. }) = start else { return self };
        let evicted_pages = self.evicted_pages.map(|pages| pages.saturating_sub(evicted));
        FileCounts { start_pages: cached, evicted_pages, ..self }
    }

    /// Whether reclaim evicted pages.
    fn has_evictions(&self) -> bool {
        self.evicted_pages.is_some_and(|pages| pages > self.paged_out)
    }

    /// Pages read from storage, if the file has no holes.
    fn storage_pages(&self) -> Option<u64> {
        self.read_bytes.filter(|_| self.whole).map(|bytes| bytes.div_ceil(page_size()))
    }

    /// Pages of the file added to the cache.
    pub(super) fn pages_added(&self) -> Option<u64> {
        match (self.evicted_pages, self.cached_pages, self.dropped) {
            (Some(0), Some(cached), DroppedPages::Nothing) if !self.is_disturbed() => {
                Some(cached.saturating_sub(self.start_pages))
            }
            (Some(_), Some(cached), DroppedPages::Pages(Some(dropped)))
                if !self.whole && !self.has_evictions() =>
            {
                Some((cached + dropped).saturating_sub(self.start_pages))
            }
            _ => self.storage_pages(),
        }
    }

    /// Pages of the file that left the cache.
    pub(super) fn pages_evicted(&self) -> Option<u64> {
        let added = self.pages_added().zip(self.cached_pages);
        added.map(|(added, cached)| (added + self.start_pages).saturating_sub(cached))
    }

    /// Whether a file that fits into memory lost pages, or has pages that the run did not read.
    pub(super) fn is_disturbed(&self) -> bool {
        if self.dropped != DroppedPages::Nothing {
            return self.has_evictions();
        }
        let read_other = match (self.storage_pages(), self.cached_pages) {
            (Some(read), Some(cached)) => read + self.start_pages != cached,
            _ => false,
        };
        self.has_evictions() || read_other
    }
}

/// Counters derived from `cost`; `before` is the state after the previous phase. `whole` says that
/// the phase's file has no holes. Of the pages evicted by its end, the run itself paged out at most
/// `paged_out`. The phase itself dropped `dropped` pages.
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
        // Nothing was evicted, so the growth is the number of pages read.
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

/// Counters of direct reads, which add nothing to the page cache.
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

    fn counts_of(read_pages: u64, cached: u64, evicted: u64) -> FileCounts {
        FileCounts {
            read_bytes: Some(read_pages * page_size()),
            cached_pages: Some(cached),
            evicted_pages: Some(evicted),
            whole: true,
            dropped: DroppedPages::Nothing,
            paged_out: 0,
            start_pages: 0,
        }
    }

    #[test]
    fn quiet_run_caches_what_it_read() {
        let quiet = counts_of(100, 100, 0);
        assert!(!quiet.is_disturbed());
        assert_eq!((quiet.pages_added(), quiet.pages_evicted()), (Some(100), Some(0)));
    }

    #[test]
    fn foreign_evictions_and_reads_disturb() {
        assert!(counts_of(100, 90, 10).is_disturbed());
        assert!(
            counts_of(100, 90, 0).is_disturbed(),
            "evicted and read again is no longer evicted"
        );
        assert!(counts_of(90, 100, 0).is_disturbed(), "somebody else read some");
        assert_eq!(counts_of(100, 90, 10).pages_added(), Some(100));
        assert_eq!(counts_of(100, 90, 10).pages_evicted(), Some(10));
    }

    #[test]
    fn holes_need_no_storage() {
        let sparse = FileCounts { whole: false, ..counts_of(0, 100, 0) };
        assert!(!sparse.is_disturbed());
        assert_eq!(sparse.pages_added(), Some(100));
        let evicting = FileCounts { whole: false, ..counts_of(0, 100, 5) };
        assert_eq!(evicting.pages_added(), None);
    }

    #[test]
    fn own_drops_do_not_disturb() {
        let dropping = FileCounts { dropped: DroppedPages::Pages(None), ..counts_of(100, 60, 0) };
        assert!(!dropping.is_disturbed());
        assert_eq!((dropping.pages_added(), dropping.pages_evicted()), (Some(100), Some(40)));
        let of_holes = FileCounts { whole: false, ..dropping };
        assert_eq!(of_holes.pages_added(), None);
        let counted = FileCounts { dropped: DroppedPages::Pages(Some(40)), ..of_holes };
        assert_eq!((counted.pages_added(), counted.pages_evicted()), (Some(100), Some(40)));
    }

    #[test]
    fn own_pageouts_do_not_disturb() {
        let dropped = DroppedPages::Pages(Some(40));
        let paging = FileCounts { dropped, paged_out: 40, ..counts_of(100, 60, 40) };
        assert!(!paging.is_disturbed());
        assert_eq!((paging.pages_added(), paging.pages_evicted()), (Some(100), Some(40)));
        let of_holes = FileCounts { whole: false, ..paging };
        assert_eq!(of_holes.pages_added(), Some(100));
        let more = FileCounts { evicted_pages: Some(41), ..of_holes };
        assert!(more.is_disturbed(), "more was evicted than that");
        assert_eq!(more.pages_added(), None);
    }

    #[test]
    fn missing_cachestat_is_unknown() {
        let nothing = FileCounts { whole: true, ..FileCounts::default() };
        assert!(!nothing.is_disturbed());
        assert_eq!(nothing.pages_added(), None);
    }

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
    fn counts_added_pages_by_phase() {
        assert_eq!(pages(30, 40, 0, 10, true), [Some(30), Some(0)]);
        // Holes are not read from storage.
        assert_eq!(pages(0, 40, 0, 10, false), [Some(30), Some(0)]);
        // Under a limit, bytes read say what was added, and the cached pages what was evicted.
        assert_eq!(pages(30, 15, 25, 10, true), [Some(30), Some(25)]);
        assert_eq!(pages(0, 15, 25, 10, false), [None, None]);
    }

    #[test]
    fn counts_own_pageouts_as_evictions() {
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
    fn missing_counts_are_unknown() {
        let nothing = phase_counters(&PhaseCost::default(), None, true, (0, 0));
        assert_eq!((nothing.data_pages_read, nothing.evicted_pages), (None, None));
    }
}
