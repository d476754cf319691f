//! One run: a cold file, the accesses in a child, and what the kernel says of them.

use std::ops::Range;
use std::time::{Duration, Instant};

use filemap_core::units::PageIndex;
use filemap_job::{Cached, Counters, Run};

use super::{Prepared, phases};
use crate::cgroup::MemoryCgroup;
use crate::cold::drop_open_file;
use crate::probe::{Outcome, Probe};
use crate::procstat::VmStat;
use crate::residency::{CacheStat, PageSet, resident_pages};
use crate::{Error, page_size};

/// How often a run is repeated that somebody else disturbed.
const REPEATS: u32 = 6;

/// No run is repeated after this time: what takes long is disturbed every time.
const REPEAT_FOR: Duration = Duration::from_secs(60);

/// What one run left.
struct Measured {
    run: Run,
    disturbed: bool,
}

impl Prepared {
    /// Runs once, from a cold file. A run in which somebody else took pages of the file out of
    /// the cache is repeated a few times.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(&mut self) -> Result<Run, Error> {
        let start = Instant::now();
        for attempt in 0.. {
            let measured = self.measure()?;
            if !measured.disturbed {
                return Ok(measured.run);
            }
            if attempt == REPEATS || start.elapsed() > REPEAT_FOR {
                self.unsettled += 1;
                return Ok(measured.run);
            }
            self.disturbed += 1;
        }
        unreachable!("the loop ends after a few repeats")
    }

    /// Pages of the file in the page cache now, as the last run left it.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn resident(&self) -> Result<PageSet, Error> {
        resident_pages(&self.file.file, self.job.file_pages().0)
    }

    fn measure(&self) -> Result<Measured, Error> {
        self.file.check_size()?;
        let probe = Probe::start(&self.plan)?;
        drop_open_file(&self.file.file, &self.file.name)?;
        let cgroup = self.limits.cgroup(&self.journal)?;
        if let Some(cgroup) = &cgroup {
            cgroup.add(probe.pid())?;
        }
        let before = VmStat::now().ok();
        let outcome = probe.run().map_err(|error| match &cgroup {
            Some(cgroup) if cgroup.has_killed() => self.limits.exceeded().unwrap_or(error),
            _ => error,
        })?;
        let vmstat = VmStat::now().ok().zip(before).map(|(after, before)| after.since(&before));
        let cached = Cached::of(&self.job, |pages: Range<PageIndex>| {
            CacheStat::of(&self.file.file, pages.start.0..pages.end.0).map(|stat| stat.cached)
        });
        // Last: where nothing had left by then, nothing had when its parts were counted.
        let stat = CacheStat::of(&self.file.file, ..).ok();
        self.file.check_size()?;
        let seen = Seen::of(&outcome, cgroup.as_ref(), stat, self.file.whole);
        let fits = self.limits.fits(&self.job);
        Ok(Measured {
            disturbed: fits && seen.is_disturbed(),
            run: Run {
                seed: self.job.seed,
                elapsed_ns: Some(outcome.phases.iter().map(|phase| phase.elapsed_ns).sum()),
                counters: seen.counters(self.job.phases.iter().map(|phase| phase.accesses).sum()),
                phases: phases::runs(&self.job, &outcome, self.file.whole, seen.major_faults),
                // Null before Linux 6.5.
                cached: cached.unwrap_or_default(),
                vmstat: vmstat.map(VmStat::into_map),
            },
        })
    }
}

/// What the kernel counted of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    minor_faults: u64,
    major_faults: u64,
    /// Fetched from storage.
    read_bytes: Option<u64>,
    /// Of the file in the cache in the end.
    cached_pages: Option<u64>,
    /// Evicted, and not read again.
    evicted_pages: Option<u64>,
    /// Each page of the file takes a page of storage.
    whole: bool,
}

impl Seen {
    fn of(
        outcome: &Outcome,
        cgroup: Option<&MemoryCgroup>,
        stat: Option<CacheStat>,
        whole: bool,
    ) -> Seen {
        let sum =
            |count: fn(&crate::probe::PhaseCost) -> u64| outcome.phases.iter().map(count).sum();
        let own_major_faults = sum(|phase| phase.major);
        // The event counts each miss; the process's own count is of faults, and a fault whose
        // page is evicted before it is mapped misses again.
        let events = cgroup.and_then(|cgroup| cgroup.stat().ok()?.get("pgmajfault"));
        let events = events.and_then(|events| u64::try_from(events).ok());
        Seen {
            minor_faults: sum(|phase| phase.minor),
            major_faults: events.unwrap_or(own_major_faults).max(own_major_faults),
            read_bytes: outcome.phases.iter().map(|phase| phase.read_bytes).sum(),
            cached_pages: stat.map(|stat| stat.cached),
            evicted_pages: stat.map(|stat| stat.evicted),
            whole,
        }
    }

    /// Pages read from storage, where each page of the file is one of storage.
    fn storage_pages(&self) -> Option<u64> {
        self.read_bytes.filter(|_| self.whole).map(|bytes| bytes.div_ceil(page_size()))
    }

    /// Pages of the file added to the cache.
    fn pages_added(&self) -> Option<u64> {
        match (self.evicted_pages, self.cached_pages) {
            (Some(0), Some(cached)) if !self.is_disturbed() => Some(cached),
            _ => self.storage_pages(),
        }
    }

    /// Whether, of a file that fits into memory, pages left, or others came than were read.
    fn is_disturbed(&self) -> bool {
        let read_other = match (self.storage_pages(), self.cached_pages) {
            (Some(read), Some(cached)) => read != cached,
            _ => false,
        };
        self.evicted_pages.is_some_and(|pages| pages > 0) || read_other
    }

    fn counters(&self, accesses: u64) -> Counters {
        let added = self.pages_added();
        let evicted = added.zip(self.cached_pages);
        Counters {
            accesses: Some(accesses),
            data_pages_read: added,
            bytes_read: self.read_bytes,
            major_faults: Some(self.major_faults),
            minor_faults: Some(self.minor_faults),
            evicted_pages: evicted.map(|(added, cached)| added.saturating_sub(cached)),
            ..Counters::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(read_pages: u64, cached: u64, evicted: u64) -> Seen {
        Seen {
            read_bytes: Some(read_pages * page_size()),
            cached_pages: Some(cached),
            evicted_pages: Some(evicted),
            whole: true,
            ..Seen::default()
        }
    }

    #[test]
    fn a_quiet_run_has_in_the_cache_what_it_read() {
        let quiet = seen(100, 100, 0);
        assert!(!quiet.is_disturbed());
        assert_eq!(quiet.pages_added(), Some(100));
        assert_eq!(quiet.counters(3).evicted_pages, Some(0));
    }

    #[test]
    fn pages_that_left_or_came_otherwise_disturb() {
        assert!(seen(100, 90, 10).is_disturbed());
        assert!(seen(100, 90, 0).is_disturbed(), "evicted and read again is no longer evicted");
        assert!(seen(90, 100, 0).is_disturbed(), "somebody else read some");
        assert_eq!(seen(100, 90, 10).pages_added(), Some(100));
        assert_eq!(seen(100, 90, 10).counters(3).evicted_pages, Some(10));
    }

    #[test]
    fn holes_are_read_without_storage() {
        let sparse = Seen { whole: false, ..seen(0, 100, 0) };
        assert!(!sparse.is_disturbed());
        assert_eq!(sparse.pages_added(), Some(100));
        assert_eq!(sparse.counters(3).bytes_read, Some(0));
        let evicting = Seen { whole: false, ..seen(0, 100, 5) };
        assert_eq!(evicting.pages_added(), None);
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_unknown() {
        let nothing = Seen { whole: true, ..Seen::default() };
        assert!(!nothing.is_disturbed());
        assert_eq!(nothing.pages_added(), None);
    }
}
