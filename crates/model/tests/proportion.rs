//! No job takes time out of proportion to its work.
//!
//! [`support::work::Work`] counts the work of a job. Its cost is the processor time of this thread
//! per unit of work, the minimum of several runs, and its ratio is that cost divided by the median
//! of ordinary jobs that ran alongside. Jobs of less than [`LEAST_UNITS`] are left out: fixed costs
//! of a run dominate them, such as the memory of its first chunks.
//!
//! ```sh
//! FILEMAP_PROPORTION_SEED=7 cargo test --release -p filemap-model --test proportion -- \
//!     --ignored --nocapture
//! ```
//!
//! searches among 2,000 random jobs of that seed, which takes minutes; each seed has others. Job
//! files whose names `FILEMAP_PROPORTION_FILES` lists, one on each line, are measured beside them.

mod support;

use std::fs;
use std::time::Duration;

use filemap_core::decision::Log;
use filemap_job::{Job, JobFlags, JobSpec};
use filemap_model::{Profile, trace};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use support::wide::{Wide, wide};
use support::work::Work;

/// No job may cost more than this many times the median.
const MOST: f64 = 20.0;

/// Jobs with less work are not measured.
const LEAST_UNITS: u64 = 300;

/// Jobs of a search.
const SEARCHED: usize = 2_000;

/// Distance between the first job numbers of two seeds: some jobs are left out, so a search has
/// more than [`SEARCHED`] numbers.
const NUMBERS: u64 = 10_000;

/// Ordinary jobs against whose median the kept ones are compared: the first drawn.
const ORDINARY: usize = 150;

/// Jobs that were the worst of searches.
const KEPT: &str = include_str!("data/proportion.toml");

#[derive(Deserialize)]
struct Kept {
    job: Vec<KeptJob>,
}

#[derive(Deserialize)]
struct KeptJob {
    name: String,
    /// Its job file.
    file: String,
}

/// A job, and the measurements of its cost.
struct Measured {
    name: String,
    job: Job,
    work: Work,
    best: Duration,
    spent: Duration,
}

/// The job of `spec`.
fn valid(spec: &Wide) -> Result<Job, String> {
    let valid = match spec {
        Wide::OneFile(spec) => JobFlags::clone(spec).validate(None),
        Wide::Tables(spec) => spec.validate(None),
    };
    valid.map_err(|error| error.to_string())
}

/// Runs `job`, until memory is too small if it is.
fn run(job: &Job, log: &mut impl Log) {
    drop(trace(job, &Profile::DEFAULT, log));
}

impl Measured {
    /// A job without measurements; `None` if it is invalid or too small.
    fn new(name: String, spec: &Wide) -> Option<Measured> {
        Measured::of_job(name, valid(spec).ok()?).ok()
    }

    /// The job of the text of a job file.
    fn of_text(name: String, text: &str) -> Measured {
        let job = job_of(text).and_then(|spec| valid(&spec));
        let measured = job.and_then(|job| Measured::of_job(name.clone(), job));
        measured.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// An error if it has too little work.
    fn of_job(name: String, job: Job) -> Result<Measured, String> {
        let mut work = Work::default();
        run(&job, &mut work);
        if work.units() < LEAST_UNITS {
            return Err(format!("its work is {} units, less than {LEAST_UNITS}", work.units()));
        }
        Ok(Measured { name, job, work, best: Duration::MAX, spent: Duration::ZERO })
    }

    /// Runs it once more.
    fn again(&mut self) {
        let began = thread_time();
        run(&self.job, &mut ());
        let taken = thread_time() - began;
        self.best = self.best.min(taken);
        self.spent += taken;
    }

    /// Nanoseconds per unit of work.
    fn cost(&self) -> f64 {
        self.best.as_nanos() as f64 / self.work.units() as f64
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The cost that `percent` per cent of the jobs are below.
fn percentile(jobs: &[Measured], percent: usize) -> f64 {
    let mut costs: Vec<f64> = jobs.iter().map(Measured::cost).collect();
    costs.sort_by(f64::total_cmp);
    costs[(costs.len() * percent / 100).min(costs.len() - 1)]
}

/// The first `count` measurable jobs, from number `first` on.
fn drawn(first: u64, count: usize) -> Vec<Measured> {
    let of_number = |number| Measured::new(format!("job {number}"), &wide(number));
    (first..).filter_map(of_number).take(count).collect()
}

fn as_text(spec: &Wide) -> String {
    match spec {
        Wide::OneFile(spec) => spec.to_toml(),
        Wide::Tables(spec) => toml::to_string(spec).unwrap(),
    }
}

/// The job of a job file.
fn job_of(text: &str) -> Result<Wide, String> {
    let of_one_file = match JobFlags::from_toml(text) {
        Ok(spec) => return Ok(Wide::OneFile(Box::new(spec))),
        Err(error) => error,
    };
    match JobSpec::from_toml(text) {
        Ok(spec) => Ok(Wide::Tables(Box::new(spec))),
        Err(error) => Err(format!("no job of one file: {of_one_file}; no program: {error}")),
    }
}

fn kept() -> Vec<Measured> {
    let kept: Kept = toml::from_str(KEPT).expect("names and job files");
    kept.job.into_iter().map(|KeptJob { name, file }| Measured::of_text(name, &file)).collect()
}

#[test]
fn the_worst_jobs_known_are_in_proportion() {
    let mut ordinary = drawn(1, ORDINARY);
    let mut kept = kept();
    assert_eq!(kept.len(), 10);
    for _ in 0..3 {
        ordinary.iter_mut().for_each(Measured::again);
        kept.iter_mut().for_each(Measured::again);
    }
    let median = percentile(&ordinary, 50);
    println!("{median:.0} ns for a unit of work in the median of {ORDINARY} ordinary jobs");
    let mut beyond = Vec::new();
    for job in &kept {
        let ratio = job.cost() / median;
        println!("{ratio:5.1} times the median: {}", job.name);
        if ratio > MOST {
            beyond.push(format!("{} costs {ratio:.1} times the median", job.name));
        }
    }
    assert!(beyond.is_empty(), "above {MOST} times:\n{}", beyond.join("\n"));
}

#[test]
#[ignore = "two thousand jobs: minutes"]
fn random_jobs_are_in_proportion() {
    let from_env = |name| std::env::var(name).ok();
    let number = |text: String| {
        let seed = text.parse().ok().filter(|seed| (1..=1_000_000).contains(seed));
        seed.unwrap_or_else(|| panic!("FILEMAP_PROPORTION_SEED={text}: give 1 to 1000000"))
    };
    let seed: u64 = from_env("FILEMAP_PROPORTION_SEED").map_or(1, number);
    let files = from_env("FILEMAP_PROPORTION_FILES").unwrap_or_default();
    let mut named: Vec<Measured> = files
        .lines()
        .map(|path| {
            let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
            Measured::of_text(path.to_string(), &text)
        })
        .collect();
    let mut jobs = drawn(1 + (seed - 1) * NUMBERS, SEARCHED);
    for _ in 0..3 {
        for job in jobs.iter_mut().chain(&mut named) {
            if job.spent < Duration::from_millis(1500) {
                job.again();
            }
        }
    }
    let median = percentile(&jobs, 50);
    println!("seed {seed}: {} jobs", jobs.len());
    for percent in [1, 10, 50, 90, 99] {
        let cost = percentile(&jobs, percent);
        println!("{percent:3} % below {cost:8.0} ns for a unit, {:6.2} times", cost / median);
    }
    let line = |job: &Measured| {
        let (ratio, best) = (job.cost() / median, job.best.as_secs_f64());
        println!("{ratio:6.1} times, {best:.4} s: {} {:?}", job.name, job.work);
    };
    named.iter().for_each(line);
    jobs.sort_by(|a, b| b.cost().total_cmp(&a.cost()));
    for (place, job) in jobs[..50].iter().enumerate() {
        line(job);
        let number = job.name.split_whitespace().last().and_then(|number| number.parse().ok());
        let text = as_text(&wide(number.expect("the number of a job that was drawn")));
        println!("{}", if place < 10 { text } else { text.replace('\n', "; ") });
    }
    let worst = jobs[0].cost() / median;
    assert!(worst <= MOST, "{} costs {worst:.1} times the median of seed {seed}", jobs[0].name);
}
