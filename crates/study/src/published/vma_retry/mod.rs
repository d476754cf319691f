//! The vma-retry series: 500 threads that read files of their own under one memory cgroup.

mod causes;
mod figures;
mod flat;
mod notes;
mod plan;
mod tables;
mod trial;

use filemap_job::{DEFAULT_SEED, Job, seeds};

use self::figures::{Beside, VariantPair};
use self::plan::{Experiment, Kind};
pub use self::plan::{Form, PUBLISHED_CPUS};
use self::tables::Tried;
pub use self::trial::{Change, Simulation, Span, Trial, TrialRun, Trials};
use super::data::PUBLISHED;
use super::{Findings, Ran, Study};
use crate::footer::Origin;
use filemap_report::Part;

/// Seeds of the published job where none are given.
const DEFAULT_SEEDS: u64 = 5;

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
    pub fn new(count: Option<u64>, form: Form, simulation: Simulation) -> Self {
        let seeds = seeds(DEFAULT_SEED, count.unwrap_or(DEFAULT_SEEDS)).collect();
        VmaRetry { seeds, form, simulation }
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
    fn jobs(&self) -> Vec<Job> {
        Vec::new()
    }

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

    fn findings(&self, ran: &Ran<'_>) -> Findings {
        let known = ran.trials;
        let sweep = self.form.read_ahead_sweep(self.seeds[0]);
        let pages = self.read_ahead_pages(known);
        let experiments = self.experiments(pages);
        let tried: Vec<Tried> =
            sweep.iter().chain(&experiments).map(|of| Tried::new(of, known)).collect();
        let pair = VariantPair::new(&self.form.job(pages, &self.seeds), known);
        let beside = Beside::all(&pair);
        let mut assumed = vec![("cpus", PUBLISHED_CPUS)];
        assumed.extend(&self.simulation.costs);
        let mut cells: Vec<_> =
            beside.iter().map(|beside| beside.json(pages * PAGE_KIB, &assumed)).collect();
        cells.extend(flat::ratio_json(&pair, pages * PAGE_KIB));
        cells.extend(pair.variants.iter().map(|variant| flat::variant_json(variant)));
        cells.extend(tried.iter().flat_map(flat::tried_json));
        Findings {
            parts: self.parts(&pair, &beside, &tried, pages),
            rows: flat::rows(&beside, &pair, &tried),
            cells,
            source: &PUBLISHED.vma_retry.source,
            failed: beside.iter().filter(|beside| beside.ok() == Some(false)).count(),
            origin: Some(Origin {
                engine: "model".to_string(),
                kernel: Some(self.simulation.kernel.clone()),
                environment: self.simulation.environment.clone(),
            }),
        }
    }
}

impl VmaRetry {
    fn parts(
        &self,
        pair: &VariantPair,
        beside: &[Beside],
        tried: &[Tried],
        pages: u64,
    ) -> Vec<Part> {
        let of = |kind: Kind| of_kind(tried, kind);
        let mut parts = PUBLISHED.vma_retry.source.parts();
        let paragraph = |text: String| Part::Paragraph(text);
        parts.push(paragraph(notes::form(&self.form, self.seeds.len())));
        parts.push(paragraph(notes::inferred(&of(Kind::ReadAhead), pages)));
        parts.push(paragraph(notes::evicting(&self.form, pages, &self.simulation.costs)));
        parts.extend(tables::rows(pair).map(Part::Table));
        parts.push(Part::Table(tables::judged(beside)));
        parts.push(paragraph(notes::verdicts(beside)));
        parts.push(paragraph(notes::ratio(pair, &of(Kind::Cpus))));
        parts.push(Part::Table(causes::table(pair)));
        parts.push(paragraph(notes::causes()));
        let sweep = of(Kind::ReadAhead);
        parts.push(Part::Table(tables::pairs(Kind::ReadAhead, &sweep, pages)));
        parts.push(paragraph(notes::sweep(&sweep)));
        if self.form.has_experiments {
            parts.extend(self.experiments_parts(tried, pages));
        }
        parts.push(paragraph(notes::costs(&self.form)));
        parts
    }

    /// What else the job may have.
    fn experiments_parts(&self, tried: &[Tried], pages: u64) -> Vec<Part> {
        let of = |kind: Kind| of_kind(tried, kind);
        let mut parts = Vec::new();
        for kind in [Kind::Cpus, Kind::Threads] {
            parts.push(Part::Table(tables::pairs(kind, &of(kind), pages)));
        }
        parts.push(Part::Table(tables::one_vma(&of(Kind::OneVma))));
        parts.push(Part::Paragraph(notes::one_vma()));
        if self.form.has_sensitivity {
            let costs = &self.simulation.costs;
            parts.push(Part::Table(tables::sensitivity(&of(Kind::Sensitivity), costs)));
        }
        parts
    }
}

fn of_kind<'a>(tried: &[Tried<'a>], kind: Kind) -> Vec<Tried<'a>> {
    tried.iter().filter(|tried| tried.experiment.kind == kind).copied().collect()
}
