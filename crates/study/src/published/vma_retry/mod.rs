//! The vma-retry series: 500 threads that read files of their own under one memory cgroup.

mod cells;
mod notes;
mod plan;
mod run;
mod tables;
mod trial;

use filemap_job::{DEFAULT_SEED, Record, seeds};

use self::cells::Variant;
pub use self::plan::Form;
pub use self::tables::{parts, rows};
use self::trial::{Simulation, Trials};
use super::{Begin, Found, Study};
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

    /// What is found by `run`: first over the sweep of readahead sizes, then over all others at the
    /// size that follows from it; where none does, at the smallest.
    fn found_by(&self, run: &run::Run<'_>) -> Result<Found, Error> {
        let mut known = Trials::default();
        let seed = self.seeds[0];
        let mut all = self.form.read_ahead_sweep(seed);
        known.run(all.iter().flat_map(|of| &of.trials), run)?;
        let smallest = all[0].trials[0].read_ahead_pages;
        let pages = self.form.inferred(seed, &known).unwrap_or(smallest);
        let trials = self.form.job(pages, &self.seeds);
        let experiments = self.form.experiments(pages, seed, &self.simulation);
        let others = experiments.iter().flat_map(|of| &of.trials);
        known.run(trials.iter().flatten().chain(others), run)?;
        all.extend(experiments);
        let variants = Variant::both(&trials, &known);
        let mut cells = cells::beside(&variants, pages * PAGE_KIB, &self.simulation);
        cells.extend(cells::ratios(&variants, pages * PAGE_KIB));
        cells.extend(variants.iter().map(Variant::cell));
        cells.extend(all.iter().flat_map(|experiment| cells::tried(experiment, &known)));
        let origin = Origin {
            engine: "model".to_string(),
            kernel: Some(self.simulation.kernel.clone()),
            environment: self.simulation.environment.clone(),
        };
        Ok(Found { series: NAME, cells, origin: Some(origin) })
    }
}

impl Study for VmaRetry {
    fn found(&self, _: &[Record], begin: &Begin<'_>) -> Result<Found, Error> {
        self.found_by(&|trials| run::beside(trials, &*begin(trials.len() as u64)))
    }
}
