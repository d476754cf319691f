//! What is run: the published job, and what experiments make of it.

use super::trial::{Change, Simulation, Trial, Trials};
use crate::published::data::{PUBLISHED, RetryRow};

/// The published job, in pages of 4 KiB.
const THREADS: u64 = 500;
const FILE_PAGES: u64 = 4096;
const HIGH_PAGES: u64 = 1 << 18;
const MAX_PAGES: u64 = (12 << 18) / 10;

/// CPUs of the published machine.
pub const PUBLISHED_CPUS: u64 = 256;

/// How long trials run, and which there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// There are experiments besides the sweep over readahead sizes.
    has_experiments: bool,
    /// Each cost is halved and doubled.
    has_sensitivity: bool,
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
    has_experiments: true,
    has_sensitivity: true,
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
    has_experiments: true,
    has_sensitivity: false,
};

/// The published job, and what the readahead size is inferred from.
const BRIEF: Form = Form { read_ahead: &[256, 480, 640], has_experiments: false, ..SHORT };

/// The experiment with one large VMA is a smaller job: so many times fewer threads, CPUs and pages.
pub(super) const SMALLER: u64 = 8;

/// Percentages at which each cost is tried.
pub(super) const COST_PERCENTS: [u64; 2] = [50, 200];

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Experiment {
    /// What it belongs to.
    pub kind: &'static str,
    /// Its name there.
    pub name: String,
    /// Without the series and with it; with it only where that is asked for.
    pub trials: Vec<Trial>,
}

/// What experiments are about: their names in JSON and CSV.
pub(super) const READ_AHEAD: &str = "readahead";
pub(super) const CPUS: &str = "cpus";
pub(super) const THREADS_OF: &str = "threads";
pub(super) const ONE_VMA: &str = "one vma";
pub(super) const SENSITIVITY: &str = "sensitivity";

impl Form {
    /// The published length, or else the short form, of which only the published job is left where
    /// the series is not asked for by name.
    pub fn of(full: bool, is_named: bool) -> Form {
        match (full, is_named) {
            (true, _) => FULL,
            (false, true) => SHORT,
            (false, false) => BRIEF,
        }
    }

    /// The published job with this readahead size, without the series and with it, for each seed.
    pub(super) fn job(&self, read_ahead_pages: u64, seeds: &[u64]) -> Vec<[Trial; 2]> {
        let of_seed = |seed: &u64| pair(&base(read_ahead_pages, *seed, self.job));
        seeds.iter().map(of_seed).collect()
    }

    /// The published job over readahead sizes.
    pub(super) fn read_ahead_sweep(&self, seed: u64) -> Vec<Experiment> {
        let of_size = |pages: &u64| Experiment {
            kind: READ_AHEAD,
            name: pages.to_string(),
            trials: pair(&base(*pages, seed, self.sweep)).to_vec(),
        };
        self.read_ahead.iter().map(of_size).collect()
    }

    /// The size of the sweep whose misses without the series are nearest to those that were
    /// published; of sizes with which the job goes on.
    pub(super) fn inferred(&self, seed: u64, known: &Trials) -> Option<u64> {
        let off = |experiment: &Experiment| {
            let run = known.find(&experiment.trials[0])?;
            let off = (run.miss_percent() - published_miss_percent()).abs();
            (!run.jams()).then_some((off, experiment.trials[0].read_ahead_pages))
        };
        let sweep = self.read_ahead_sweep(seed);
        let best = sweep.iter().filter_map(off).min_by(|(one, _), (other, _)| one.total_cmp(other));
        best.map(|(_, pages)| pages)
    }

    /// Everything else, at the readahead size that was inferred.
    pub(super) fn experiments(&self, pages: u64, seed: u64, of: &Simulation) -> Vec<Experiment> {
        if !self.has_experiments {
            return Vec::new();
        }
        let base = base(pages, seed, self.experiments);
        let mut all = Vec::new();
        let mut add = |kind: &'static str, name: String, trials: &[Trial]| {
            all.push(Experiment { kind, name, trials: trials.to_vec() });
        };
        for &cpus in self.cpus {
            add(CPUS, cpus.to_string(), &pair(&Trial { cpus, ..base.clone() }));
        }
        for &threads in self.threads {
            add(THREADS_OF, threads.to_string(), &pair(&with_threads(&base, threads)));
        }
        for &writers in self.writers {
            let smaller = with_threads(&base, THREADS / SMALLER);
            let cpus = PUBLISHED_CPUS / SMALLER;
            let trial = Trial { one_vma: true, writers, cpus, ..smaller };
            add(ONE_VMA, writers.to_string(), &pair(&trial));
        }
        for &(name, _) in of.costs.iter().filter(|_| self.has_sensitivity) {
            for percent in COST_PERCENTS {
                let trial = Trial { change: Change::Cost(name, percent), ..base.clone() };
                add(SENSITIVITY, format!("{name} at {percent} %"), &pair(&trial));
            }
        }
        all
    }
}

/// Misses of 100 drops of the published baselines, on average.
pub(super) fn published_miss_percent() -> f64 {
    let misses: Vec<f64> = baselines().map(|row| row.miss_drop_pct).collect();
    misses.iter().sum::<f64>() / misses.len() as f64
}

/// The published rows without the series.
pub(super) fn baselines() -> impl Iterator<Item = &'static RetryRow> {
    PUBLISHED.vma_retry.rows.iter().filter(|row| !row.with_series())
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
        change: Change::None,
        seconds,
    }
}

/// `trial` of so many threads, with as much memory for each.
fn with_threads(trial: &Trial, threads: u64) -> Trial {
    let share = |pages: u64| pages * threads / THREADS;
    let (high_pages, max_pages) = (share(HIGH_PAGES), share(MAX_PAGES));
    Trial { threads, high_pages, max_pages, ..trial.clone() }
}

/// `trial` without the series and with it.
fn pair(trial: &Trial) -> [Trial; 2] {
    [false, true].map(|with_series| Trial { with_series, ..trial.clone() })
}
