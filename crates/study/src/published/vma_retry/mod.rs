//! The vma-retry series: 500 threads that read files of their own under one memory cgroup.

mod cells;
mod notes;
mod plan;
mod run;
mod tables;
mod trial;

use filemap_job::{DEFAULT_SEED, seeds};

use self::cells::Variant;
use self::plan::Experiment;
pub use self::plan::Form;
pub use self::run::run_all;
pub use self::tables::{parts, rows};
use self::trial::Simulation;
pub use self::trial::{Trial, Trials};
use super::cell::Cell;
use super::{Ran, Study};
use crate::error::Error;
use crate::footer::Origin;

pub const NAME: &str = "vma-retry";

/// The experiment that the published figures are of.
const PUBLISHED_JOB: &str = "published job";

/// Seeds of the published job where none are given. Fewer decide nothing: runs of the job differ.
const LEAST_SEEDS: usize = 5;

/// Bytes of a page, in KiB.
const PAGE_KIB: u64 = 4;

/// The study of the series.
pub struct VmaRetry {
    seeds: Vec<u64>,
    form: Form,
    simulation: Simulation,
}

impl VmaRetry {
    /// The study with `count` seeds, 1 or more.
    ///
    /// # Errors
    /// A machine profile that is not to be had.
    pub fn new(count: Option<u64>, form: Form) -> Result<Self, Error> {
        let seeds = seeds(DEFAULT_SEED, count.unwrap_or(LEAST_SEEDS as u64)).collect();
        Ok(VmaRetry { seeds, form, simulation: run::simulation()? })
    }

    fn experiments(&self, read_ahead_pages: u64) -> Vec<Experiment> {
        self.form.experiments(read_ahead_pages, self.seeds[0], &self.simulation)
    }

    /// The readahead size that was inferred from `known`, or where none can be, the smallest.
    fn read_ahead_pages(&self, known: &Trials) -> u64 {
        let sweep = self.form.read_ahead_sweep(self.seeds[0]);
        let smallest = sweep[0].trials[0].read_ahead_pages;
        self.form.inferred(self.seeds[0], known).unwrap_or(smallest)
    }
}

impl Study for VmaRetry {
    /// First the sweep over readahead sizes, then all others at the size that follows from it.
    fn trials(&self, known: &Trials) -> Vec<Trial> {
        let mut all: Vec<Trial> = Vec::new();
        let mut add = |trials: &[Trial]| {
            for trial in trials {
                if known.find(trial).is_none() && !all.contains(trial) {
                    all.push(trial.clone());
                }
            }
        };
        let sweep = self.form.read_ahead_sweep(self.seeds[0]);
        sweep.iter().for_each(|experiment| add(&experiment.trials));
        if sweep.iter().flat_map(|of| &of.trials).any(|trial| known.find(trial).is_none()) {
            return all;
        }
        let pages = self.read_ahead_pages(known);
        self.form.job(pages, &self.seeds).iter().for_each(|pair| add(pair));
        self.experiments(pages).iter().for_each(|experiment| add(&experiment.trials));
        all
    }

    fn cells(&self, ran: &Ran<'_>) -> Vec<Cell> {
        let known = ran.trials;
        let pages = self.read_ahead_pages(known);
        let trials = self.form.job(pages, &self.seeds);
        let variants = Variant::both(&trials, known);
        let mut cells = cells::beside(&variants, pages * PAGE_KIB, &self.simulation);
        cells.extend(cells::ratios(&variants, pages * PAGE_KIB));
        cells.extend(variants.iter().map(Variant::cell));
        let sweep = self.form.read_ahead_sweep(self.seeds[0]);
        let experiments = self.experiments(pages);
        let all = sweep.iter().chain(&experiments);
        cells.extend(all.flat_map(|experiment| cells::tried(experiment, known)));
        cells
    }

    fn origin(&self, _: &Ran<'_>) -> Option<Origin> {
        Some(Origin {
            engine: "model".to_string(),
            kernel: Some(self.simulation.kernel.clone()),
            environment: self.simulation.environment.clone(),
        })
    }
}
