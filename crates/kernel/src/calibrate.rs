//! Measures what this machine's device and faults cost.

mod direct_reads;
mod jobs;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use filemap_core::address::vma::Advice;
use filemap_core::units::PageCount;
use filemap_job::program::ProgramStep;
use rustix::fs::{Advice as FileAdvice, fadvise};

pub use self::direct_reads::{
    DIRECT_BYTES, DirectFile, DirectSample, IN_FLIGHT, REQUEST_ENTRIES, REQUEST_SEGMENTS,
    is_measurable, ring_entries,
};
pub use self::jobs::{CallBench, CallSample};
pub use self::jobs::{HOLE_BYTES, LIMIT_BYTES, ReclaimBench, ReclaimSample};
pub use self::jobs::{WakeBench, WakeSample};
use crate::cold_cache::drop_open_file;
use crate::probe::{PhaseCost, Probe, ProbeProcess};
use crate::storage::Storage;
use crate::temporary_file::FileContents;
use crate::{Error, page_size, temporary_file};

/// Minimum size of the calibration file, in bytes.
pub const MIN_BYTES: u64 = 64 << 20;

/// Maximum number of single pages to read, each far from the others.
const MAX_SINGLES: u64 = 4096;

/// Number of `read(2)` calls of cached pages.
const READS: u64 = 1024;

/// Maximum number of windows to read.
const MAX_WINDOWS: u64 = 256;

/// CPU costs are the minimum over at most this many tries; slower tries were preempted.
const MAX_TRIES: u32 = 5;

/// Accesses or reads that are timed together.
const PART: usize = 128;

/// Pages of the longer reads that measure copying.
const COPIED_PAGES: u64 = 16;

/// Default fault-around size in bytes.
const AROUND_BYTES: u64 = 64 << 10;

/// Readahead size used to time adding pages, and the number of repeats.
const ADDED_BYTES: u64 = 2 << 20;
const ADDED_TIMES: u64 = 8;

/// The file on which this machine is measured. It is unnamed, so it disappears with the process.
#[derive(Debug)]
pub struct CalibrationFile {
    file: File,
    path: PathBuf,
    storage: Storage,
    pages: u64,
}

/// Results of one round, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceSample {
    /// An access to a mapped page that misses the CPU caches.
    pub touch_ns: f64,
    /// A fault on a cached page without cached neighbours.
    pub minor_ns: f64,
    /// A fault on a cached page that maps [`DeviceSample::around_pages`] pages.
    pub around_ns: f64,
    /// Number of pages that such a fault maps.
    pub around_pages: u64,
    /// An access that reads a single page, in a mapping advised RANDOM.
    pub single_ns: f64,
    /// An access that reads a whole window around it, window after window.
    pub window_ns: f64,
    /// Pages of that window: the readahead size.
    pub window_pages: u64,
    /// Adding a page to the page cache, without the device.
    pub add_page_ns: f64,
    /// A `read(2)` of a cached page.
    pub read_ns: f64,
    /// Each page more that is copied by it.
    pub copy_page_ns: f64,
    /// Reads that bypass the page cache.
    pub direct: DirectSample,
}

impl CalibrationFile {
    /// Writes a file of `bytes` bytes, at least [`MIN_BYTES`], in `directory`.
    ///
    /// # Errors
    /// No space; a filesystem without a readahead size.
    pub fn create(directory: &Path, bytes: u64) -> Result<Self, Error> {
        let file = temporary_file::file(directory, bytes, &FileContents::Returns)
            .map_err(|error| error.with_space_remedy("a smaller --file-size"))?;
        let path = temporary_file::name_for_children(&file);
        let storage = Storage::find(&path)?;
        Ok(CalibrationFile { pages: bytes / page_size(), file, path, storage })
    }

    /// The path by which this process and its children open the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Storage of the file.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Measures everything once.
    ///
    /// # Errors
    /// The file cannot be made cold, or there is no readahead size to measure windows with.
    pub fn sample(&self) -> Result<DeviceSample, Error> {
        let ra_pages = self.storage.read_ahead_kb.unwrap_or(0) * 1024 / page_size();
        if ra_pages < 2 || ra_pages * 4 > self.pages {
            return Err(Error::unavailable(
                format!("a readahead of {ra_pages} pages for a file of {} pages", self.pages),
                "name a directory in TMPDIR whose disk reads ahead, or give a larger --file-size",
            ));
        }
        let mut sample = DeviceSample { window_pages: ra_pages, ..DeviceSample::default() };
        self.singles(&mut sample)?;
        let covered = self.windows(&mut sample)?;
        self.arounds(covered, &mut sample)?;
        self.touches(covered, &mut sample)?;
        self.copies(covered, &mut sample)?;
        sample.add_page_ns = self.added_ns()?;
        self.make_cold()?;
        sample.direct = DirectFile::open(&self.path)?.sample()?;
        Ok(sample)
    }

    /// Reads of one and of many pages among the first `covered`, which are cached.
    fn copies(&self, covered: u64, sample: &mut DeviceSample) -> Result<(), Error> {
        let one_ns = self.read_ns(covered, 1)?;
        let many_ns = self.read_ns(covered, COPIED_PAGES)?;
        sample.copy_page_ns = ((many_ns - one_ns) / (COPIED_PAGES - 1) as f64).max(0.0);
        sample.read_ns = one_ns;
        Ok(())
    }

    /// Nanoseconds per `read(2)` of `pages` cached pages among the first `covered`, in parts as in
    /// [`CalibrationFile::fastest_sum`].
    fn read_ns(&self, covered: u64, pages: u64) -> Result<f64, Error> {
        let mut memory = vec![0u8; (pages * page_size()) as usize];
        let reads = (covered / pages).clamp(1, READS);
        let offsets: Vec<u64> = (0..reads)
            .map(|number| shuffled(number, reads) * (covered / reads) * page_size())
            .collect();
        let mut fastest_ns = vec![f64::INFINITY; offsets.len().div_ceil(PART)];
        // Each try reads all parts in turn, so that no cache holds the next one.
        for _ in 0..MAX_TRIES {
            for (best_ns, part) in fastest_ns.iter_mut().zip(offsets.chunks(PART)) {
                let start = Instant::now();
                for offset in part {
                    self.file
                        .read_exact_at(&mut memory, *offset)
                        .map_err(|error| Error::os("read", &self.path, error))?;
                }
                *best_ns = best_ns.min(start.elapsed().as_nanos() as f64);
            }
        }
        Ok(fastest_ns.iter().sum::<f64>() / reads as f64)
    }

    /// Reads single cold pages, then maps them again while nothing else is cached.
    fn singles(&self, sample: &mut DeviceSample) -> Result<(), Error> {
        let around_pages = (AROUND_BYTES / page_size()).max(1);
        // As many as have no neighbour within a fault-around, so that the processor's caches do not
        // hold all that the kernel keeps of their pages.
        let singles = (self.pages / around_pages).min(MAX_SINGLES);
        let apart = self.pages / singles;
        let pages =
            || (0..singles).map(move |number| shuffled(number, singles) * apart + apart / 2);
        let count = singles as f64;
        self.make_cold()?;
        let cold = self.probe(Advice::RANDOM, vec![pages().collect()])?;
        sample.single_ns = cold[0].elapsed_ns as f64 / count;
        sample.minor_ns = self.fastest_sum(pages())? / count;
        Ok(())
    }

    /// Reads whole cold windows, by one access in the middle of each. Returns the number of pages
    /// covered.
    fn windows(&self, sample: &mut DeviceSample) -> Result<u64, Error> {
        let size = sample.window_pages;
        let windows = (self.pages / size).min(MAX_WINDOWS);
        let middle = |number| shuffled(number, windows) * size + size / 2;
        self.make_cold()?;
        let steps = self.probe(Advice::NORMAL, vec![(0..windows).map(middle).collect()])?;
        sample.window_ns = steps[0].elapsed_ns as f64 / windows as f64;
        Ok(windows * size)
    }

    /// Faults that map as many pages as possible, among the first `covered` pages, which are
    /// cached.
    fn arounds(&self, covered: u64, sample: &mut DeviceSample) -> Result<(), Error> {
        sample.around_pages = (AROUND_BYTES / page_size()).max(1);
        let blocks = covered / sample.around_pages;
        let page =
            |number| shuffled(number, blocks) * sample.around_pages + sample.around_pages / 2;
        // Advised RANDOM, a marked page begins no readahead.
        sample.around_ns = self.fastest_sum((0..blocks).map(page))? / blocks as f64;
        Ok(())
    }

    /// Touches mapped pages among the first `covered`, which are cached. Together they exceed the
    /// CPU caches.
    fn touches(&self, covered: u64, sample: &mut DeviceSample) -> Result<(), Error> {
        let phases = [(0..covered).collect(), (0..covered).collect()];
        sample.touch_ns = self.fastest(Advice::RANDOM, &phases)?[1] / covered as f64;
        Ok(())
    }

    /// Nanoseconds of all accesses to `pages`. Each part of them counts in the fastest of several
    /// tries, and is short enough that some tries are not preempted.
    fn fastest_sum(&self, pages: impl Iterator<Item = u64>) -> Result<f64, Error> {
        let pages: Vec<u64> = pages.collect();
        let parts: Vec<Vec<u64>> = pages.chunks(PART).map(<[u64]>::to_vec).collect();
        Ok(self.fastest(Advice::RANDOM, &parts)?.iter().sum())
    }

    /// Nanoseconds of each phase, in the fastest of several tries.
    fn fastest(&self, advice: Advice, phases: &[Vec<u64>]) -> Result<Vec<f64>, Error> {
        let mut fastest = vec![f64::INFINITY; phases.len()];
        for _ in 0..MAX_TRIES {
            let steps = self.probe(advice, phases.to_vec())?;
            for (best, step) in fastest.iter_mut().zip(&steps) {
                *best = best.min(step.elapsed_ns as f64);
            }
        }
        Ok(fastest)
    }

    /// Nanoseconds per page to submit readahead without waiting for it.
    fn added_ns(&self) -> Result<f64, Error> {
        self.make_cold()?;
        let bytes = ADDED_BYTES.min(self.pages * page_size() / ADDED_TIMES);
        let apart = self.pages * page_size() / ADDED_TIMES;
        let mut fastest_ns = f64::INFINITY;
        for number in 0..ADDED_TIMES {
            let length = std::num::NonZeroU64::new(bytes);
            let start = Instant::now();
            fadvise(&self.file, number * apart, length, FileAdvice::WillNeed)
                .map_err(|errno| Error::os("read ahead", &self.path, errno))?;
            fastest_ns = fastest_ns.min(start.elapsed().as_nanos() as f64);
        }
        Ok(fastest_ns / (bytes / page_size()) as f64)
    }

    fn make_cold(&self) -> Result<(), Error> {
        drop_open_file(&self.file, &self.path)
    }

    /// Cost of touching the pages of `phases` in a mapping with `advice`.
    fn probe(&self, advice: Advice, phases: Vec<Vec<u64>>) -> Result<Vec<PhaseCost>, Error> {
        let steps = phases.into_iter().map(|pages| ProgramStep::touch(0, pages)).collect();
        let mut process =
            ProbeProcess::single_threaded(self.path.clone(), PageCount(self.pages), steps);
        process.mappings[0].mapping.advice = advice;
        let thread = Probe::start(&process)?.run()?.threads.into_iter().next();
        Ok(thread.map_or(Vec::new(), |thread| thread.steps))
    }
}

/// A permutation of `0..count` in which no two neighbours stay adjacent.
fn shuffled(number: u64, count: u64) -> u64 {
    let mut step = (count * 5 / 13).max(1);
    while common_divisor(step, count) > 1 {
        step += 1;
    }
    (u128::from(number) * u128::from(step) % u128::from(count)) as u64
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_is_a_permutation() {
        for count in [1, 2, 3, 4, 5, 13, 32, 128, 1000, 1024] {
            let mut numbers: Vec<u64> = (0..count).map(|n| shuffled(n, count)).collect();
            let close = numbers.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
            assert!(count < 6 || close == 0, "{count}: {numbers:?}");
            numbers.sort_unstable();
            assert_eq!(numbers, (0..count).collect::<Vec<_>>());
        }
    }
}
