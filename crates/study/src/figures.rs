//! The figures that readers look for first, in people's units.

use std::collections::BTreeMap;

use filemap_job::waits::Cause;
use filemap_job::{Counters, EngineKind, Job, Record, Run, parse_size};

use crate::stats::Sample;
use filemap_report::units::{bytes, factor, number, time};

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Count,
    Factor,
    Nanoseconds,
    /// Of a hundred.
    Percent,
    /// So many for one of something else.
    Ratio,
}

impl Unit {
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Unit::Bytes => bytes(value),
            Unit::Count => number(value),
            Unit::Factor => factor(value),
            Unit::Nanoseconds => time(value),
            Unit::Percent => format!("{value:.2} %"),
            Unit::Ratio => format!("{value:.2}"),
        }
    }
}

/// One run, and what its figures need besides.
pub(crate) struct FigureInput<'a> {
    run: &'a Run,
    page_bytes: f64,
    used_bytes: Option<f64>,
}

/// A figure of a run.
pub(crate) struct Figure {
    /// Its name; one that begins with blanks is a part of the one above.
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    /// Left out where it is 0 in every run.
    if_any: bool,
    of: fn(&FigureInput) -> Option<f64>,
}

/// Every figure, in the order of reports.
pub(crate) const FIGURES: [Figure; 29] = [
    of("rounds", Unit::Count, false, |seen| count(seen.run.counters.rounds)),
    of(ROUNDS_A_SECOND, Unit::Ratio, false, |seen| {
        let seconds = count(seen.run.elapsed_ns).filter(|&ns| ns > 0.0)? / 1e9;
        Some(count(seen.run.counters.rounds)? / seconds)
    }),
    of("faults that dropped their lock", Unit::Count, false, |seen| {
        seen.with_locks().and_then(|_| count(seen.run.counters.retry_mmap_drop))
    }),
    of("tries behind the first of a fault", Unit::Count, false, |seen| {
        count(seen.run.counters.retry_arrival)
    }),
    of("  drops a round", Unit::Ratio, false, |seen| {
        let Counters { rounds, retry_mmap_drop, .. } = seen.run.counters;
        share(retry_mmap_drop, rounds)
    }),
    of("retries whose page was gone", Unit::Count, false, |seen| {
        seen.with_locks().and_then(|_| count(seen.run.counters.retry_io_miss))
    }),
    of(MISSES_PER_DROP, Unit::Percent, false, |seen| {
        let Counters { retry_io_miss, retry_mmap_drop, .. } = seen.run.counters;
        seen.with_locks().and_then(|_| share(retry_io_miss, retry_mmap_drop)).map(|of| of * 100.0)
    }),
    of("VMA locks refused", Unit::Count, true, |seen| count(seen.run.counters.vma_lock_refused)),
    of("mmap_lock taken to share it", Unit::Count, false, |seen| {
        count(seen.run.counters.mmap_lock_shared)
    }),
    of("waits for mmap_lock", Unit::Count, false, |seen| count(seen.run.counters.mmap_lock_waits)),
    of("waiting for mmap_lock to read", Unit::Nanoseconds, true, |seen| {
        seen.waited(Cause::MmapRead)
    }),
    of("waiting for mmap_lock to write", Unit::Nanoseconds, true, |seen| {
        seen.waited(Cause::MmapWrite)
    }),
    of("sleeps above memory.high", Unit::Count, true, |seen| count(seen.run.counters.throttled)),
    of("read from device", Unit::Bytes, false, |seen| count(seen.run.counters.bytes_read)),
    of("added to the cache", Unit::Bytes, true, added_without_device),
    of("  of what was used", Unit::Factor, false, |seen| {
        let used = seen.used_bytes.filter(|&used| used > 0.0)?;
        Some(seen.read_bytes()? / used)
    }),
    of("major faults", Unit::Count, false, |seen| count(seen.run.counters.major_faults)),
    of("minor faults", Unit::Count, false, |seen| count(seen.run.counters.minor_faults)),
    of(ELAPSED, Unit::Nanoseconds, false, |seen| count(seen.run.elapsed_ns)),
    of("cached at the end", Unit::Bytes, false, |seen| {
        let cached = seen.run.cached;
        Some(seen.pages(cached.inside)? + outside(seen)?)
    }),
    of("  not in the mapping", Unit::Bytes, true, outside),
    of("evicted", Unit::Bytes, false, |seen| seen.pages(seen.run.counters.evicted_pages)),
    of("readahead calls", Unit::Count, false, |seen| count(seen.run.counters.readahead_calls)),
    of("  read-around", Unit::Count, true, |seen| count(seen.run.counters.read_around)),
    of("  asynchronous", Unit::Count, true, |seen| count(seen.run.counters.async_readahead)),
    of("  of other kinds", Unit::Count, true, |seen| {
        let counters = &seen.run.counters;
        let named = count(counters.read_around)? + count(counters.async_readahead)?;
        Some((count(counters.readahead_calls)? - named).max(0.0))
    }),
    of("highest mmap_miss", Unit::Count, true, |seen| count(seen.run.counters.mmap_miss_max)),
    of("ITLB misses", Unit::Count, true, |seen| count(seen.run.counters.itlb_misses)),
    of("ITLB walks", Unit::Count, true, |seen| count(seen.run.counters.itlb_walks)),
];

/// The names of what threads that make rounds are run for.
pub(crate) const ROUNDS_A_SECOND: &str = "rounds a second";

/// See [`ROUNDS_A_SECOND`].
pub(crate) const MISSES_PER_DROP: &str = "  misses a drop";

/// The name of the time that a run took.
pub(crate) const ELAPSED: &str = "elapsed";

const fn of(
    name: &'static str,
    unit: Unit,
    if_any: bool,
    of: fn(&FigureInput) -> Option<f64>,
) -> Figure {
    Figure { name, unit, if_any, of }
}

impl FigureInput<'_> {
    /// Whether it is known how tries of faults met locks.
    fn with_locks(&self) -> Option<()> {
        let counters = &self.run.counters;
        (counters.mmap_lock_shared.is_some() || counters.rounds.is_some()).then_some(())
    }

    /// How long threads of a program waited for a lock; nothing where that is not known, as of a
    /// machine that is emulated.
    fn waited(&self, lock: Cause) -> Option<f64> {
        let waits = self.run.counters.mmap_lock_waits?;
        let is_known = waits == 0 || !self.run.waits.is_empty();
        let of_lock = self.run.waits.iter().filter(|wait| wait.cause == lock.name());
        is_known.then(|| of_lock.map(|wait| wait.sum_ns).sum::<u64>() as f64)
    }

    /// Bytes of a page.
    pub(crate) fn page_bytes(&self) -> f64 {
        self.page_bytes
    }

    fn pages(&self, pages: Option<u64>) -> Option<f64> {
        pages.map(|pages| pages as f64 * self.page_bytes)
    }

    /// Bytes that came into the cache, from the device or, of a file without blocks, from nowhere.
    pub(crate) fn read_bytes(&self) -> Option<f64> {
        let counters = &self.run.counters;
        let from_device = count(counters.bytes_read).filter(|&read| read > 0.0);
        from_device.or_else(|| self.pages(counters.data_pages_read)).or(count(counters.bytes_read))
    }
}

/// `part` of each of `whole`.
fn share(part: Option<u64>, whole: Option<u64>) -> Option<f64> {
    Some(part? as f64 / whole.filter(|&whole| whole > 0)? as f64)
}

fn count(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn added_without_device(seen: &FigureInput) -> Option<f64> {
    let without = seen.run.counters.bytes_read.unwrap_or(0) == 0;
    seen.pages(seen.run.counters.data_pages_read).filter(|_| without)
}

fn outside(seen: &FigureInput) -> Option<f64> {
    let cached = seen.run.cached;
    let between = seen.pages(cached.between).unwrap_or(0.0);
    Some(seen.pages(cached.before)? + seen.pages(cached.after)? + between)
}

/// Bytes of a page where nothing says otherwise.
const PAGE_BYTES: u64 = 4096;

/// The runs of a record, of `job` where it is at hand, as figures see them.
pub(crate) fn seen<'a, 'j>(
    record: &'a Record,
    job: impl Into<Option<&'j Job>>,
) -> Vec<FigureInput<'a>> {
    let job = job.into();
    let flags = record.job.flags();
    let page_size = flags.page_size.as_ref().and_then(|size| parse_size(&size.0).ok());
    let page_size = page_size.or(job.map(Job::page_size));
    let page_bytes = page_size.unwrap_or(PAGE_BYTES) as f64;
    // What is read of files without blocks is not among the bytes that a device reads.
    let is_sparse = |job: &&Job| job.files.iter().filter(|of| of.file.sparse).count();
    let job = job.filter(|job| [0, job.files.len()].contains(&is_sparse(job)));
    let mut used: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    let mut seen = Vec::with_capacity(record.runs.len());
    for run in &record.runs {
        let pages = *used.entry(run.seed).or_insert_with(|| {
            let job = job?;
            let other = (run.seed != job.seed).then(|| job.with_seed(run.seed));
            other.as_ref().unwrap_or(job).used_pages()
        });
        let used_bytes = pages.map(|pages| pages as f64 * page_bytes);
        seen.push(FigureInput { run, page_bytes, used_bytes });
    }
    seen
}

/// Each of [`FIGURES`] over all runs of `record`, of `job`; `None` = no run saw it.
pub(crate) fn samples<'j>(record: &Record, job: impl Into<Option<&'j Job>>) -> Vec<Option<Sample>> {
    let seen = seen(record, job);
    let of =
        |figure: &Figure| Sample::of(seen.iter().filter_map(|seen| (figure.of)(seen)).collect());
    FIGURES.iter().map(of).collect()
}

/// Whether one of `samples` is worth a row for `figure`.
pub(crate) fn is_shown<'a>(
    figure: &Figure,
    samples: impl IntoIterator<Item = &'a Option<Sample>>,
) -> bool {
    let seen = samples.into_iter().flatten();
    let mut counted = seen.filter(|sample| !figure.if_any || sample.max > 0.0);
    counted.next().is_some()
}

/// The name of a figure's row, where the times of `engines` are predicted or measured.
pub(crate) fn row_name<'a>(figure: &Figure, engines: impl IntoIterator<Item = &'a str>) -> String {
    let predicted = engines.into_iter().all(|engine| engine == EngineKind::Model.name());
    match figure.name {
        ELAPSED if predicted => format!("{ELAPSED}, predicted"),
        name => name.to_string(),
    }
}
