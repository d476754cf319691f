//! The published job and the experiments derived from it.

use super::data::{PUBLISHED, PUBLISHED_CPUS, PUBLISHED_JOB};
use super::trial::{Trial, TrialRun};
use crate::published::study::StudyLength;

/// The published job; sizes in pages of 4 KiB.
const THREADS: u64 = 500;
const FILE_PAGES: u64 = 4096;
const HIGH_PAGES: u64 = 1 << 18;
const MAX_PAGES: u64 = (12 << 18) / 10;

/// Extent of the study: duration and conditions of trials.
#[derive(Clone, Copy)]
pub struct StudyExtent {
    /// Virtual seconds of the published job; `sweep` and `experiments` likewise.
    job: u64,
    sweep: u64,
    experiments: u64,
    /// Readahead sizes in pages.
    read_ahead: &'static [u64],
    cpus: &'static [u64],
    threads: &'static [u64],
    /// Writers to one large VMA.
    writers: &'static [u64],
    /// Percentages of each cost that are tried.
    percents: &'static [u64],
}

/// The published duration.
const FULL: StudyExtent = StudyExtent {
    job: 600,
    sweep: 120,
    experiments: 60,
    read_ahead: &[32, 128, 256, 384, 480, 576, 640, 704, 768, 896, 1024],
    cpus: &[4, 8, 16, 32, 64, 96, 128, 160, 256, 512],
    threads: &[64, 125, 250, 500, 750, 1000],
    writers: &[0, 1, 2, 4, 8],
    percents: &[50, 200],
};

/// About three minutes on two processors.
const SHORT: StudyExtent = StudyExtent {
    job: 40,
    sweep: 30,
    experiments: 30,
    read_ahead: &[32, 256, 480, 640, 1024],
    cpus: &[8, 32, 128, 256],
    threads: &[64, 1000],
    writers: &[0, 2],
    percents: &[],
};

/// The published job and the sweep that infers the readahead size.
const BRIEF: StudyExtent =
    StudyExtent { read_ahead: &[256, 480, 640], cpus: &[], threads: &[], writers: &[], ..SHORT };

/// Factor by which the experiment with one large VMA has fewer threads, CPUs and pages.
const ONE_VMA_SCALE: u64 = 8;

/// One condition of an experiment.
pub struct Experiment {
    /// Kind of experiment; `name` is the condition.
    pub kind: &'static str,
    pub name: String,
    /// The trial without the series.
    pub trial: Trial,
}

/// An experiment with its trials without and with the series, and their results.
pub struct TriedExperiment {
    pub experiment: Experiment,
    pub both: [(Trial, TrialRun); 2],
}

impl StudyExtent {
    /// The extent for `length`; a brief report has only the sweep over readahead sizes.
    pub fn for_length(length: StudyLength) -> StudyExtent {
        match length {
            StudyLength::Full => FULL,
            StudyLength::Short => SHORT,
            StudyLength::Brief => BRIEF,
        }
    }

    /// The published job with each of `seeds`.
    pub fn job(&self, read_ahead_pages: u64, seeds: &[u64]) -> Vec<Experiment> {
        let experiment = |seed: &u64| Experiment {
            kind: PUBLISHED_JOB,
            name: PUBLISHED_JOB.to_string(),
            trial: base(read_ahead_pages, *seed, self.job),
        };
        seeds.iter().map(experiment).collect()
    }

    /// The published job over readahead sizes.
    pub fn read_ahead_sweep(&self, seed: u64) -> Vec<Experiment> {
        let experiment = |pages: &u64| Experiment {
            kind: "readahead",
            name: pages.to_string(),
            trial: base(*pages, seed, self.sweep),
        };
        self.read_ahead.iter().map(experiment).collect()
    }

    /// All other experiments, at the inferred readahead size.
    pub fn experiments(
        &self,
        pages: u64,
        seed: u64,
        costs: &[(&'static str, u64)],
    ) -> Vec<Experiment> {
        let base = base(pages, seed, self.experiments);
        let smaller = with_threads(&base, THREADS / ONE_VMA_SCALE);
        let smaller = Trial { one_vma: true, cpus: PUBLISHED_CPUS / ONE_VMA_SCALE, ..smaller };
        let cpus = |&cpus: &u64| ("cpus", cpus.to_string(), Trial { cpus, ..base.clone() });
        let threads = |&count: &u64| ("threads", count.to_string(), with_threads(&base, count));
        let writers = |&count: &u64| {
            ("one vma", count.to_string(), Trial { writers: count, ..smaller.clone() })
        };
        let cost = |&(name, _): &(&'static str, u64)| {
            self.percents.iter().map(move |&percent| (name, percent))
        };
        let cost_at = |(name, percent): (&'static str, u64)| {
            let trial = Trial { change: Some((name, percent)), ..base.clone() };
            ("sensitivity", format!("{name} at {percent} %"), trial)
        };
        let all = self.cpus.iter().map(cpus).chain(self.threads.iter().map(threads));
        let all = all.chain(self.writers.iter().map(writers));
        let all = all.chain(costs.iter().flat_map(cost).map(cost_at));
        all.map(|(kind, name, trial)| Experiment { kind, name, trial }).collect()
    }
}

/// The readahead size whose misses without the series are nearest to the published ones, among
/// sizes at which the job makes progress.
pub fn infer_read_ahead(sweep: &[TriedExperiment]) -> Option<u64> {
    let misses = PUBLISHED.rows.iter().filter(|row| !row.with_series());
    let misses: Vec<f64> = misses.map(|row| row.miss_drop_pct).collect();
    let published = misses.iter().sum::<f64>() / misses.len() as f64;
    let off = |tried: &TriedExperiment| {
        let (trial, run) = &tried.both[0];
        Some(((run.miss_percent()? - published).abs(), trial.read_ahead_pages))
    };
    let nearest = sweep.iter().filter_map(off).min_by(|one, other| one.0.total_cmp(&other.0));
    nearest.map(|(_, pages)| pages)
}

fn base(read_ahead_pages: u64, seed: u64, seconds: u64) -> Trial {
    Trial {
        with_series: false,
        seed,
        threads: THREADS,
        cpus: PUBLISHED_CPUS,
        file_pages: FILE_PAGES,
        read_ahead_pages,
        high_pages: HIGH_PAGES,
        max_pages: MAX_PAGES,
        writers: 0,
        one_vma: false,
        change: None,
        seconds,
    }
}

/// `trial` with `threads` threads and the same memory for each.
fn with_threads(trial: &Trial, threads: u64) -> Trial {
    let share = |pages: u64| pages * threads / THREADS;
    let (high_pages, max_pages) = (share(HIGH_PAGES), share(MAX_PAGES));
    Trial { threads, high_pages, max_pages, ..trial.clone() }
}
