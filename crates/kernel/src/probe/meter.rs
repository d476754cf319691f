//! Measures the cost of a step to its thread.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::Madvise;

use super::PhaseCost;
use super::in_flight::{InFlightReads, ReadProgress};
use super::mapping::ProbeMapping;
use crate::Error;
use crate::procstat::{Faults, read_bytes};
use crate::residency::CacheStat;

/// Measures the cost of steps of this thread.
pub(super) struct StepMeter {
    io: Option<File>,
    text: [u8; 512],
}

impl StepMeter {
    /// A meter for the calling thread.
    pub(super) fn open() -> Self {
        StepMeter { io: File::open("/proc/thread-self/io").ok(), text: [0; 512] }
    }

    /// Cost of `work`.
    pub(super) fn measure(
        &mut self,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<PhaseCost, Error> {
        let bytes_before = self.read_bytes();
        let faults_before = Faults::current_thread();
        let start = Instant::now();
        work()?;
        let elapsed = start.elapsed();
        let faults = Faults::current_thread() - faults_before;
        let read_bytes = self.read_bytes().zip(bytes_before).map(|(after, before)| after - before);
        Ok(PhaseCost {
            accesses: 0,
            minor: faults.minor,
            major: faults.major,
            read_bytes,
            elapsed_ns: elapsed.as_nanos() as u64,
            cache: None,
            dropped: None,
            counts_waits: false,
        })
    }

    /// Bytes read from storage on behalf of this thread so far.
    pub(super) fn read_bytes(&mut self) -> Option<u64> {
        let length = self.io.as_ref()?.read_at(&mut self.text, 0).ok()?;
        read_bytes(std::str::from_utf8(&self.text[..length]).ok()?)
    }
}

/// Number of pages checked together: if all of them are cached, none can miss.
const CHUNK_PAGES: u64 = 512;

/// A part of a mapping.
pub(super) struct PopulateRange<'a> {
    pub(super) mapped: &'a ProbeMapping<'a>,
    pub(super) file: &'a File,
    /// Its first page in the mapping.
    pub(super) first: PageCount,
    /// Its first page in the file.
    pub(super) page: PageIndex,
}

/// Populates `pages` pages of `part`, waiting after each if `settle` is given.
///
/// The thread's fault counters count each of these faults as major and retried, even if it only
/// waited for a page or only read ahead. So misses are determined from the cache beforehand: page
/// by page, as the kernel populates them too, if some are absent.
pub(super) fn populate(
    part: &PopulateRange,
    pages: PageCount,
    meter: &mut StepMeter,
    mut settle: Option<(&mut InFlightReads, &mut ReadProgress)>,
) -> Result<PhaseCost, Error> {
    let mut own_meter = StepMeter::open();
    let mut missed = Some(0);
    let waits = settle.is_some();
    let mut cost = meter.measure(|| {
        for start in (0..pages.0).step_by(CHUNK_PAGES as usize) {
            let chunk = CHUNK_PAGES.min(pages.0 - start);
            // A marked page may trigger readahead of the following pages, which are waited for too.
            let cached = if waits { None } else { part.cached(start, chunk) };
            if waits || cached.is_some_and(|cached| cached < chunk) {
                for number in start..start + chunk {
                    let more = part.populate_one(number)?;
                    missed = missed.zip(more).map(|(missed, more)| missed + more);
                    if let Some((settle, progress)) = &mut settle
                        && progress.has_advanced(&mut own_meter)
                    {
                        settle.wait_near(part.page.0 + number)?;
                    }
                }
            } else {
                missed = missed.filter(|_| cached.is_some());
                part.madvise(start, chunk)?;
            }
        }
        Ok(())
    })?;
    if let Some(missed) = missed {
        let all = cost.minor + cost.major;
        (cost.minor, cost.major) = (all - missed, missed);
    }
    cost.counts_waits = missed.is_none();
    Ok(cost)
}

impl PopulateRange<'_> {
    /// Number of cached pages among `pages` pages from page `start` of the part on, if `cachestat`
    /// is permitted.
    fn cached(&self, start: u64, pages: u64) -> Option<u64> {
        let start = self.page.0 + start;
        CacheStat::query(self.file, start..start + pages).ok().map(|stat| stat.cached)
    }

    /// Populates a page. Returns 1 if it missed, if known.
    fn populate_one(&self, number: u64) -> Result<Option<u64>, Error> {
        let cached = self.cached(number, 1);
        let before = Faults::current_thread();
        self.madvise(number, 1)?;
        let is_major = (Faults::current_thread() - before).major > 0;
        Ok(cached.map(|cached| u64::from(is_major && cached == 0)))
    }

    fn madvise(&self, start: u64, pages: u64) -> Result<(), Error> {
        let first = self.first + PageCount(start);
        self.mapped.madvise(Madvise::PopulateRead, first, PageCount(pages))
    }
}
