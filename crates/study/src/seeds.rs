//! Other seeds of a random job: whether one seed says what the others do.

use std::time::Duration;

use crate::spread;
use crate::stats::Sample;
use filemap_job::{Engine, EngineKind, Job, JobSpec, Ran, Record, seeds};
use filemap_model::{Model, Profile};
use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;
use crate::parallel;

/// Seeds that a job is tried with in the model where it was run with one.
const OTHER_SEEDS: u64 = 12;

/// Fewer of them do not tell enough to be worth it.
const LEAST_SEEDS: u64 = 4;

/// Most work of all these runs together: accesses, faults, readahead calls, and groups of 64 pages
/// read. That is a few seconds.
const MOST_WORK: u64 = 1 << 26;

/// Most time of this process that they may take together: two processors do that in a second.
const MOST_TIME: Duration = Duration::from_secs(2);

/// The time that all processors have given to this process.
pub fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Refuses a seed of 0, which the generator stays at.
///
/// # Errors
/// Such a seed.
pub fn check(spec: &JobSpec) -> Result<(), Error> {
    match spec.seed {
        Some(0) => Err(Error::Usage(format!("--seed: 0 is out of range; give 1 to {}", u64::MAX))),
        _ => Ok(()),
    }
}

/// `command` with the number of seeds that was asked for.
pub fn with_seeds(command: String, seeds: Option<u64>) -> String {
    seeds.map_or(command.clone(), |seeds| format!("{command} --seeds {seeds}"))
}

/// A job that was run with one seed.
pub struct RanJob<'a> {
    /// What it is called in a sentence.
    pub name: &'a str,
    /// The job.
    pub job: &'a Job,
    /// The machine profile of the model.
    pub profile: &'a Profile,
    /// What came out.
    pub record: &'a Record,
}

/// One line for each of `cells` whose bytes read differ widely over other seeds in the model. All
/// of them `took` so much of this process's time. Nothing is tried where it would take more than
/// about a second, for kernels that are booted, and for the running kernel where the model stands
/// beside it. A seed that the model cannot run says nothing.
///
/// # Errors
/// When no thread can be started.
pub fn warnings(cells: &[RanJob], took: Duration) -> Result<Vec<String>, Error> {
    let begun = spent();
    let model = |cell: &&RanJob| cell.job.engine == EngineKind::Model;
    let has_model = cells.iter().any(|cell| model(&cell));
    let drawn = cells.iter().filter(|cell| {
        let runs = cell.job.image.is_none() && (model(cell) || !has_model);
        runs && cell.job.is_random()
    });
    let drawn: Vec<&RanJob> = drawn.collect();
    let once: u64 = drawn.iter().map(|cell| work(cell.record)).sum();
    let in_time = MOST_TIME.as_nanos() / took.as_nanos().max(1);
    let others = OTHER_SEEDS.min(MOST_WORK / once.max(1)).min(in_time as u64);
    if others < LEAST_SEEDS {
        return Ok(Vec::new());
    }
    let runs = drawn.iter().enumerate().flat_map(|(at, cell)| {
        seeds(cell.job.seed, others + 1).skip(1).map(move |seed| (at, seed))
    });
    let runs: Vec<(usize, u64)> = runs.collect();
    let read = |(at, seed): (usize, u64)| {
        // Where a run takes longer with another seed, or is a kernel's, none begins too late.
        if spent() - begun > MOST_TIME {
            return Ok(None);
        }
        let job = Job { engine: EngineKind::Model, runs: 1, ..drawn[at].job.with_seed(seed) };
        let ran = Model { profile: *drawn[at].profile }.run(&job).ok();
        let read = |ran: Ran| (at, spread::bytes_read(&Record::of(&job, ran)));
        Ok::<_, Error>(ran.map(read))
    };
    let read: Vec<_> = parallel::map(runs, read)?.into_iter().flatten().collect();
    let warning = |(at, cell): (usize, &&RanJob)| {
        let others = read.iter().filter(|(of, _)| *of == at).flat_map(|(_, read)| read).copied();
        let own = spread::bytes_read(cell.record);
        let own = own.into_iter().filter(|_| cell.job.engine == EngineKind::Model);
        spread::warning(cell.name, &Sample::of(own.chain(others).collect())?)
    };
    Ok(drawn.iter().enumerate().filter_map(warning).collect())
}

/// How much one run of a record took the model to do.
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

/// Whether a job that came to `record` can be run `times` times more within a few seconds.
pub fn is_cheap(record: &Record, times: u64) -> bool {
    work(record).saturating_mul(times) <= MOST_WORK
}
