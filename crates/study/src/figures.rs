//! The figures of reports, derived from the counters of runs, in convenient units.

use std::collections::BTreeMap;

use filemap_job::waits::Cause;
use filemap_job::{Counters, EngineKind, Job, Record, Run, parse_size};

use crate::measure::Measurement;
use crate::verdict::median_or_zero;
use filemap_report::Better;
use filemap_report::Unit::{self, Bytes, Count, Factor, Nanoseconds, Percent, Ratio};

/// A run, with the facts about its job that figures need.
pub(crate) struct FigureInput<'a> {
    run: &'a Run,
    page_bytes: f64,
    used_bytes: Option<f64>,
}

/// A figure of a run.
pub(crate) struct Figure {
    /// Key in JSON and CSV.
    pub(crate) key: &'static str,
    /// Label in reports. Leading blanks mark it as a part of the figure above.
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    /// Which direction is better. If less is, a rise by more than noise is a regression.
    pub(crate) better: Better,
    /// Reports omit the figure if it is 0 in every run.
    is_rare: bool,
    /// The kernel counter behind the figure, on a kernel.
    pub(crate) counter: Option<&'static str>,
    compute: fn(&FigureInput) -> Option<f64>,
}

/// Every figure, in the order of reports. Reports, CSV and JSON all use this table.
pub(crate) const FIGURES: &[Figure] = &[
    figure("rounds", "rounds", Count, |seen| seen.count(|counters| counters.rounds)),
    figure(ROUNDS_A_SECOND, "rounds a second", Ratio, |seen| {
        let seconds = seen.elapsed_ns().filter(|&ns| ns > 0.0)? / 1e9;
        Some(seen.count(|counters| counters.rounds)? / seconds)
    }),
    figure("retry_mmap_drop", "faults that dropped their lock", Count, |seen| {
        seen.with_locks()?.count(|counters| counters.retry_mmap_drop)
    })
    .counted("retry_mmap_drop of /proc/vmstat, where the kernel has it"),
    figure("retry_arrival", "tries after the first of a fault", Count, |seen| {
        seen.count(|counters| counters.retry_arrival)
    }),
    figure("drops_per_round", "  drops a round", Ratio, |seen| {
        seen.share(|counters| counters.retry_mmap_drop, |counters| counters.rounds)
    }),
    figure("retry_io_miss", "retries whose page was gone", Count, |seen| {
        seen.with_locks()?.count(|counters| counters.retry_io_miss)
    })
    .counted("retry_io_miss of /proc/vmstat, where the kernel has it"),
    figure(MISSES_PER_DROP, "  misses a drop", Percent, |seen| {
        let share = seen
            .with_locks()?
            .share(|counters| counters.retry_io_miss, |counters| counters.retry_mmap_drop);
        share.map(|share| share * 100.0)
    }),
    figure("vma_lock_refused", "VMA locks refused", Count, |seen| {
        seen.count(|counters| counters.vma_lock_refused)
    })
    .counted("vma_lock_abort and vma_lock_miss of /proc/vmstat")
    .when_nonzero(),
    figure("mmap_lock_shared", "mmap_lock taken to share it", Count, |seen| {
        seen.count(|counters| counters.mmap_lock_shared)
    })
    .counted("tracepoint mmap_lock_start_locking"),
    figure("mmap_lock_waits", "waits for mmap_lock", Count, |seen| {
        seen.count(|counters| counters.mmap_lock_waits)
    })
    .counted("tracepoints mmap_lock_start_locking and mmap_lock_acquire_returned"),
    figure("mmap_read_wait_ns", "waiting for mmap_lock to read", Nanoseconds, |seen| {
        seen.lock_wait_ns(Cause::MmapRead)
    })
    .when_nonzero(),
    figure("mmap_write_wait_ns", "waiting for mmap_lock to write", Nanoseconds, |seen| {
        seen.lock_wait_ns(Cause::MmapWrite)
    })
    .when_nonzero(),
    figure("throttled", "sleeps above memory.high", Count, |seen| {
        seen.count(|counters| counters.throttled)
    })
    .when_nonzero(),
    figure("bytes_read", "read from device", Bytes, |seen| {
        seen.count(|counters| counters.bytes_read)
    })
    .counted("read_bytes of /proc/thread-self/io, summed over the threads of the job")
    .less_is_better(),
    figure("added_bytes", "added to the cache", Bytes, |seen| {
        let is_without_device = seen.run.counters.bytes_read.unwrap_or(0) == 0;
        seen.pages(seen.run.counters.data_pages_read).filter(|_| is_without_device)
    })
    .when_nonzero(),
    figure(READ_OF_USED, "  of what was used", Factor, |seen| {
        let used = seen.used_bytes.filter(|&used| used > 0.0)?;
        Some(seen.read_bytes()? / used)
    })
    .counted("the same, by the bytes of the distinct pages that the accesses touch"),
    figure("major_faults", "major faults", Count, |seen| {
        seen.count(|counters| counters.major_faults)
    })
    .counted(
        "ru_majflt of getrusage(RUSAGE_THREAD), or, of a job in a memory cgroup of its own, \
             pgmajfault of memory.stat where that is more",
    )
    .less_is_better(),
    figure("minor_faults", "minor faults", Count, |seen| {
        seen.count(|counters| counters.minor_faults)
    })
    .counted("ru_minflt of getrusage(RUSAGE_THREAD)"),
    figure(ELAPSED, "elapsed", Nanoseconds, |seen| seen.elapsed_ns())
        .counted("CLOCK_MONOTONIC, of the thread that takes longest")
        .less_is_better(),
    figure("cached_bytes", "cached at the end", Bytes, |seen| {
        Some(seen.pages(seen.run.cached.inside)? + seen.outside()?)
    })
    .counted("nr_cache of cachestat(2), or mincore(2) where the kernel lacks it"),
    figure("cached_outside_bytes", "  not in the mapping", Bytes, |seen| seen.outside())
        .when_nonzero(),
    figure("evicted_bytes", "evicted", Bytes, |seen| seen.pages(seen.run.counters.evicted_pages))
        .counted("pages read less those that cachestat(2) still finds"),
    figure("readahead_calls", "readahead calls", Count, |seen| {
        seen.count(|counters| counters.readahead_calls)
    }),
    figure("read_around", "  read-around", Count, |seen| {
        seen.count(|counters| counters.read_around)
    })
    .when_nonzero(),
    figure("async_readahead", "  asynchronous", Count, |seen| {
        seen.count(|counters| counters.async_readahead)
    })
    .when_nonzero(),
    figure("other_readahead", "  of other kinds", Count, |seen| {
        let named = seen.count(|counters| counters.read_around)?
            + seen.count(|counters| counters.async_readahead)?;
        Some((seen.count(|counters| counters.readahead_calls)? - named).max(0.0))
    })
    .when_nonzero(),
    figure("mmap_miss_max", "highest mmap_miss", Count, |seen| {
        seen.count(|counters| counters.mmap_miss_max)
    })
    .when_nonzero(),
    figure("itlb_misses", "ITLB misses", Count, |seen| seen.count(|counters| counters.itlb_misses))
        .when_nonzero(),
    figure("itlb_walks", "ITLB walks", Count, |seen| seen.count(|counters| counters.itlb_walks))
        .when_nonzero(),
];

/// Key of a headline figure of jobs whose threads make rounds.
pub(crate) const ROUNDS_A_SECOND: &str = "rounds_per_second";

/// See [`ROUNDS_A_SECOND`].
pub(crate) const MISSES_PER_DROP: &str = "misses_per_drop_percent";

/// Key of the ratio of bytes read to bytes used.
pub(crate) const READ_OF_USED: &str = "read_of_used";

/// Key of the elapsed time of a run.
pub(crate) const ELAPSED: &str = "elapsed_ns";

/// Keys of the headline figures, the most important first.
const FIRST: [&str; 8] = [
    ROUNDS_A_SECOND,
    MISSES_PER_DROP,
    "bytes_read",
    "major_faults",
    ELAPSED,
    READ_OF_USED,
    "evicted_bytes",
    "cached_bytes",
];

const fn figure(
    key: &'static str,
    name: &'static str,
    unit: Unit,
    of: fn(&FigureInput) -> Option<f64>,
) -> Figure {
    Figure { key, name, unit, better: Better::Neither, is_rare: false, counter: None, compute: of }
}

impl Figure {
    const fn when_nonzero(self) -> Figure {
        Figure { is_rare: true, ..self }
    }

    const fn less_is_better(self) -> Figure {
        Figure { better: Better::Less, ..self }
    }

    const fn counted(self, counter: &'static str) -> Figure {
        Figure { counter: Some(counter), ..self }
    }

    /// The median over the runs of each seed, in the order of seeds.
    pub(crate) fn values_by_seed(&self, record: &Record) -> Vec<(u64, f64)> {
        let seen = figure_inputs(record, None);
        let mut seeds: Vec<(u64, Vec<f64>)> = Vec::new();
        for seen in &seen {
            let Some(value) = (self.compute)(seen) else { continue };
            match seeds.iter_mut().find(|(seed, _)| *seed == seen.run.seed) {
                Some((_, values)) => values.push(value),
                None => seeds.push((seen.run.seed, vec![value])),
            }
        }
        seeds.into_iter().map(|(seed, values)| (seed, median_or_zero(&values))).collect()
    }

    /// The value in each run that has it.
    pub(crate) fn values_of_runs(&self, seen: &[FigureInput]) -> Vec<f64> {
        seen.iter().filter_map(self.compute).collect()
    }

    /// Rank among the headline figures, if it is one.
    pub(crate) fn rank(&self) -> Option<usize> {
        FIRST.iter().position(|key| *key == self.key)
    }

    /// Whether one of `measures` is worth a row.
    pub(crate) fn is_shown<'a>(
        &self,
        measures: impl IntoIterator<Item = Option<&'a Measurement>>,
    ) -> bool {
        let mut seen = measures.into_iter().flatten();
        seen.any(|measure| !self.is_rare || measure.max > 0.0)
    }

    /// The row label; for times it states whether `engines` predict or measure them.
    pub(crate) fn row_name<'a>(&self, engines: impl IntoIterator<Item = &'a str>) -> String {
        let is_model = |engine: &str| engine == EngineKind::Model.name();
        match self.key {
            ELAPSED if engines.into_iter().all(is_model) => format!("{}, predicted", self.name),
            _ => self.name.to_string(),
        }
    }
}

impl FigureInput<'_> {
    fn count(&self, field: fn(&Counters) -> Option<u64>) -> Option<f64> {
        field(&self.run.counters).map(|count| count as f64)
    }

    /// `part` divided by `whole`; `None` if `whole` is 0.
    fn share(
        &self,
        part: fn(&Counters) -> Option<u64>,
        whole: fn(&Counters) -> Option<u64>,
    ) -> Option<f64> {
        Some(self.count(part)? / self.count(whole).filter(|&whole| whole > 0.0)?)
    }

    fn elapsed_ns(&self) -> Option<f64> {
        self.run.elapsed_ns.map(|ns| ns as f64)
    }

    /// The run itself if it counted how faults took locks.
    fn with_locks(&self) -> Option<&Self> {
        let counters = &self.run.counters;
        (counters.mmap_lock_shared.is_some() || counters.rounds.is_some()).then_some(self)
    }

    /// Nanoseconds that threads of a program waited for a lock; `None` if unknown, as on an
    /// emulated machine.
    fn lock_wait_ns(&self, lock: Cause) -> Option<f64> {
        let waits = self.run.counters.mmap_lock_waits?;
        let is_known = waits == 0 || !self.run.waits.is_empty();
        let of_lock = self.run.waits.iter().filter(|wait| wait.cause == lock.name());
        is_known.then(|| of_lock.map(|wait| wait.sum_ns).sum::<u64>() as f64)
    }

    fn pages(&self, pages: Option<u64>) -> Option<f64> {
        pages.map(|pages| pages as f64 * self.page_bytes)
    }

    /// Bytes that entered the page cache: read from the device or, for a file without blocks,
    /// filled with zeros.
    pub(crate) fn read_bytes(&self) -> Option<f64> {
        let read = self.count(|counters| counters.bytes_read);
        let from_device = read.filter(|&read| read > 0.0);
        from_device.or_else(|| self.pages(self.run.counters.data_pages_read)).or(read)
    }

    /// Bytes cached at the end outside the mapping.
    fn outside(&self) -> Option<f64> {
        let cached = self.run.cached;
        let between = self.pages(cached.between).unwrap_or(0.0);
        Some(self.pages(cached.before)? + self.pages(cached.after)? + between)
    }
}

/// Default page size, in bytes.
const PAGE_BYTES: u64 = 4096;

/// The runs of `record` as input for figures; `job` is its job, if at hand.
pub(crate) fn figure_inputs<'a, 'j>(
    record: &'a Record,
    job: impl Into<Option<&'j Job>>,
) -> Vec<FigureInput<'a>> {
    let job = job.into();
    let page_size = record.job.page_size.as_ref().and_then(|size| parse_size(&size.0).ok());
    let page_size = page_size.or(job.map(Job::page_size));
    let page_bytes = page_size.unwrap_or(PAGE_BYTES) as f64;
    // Bytes read from the device exclude files without blocks, so that a mix has no used pages.
    let is_sparse = |job: &&Job| job.files.iter().filter(|file| file.file.sparse).count();
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
