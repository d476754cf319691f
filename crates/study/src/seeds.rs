//! Other seeds of a random job: whether one seed is representative.

use std::time::Duration;

use crate::spread;
use crate::stats::SampleStats;
use filemap_job::{Engine, EngineKind, Job, JobRuns, Record, seeds};
use filemap_model::{ModelEngine, Profile};
use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;
use crate::parallel;

/// Number of further seeds that the model tries for a job that ran with one.
const OTHER_SEEDS: u64 = 12;

/// Minimum number of further seeds worth trying.
const MIN_SEEDS: u64 = 4;

/// Budget of all these runs together, in accesses, faults, readahead calls and groups of 64 pages
/// read: a few seconds.
const MAX_WORK: u64 = 1 << 26;

/// Processor time budget of all these runs together: a second on two processors.
const MAX_CPU_TIME: Duration = Duration::from_secs(2);

/// Processor time of this process so far.
pub fn process_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Refuses seed 0, a fixed point of xorshift64.
///
/// # Errors
/// If the seed is 0.
pub fn check(seed: Option<u64>) -> Result<(), Error> {
    match seed {
        Some(0) => Err(Error::Usage(format!("--seed: 0 is out of range; give 1 to {}", u64::MAX))),
        _ => Ok(()),
    }
}

/// The words of a command for its number of seeds, if given.
pub fn words(seeds: Option<u64>) -> Vec<String> {
    seeds.map(|seeds| format!("--seeds {seeds}")).into_iter().collect()
}

/// A job that was run with one seed.
pub struct RanJob<'a> {
    /// Its name in a sentence.
    pub name: &'a str,
    /// The job.
    pub job: &'a Job,
    /// The machine profile of the model.
    pub profile: &'a Profile,
    /// Its result.
    pub record: &'a Record,
}

/// Warnings for the `cells` whose bytes read vary widely over other seeds in the model; `took` is
/// the processor time that the cells themselves took. Nothing is tried if it would take more than
/// about a second, for booted kernels, and for the running kernel if the model ran the same job.
/// Seeds that the model cannot run are ignored.
///
/// # Errors
/// If no thread can be started.
pub fn warnings(cells: &[RanJob], took: Duration) -> Result<Vec<String>, Error> {
    let begun = process_cpu_time();
    let model = |cell: &&RanJob| cell.job.engine == EngineKind::Model;
    let has_model = cells.iter().any(|cell| model(&cell));
    let drawn = cells.iter().filter(|cell| {
        let runs = cell.job.image.is_none() && (model(cell) || !has_model);
        runs && cell.job.is_random()
    });
    let drawn: Vec<&RanJob> = drawn.collect();
    let once: u64 = drawn.iter().map(|cell| work(cell.record)).sum();
    let in_time = MAX_CPU_TIME.as_nanos() / took.as_nanos().max(1);
    let others = OTHER_SEEDS.min(MAX_WORK / once.max(1)).min(in_time as u64);
    if others < MIN_SEEDS {
        return Ok(Vec::new());
    }
    let runs = drawn.iter().enumerate().flat_map(|(at, cell)| {
        seeds(cell.job.seed, others + 1).skip(1).map(move |seed| (at, seed))
    });
    let runs: Vec<(usize, u64)> = runs.collect();
    let read = |(at, seed): (usize, u64)| {
        // A run may take longer with another seed or on a kernel: stop at the deadline.
        if process_cpu_time() - begun > MAX_CPU_TIME {
            return Ok(None);
        }
        let job = Job { engine: EngineKind::Model, runs: 1, ..drawn[at].job.with_seed(seed) };
        let ran = ModelEngine { profile: *drawn[at].profile }.run(&job).ok();
        let read = |ran: JobRuns| (at, spread::bytes_read(&Record::from_job_runs(&job, ran)));
        Ok::<_, Error>(ran.map(read))
    };
    let read: Vec<_> = parallel::map(runs, read)?.into_iter().flatten().collect();
    let warning = |(at, cell): (usize, &&RanJob)| {
        let others =
            read.iter().filter(|(number, _)| *number == at).flat_map(|(_, read)| read).copied();
        let own = spread::bytes_read(cell.record);
        let own = own.into_iter().filter(|_| cell.job.engine == EngineKind::Model);
        spread::warning(cell.name, &SampleStats::from_sorted(own.chain(others).collect())?)
    };
    Ok(drawn.iter().enumerate().filter_map(warning).collect())
}

/// Work of one run in the model, in the units of the budget.
fn work(record: &Record) -> u64 {
    let Some(run) = record.runs.first() else { return 0 };
    let counters = &run.counters;
    let parts = [
        counters.accesses,
        counters.major_faults,
        counters.minor_faults,
        counters.readahead_calls,
        counters.data_pages_read.map(|pages| pages / 64),
    ];
    parts.into_iter().flatten().sum()
}

/// Whether the job of `record` can run `times` more times within the budget.
pub fn is_cheap(record: &Record, times: u64) -> bool {
    work(record).saturating_mul(times) <= MAX_WORK
}
