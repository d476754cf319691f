//! Other seeds of a random job: whether one seed says what the others do.

use filemap_job::{Engine, EngineKind, Job, Ran, Record, seeds};
use filemap_model::{Model, Profile};
use filemap_report::spread;
use filemap_report::stats::Sample;

use crate::error::Error;
use crate::parallel;

/// Seeds that a job is tried with in the model where it was run with one.
const OTHER_SEEDS: u64 = 12;

/// Fewer of them do not tell enough to be worth it.
const LEAST_SEEDS: u64 = 4;

/// Most work of all these runs together: accesses, faults, readahead calls, and groups of 64 pages
/// read. That is a few seconds.
const MOST_WORK: u64 = 1 << 26;

/// A job that was run with one seed.
pub struct Cell<'a> {
    /// What it is called in a sentence.
    pub name: &'a str,
    /// The job.
    pub job: &'a Job,
    /// The machine profile of the model.
    pub profile: &'a Profile,
    /// What came out.
    pub record: &'a Record,
}

/// One line for each of `cells` whose bytes read differ widely over other seeds in the model.
/// Nothing is tried where it would take more than a few seconds, for kernels that are booted, and
/// for the running kernel where the model stands beside it. A seed that the model cannot run says
/// nothing.
///
/// # Errors
/// When no thread can be started.
pub fn warnings(cells: &[Cell]) -> Result<Vec<String>, Error> {
    let model = |cell: &&Cell| cell.job.engine == EngineKind::Model;
    let has_model = cells.iter().any(|cell| model(&cell));
    let drawn = cells.iter().filter(|cell| {
        let runs = cell.job.image.is_none() && (model(cell) || !has_model);
        runs && cell.job.is_random()
    });
    let drawn: Vec<&Cell> = drawn.collect();
    let once: u64 = drawn.iter().map(|cell| work(cell.record)).sum();
    let others = OTHER_SEEDS.min(MOST_WORK / once.max(1));
    if others < LEAST_SEEDS {
        return Ok(Vec::new());
    }
    let runs = drawn.iter().enumerate().flat_map(|(at, cell)| {
        seeds(cell.job.seed, others + 1).skip(1).map(move |seed| (at, seed))
    });
    let runs: Vec<(usize, u64)> = runs.collect();
    let read = |(at, seed): (usize, u64)| {
        let job = Job { engine: EngineKind::Model, runs: 1, ..drawn[at].job.with_seed(seed) };
        let ran = Model { profile: *drawn[at].profile }.run(&job).ok();
        let read = |ran: Ran| (at, spread::bytes_read(&Record::of(&job, ran), &job));
        Ok::<_, Error>(ran.map(read))
    };
    let read: Vec<_> = parallel::map(runs, read)?.into_iter().flatten().collect();
    let warning = |(at, cell): (usize, &&Cell)| {
        let others = read.iter().filter(|(of, _)| *of == at).flat_map(|(_, read)| read).copied();
        let own = spread::bytes_read(cell.record, cell.job);
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
