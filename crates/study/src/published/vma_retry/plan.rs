//! What is run: the published job, and what experiments make of it.

use super::data::{PUBLISHED, PUBLISHED_CPUS, PUBLISHED_JOB};
use super::trial::{Trial, TrialRun};
use crate::published::study::Length;

/// The published job, in pages of 4 KiB.
const THREADS: u64 = 500;
const FILE_PAGES: u64 = 4096;
const HIGH_PAGES: u64 = 1 << 18;
const MAX_PAGES: u64 = (12 << 18) / 10;

/// How long trials run, and which there are.
#[derive(Clone, Copy)]
pub struct Form {
    /// Virtual seconds of the published job, of the sweep over readahead sizes, and of the
    /// experiments.
    job: u64,
    sweep: u64,
    experiments: u64,
    /// Readahead sizes in pages.
    read_ahead: &'static [u64],
    cpus: &'static [u64],
    threads: &'static [u64],
    /// Writers to one large VMA.
    writers: &'static [u64],
    /// At how many percent each cost is tried.
    percents: &'static [u64],
}

/// As long as the published runs.
const FULL: Form = Form {
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
const SHORT: Form = Form {
    job: 40,
    sweep: 30,
    experiments: 30,
    read_ahead: &[32, 256, 480, 640, 1024],
    cpus: &[8, 32, 128, 256],
    threads: &[64, 1000],
    writers: &[0, 2],
    percents: &[],
};

/// The published job, and what the readahead size is inferred from.
const BRIEF: Form =
    Form { read_ahead: &[256, 480, 640], cpus: &[], threads: &[], writers: &[], ..SHORT };

/// The experiment with one large VMA is a smaller job: so many times fewer threads, CPUs and pages.
const SMALLER: u64 = 8;

/// One condition.
pub struct Experiment {
    /// What it belongs to, and its name there.
    pub kind: &'static str,
    pub name: String,
    /// It without the series.
    pub trial: Trial,
}

/// An experiment with its trials, without the series and with it, and what these came to.
pub struct Tried {
    pub of: Experiment,
    pub both: [(Trial, TrialRun); 2],
}

impl Form {
    /// Of the experiments only the sweep over readahead sizes is left in a brief report.
    pub fn of(length: Length) -> Form {
        match length {
            Length::Full => FULL,
            Length::Short => SHORT,
            Length::Brief => BRIEF,
        }
    }

    /// The published job with each of `seeds`.
    pub fn job(&self, read_ahead_pages: u64, seeds: &[u64]) -> Vec<Experiment> {
        let of = |seed: &u64| Experiment {
            kind: PUBLISHED_JOB,
            name: PUBLISHED_JOB.to_string(),
            trial: base(read_ahead_pages, *seed, self.job),
        };
        seeds.iter().map(of).collect()
    }

    /// The published job over readahead sizes.
    pub fn read_ahead_sweep(&self, seed: u64) -> Vec<Experiment> {
        let of = |pages: &u64| Experiment {
            kind: "readahead",
            name: pages.to_string(),
            trial: base(*pages, seed, self.sweep),
        };
        self.read_ahead.iter().map(of).collect()
    }

    /// Everything else, at the readahead size that was inferred.
    pub fn experiments(
        &self,
        pages: u64,
        seed: u64,
        costs: &[(&'static str, u64)],
    ) -> Vec<Experiment> {
        let base = base(pages, seed, self.experiments);
        let smaller = with_threads(&base, THREADS / SMALLER);
        let smaller = Trial { one_vma: true, cpus: PUBLISHED_CPUS / SMALLER, ..smaller };
        let cpus = |&cpus: &u64| ("cpus", cpus.to_string(), Trial { cpus, ..base.clone() });
        let threads = |&of: &u64| ("threads", of.to_string(), with_threads(&base, of));
        let writers =
            |&of: &u64| ("one vma", of.to_string(), Trial { writers: of, ..smaller.clone() });
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

/// The size whose misses without the series are nearest to those that were published; of sizes with
/// which the job goes on.
pub fn inferred(sweep: &[Tried]) -> Option<u64> {
    let misses = PUBLISHED.rows.iter().filter(|row| !row.with_series());
    let misses: Vec<f64> = misses.map(|row| row.miss_drop_pct).collect();
    let published = misses.iter().sum::<f64>() / misses.len() as f64;
    let off = |tried: &Tried| {
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

/// `trial` of so many threads, with as much memory for each.
fn with_threads(trial: &Trial, threads: u64) -> Trial {
    let share = |pages: u64| pages * threads / THREADS;
    let (high_pages, max_pages) = (share(HIGH_PAGES), share(MAX_PAGES));
    Trial { threads, high_pages, max_pages, ..trial.clone() }
}
