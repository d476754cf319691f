//! The vma-retry series: 500 threads that each read a file of their own in one memory cgroup.

mod cells;
mod data;
mod plan;
mod trial;

use filemap_job::{DEFAULT_SEED, Record, seeds};
use filemap_report::units::time;

use self::cells::TrialVariant;
pub use self::data::NAME;
use self::data::{MIN_SEEDS, PAGE_KIB, PUBLISHED, PUBLISHED_JOB};
use self::plan::{Experiment, StudyExtent, TriedExperiment};
use self::trial::{RunTrials, Trial};
use super::cell::Cell;
use super::data::{Notes, Series};
use super::study::{
    BeginProgress, PublishedOptions, SeriesFindings, Study, StudyLength, StudyResult,
};
use crate::error::Error;
use crate::spread::seeds_phrase;

/// The study of the series.
struct VmaRetry {
    seeds: Vec<u64>,
    form: StudyExtent,
    costs: Vec<(&'static str, u64)>,
}

/// The study with `options.seeds`.
///
/// # Errors
/// If the machine profile cannot be read.
pub fn study(options: &PublishedOptions, length: StudyLength) -> StudyResult {
    Ok(Box::new(VmaRetry::new(options.seeds, length)?))
}

/// Number of published figures: three for each run.
pub fn figures() -> usize {
    3 * PUBLISHED.rows.len()
}

impl VmaRetry {
    fn new(count: Option<u64>, length: StudyLength) -> Result<Self, Error> {
        let seeds = seeds(DEFAULT_SEED, count.unwrap_or(MIN_SEEDS as u64)).collect();
        Ok(VmaRetry { seeds, form: StudyExtent::for_length(length), costs: trial::costs()? })
    }

    /// Runs the sweep over readahead sizes, then everything else at the inferred size, or at the
    /// smallest if none can be inferred.
    fn find_with(&self, run: &RunTrials<'_>) -> Result<SeriesFindings, Error> {
        let seed = self.seeds[0];
        let sweep = run_experiments(self.form.read_ahead_sweep(seed), run)?;
        let smallest = sweep[0].both[0].0.read_ahead_pages;
        let pages = plan::infer_read_ahead(&sweep).unwrap_or(smallest);
        let mut all = self.form.job(pages, &self.seeds);
        all.extend(self.form.experiments(pages, seed, &self.costs));
        let all = run_experiments(all, run)?;
        let (job, experiments) = all.split_at(self.seeds.len());
        let variants = TrialVariant::variants(job);
        let mut cells = cells::published_cells(&variants, &self.costs);
        cells.push(cells::ratio_of_all(&variants));
        cells.extend(variants.iter().map(TrialVariant::cell));
        cells.extend(sweep.iter().chain(experiments).flat_map(cells::experiment_cells));
        Ok((cells, Some(trial::origin(&self.costs))))
    }
}

impl Study for VmaRetry {
    fn find(&self, _: &[Record], begin: &BeginProgress<'_>) -> Result<SeriesFindings, Error> {
        self.find_with(&|trials| trial::run_in_parallel(trials, &*begin(trials.len() as u64)))
    }
}

/// Runs `experiments` without and with the series.
fn run_experiments(
    experiments: Vec<Experiment>,
    run: &RunTrials<'_>,
) -> Result<Vec<TriedExperiment>, Error> {
    let both = |experiment: &Experiment| {
        [false, true].map(|with_series| Trial { with_series, ..experiment.trial.clone() })
    };
    let trials: Vec<Trial> = experiments.iter().flat_map(both).collect();
    let mut runs = trials.clone().into_iter().zip(run(&trials)?);
    let tried = |experiment: Experiment| {
        let both = [(); 2].map(|()| runs.next().expect("there is a run of each trial"));
        TriedExperiment { experiment, both }
    };
    Ok(experiments.into_iter().map(tried).collect())
}

/// Values for the placeholders of the notes.
pub fn notes<'a>(series: &Series, cells: &'a [Cell]) -> Notes<'a> {
    let experiment_cells =
        |experiment: &'a str| cells.iter().filter(move |cell| cell.belongs_to(experiment));
    let once = |is_so: bool| if is_so { vec![Vec::new()] } else { Vec::new() };
    let mut variants = experiment_cells(PUBLISHED_JOB).filter(|cell| cell.at("seeds").is_some());
    let [before, after] = [(); 2].map(|()| variants.next());
    let length = match (experiment_cells("sensitivity").next(), experiment_cells("cpus").next()) {
        (Some(_), _) => StudyLength::Full,
        (None, Some(_)) => StudyLength::Short,
        (None, None) => StudyLength::Brief,
    };
    let count = |place: &str| before.map_or(0, |cell| cell.count(place));
    let form = vec![
        ("seconds", count("conditions/seconds").to_string()),
        ("seeds", seeds_phrase(count("seeds") as usize)),
        ("length", series.note(length.note(), &[])),
    ];
    let kib = cells.first().and_then(|cell| cell.read_ahead_kb).unwrap_or_default();
    let mut swept = experiment_cells("readahead").filter(|cell| cell.read_ahead_kb == Some(kib));
    let misses = swept.find(|cell| cell.variant.as_deref() == Some("baseline"));
    let misses = misses.and_then(|cell| cell.number("misses_per_100_drops"));
    let mut size = vec![("pages", (kib / PAGE_KIB).to_string()), ("kib", kib.to_string())];
    size.extend(misses.map(|misses| ("model", format!("{misses:.1}"))));
    let cost = cells.first().and_then(|cell| cell.assumed.as_ref()?.get("evict_page_ns")?.as_f64());
    let cost = cost.map_or(String::new(), |ns| format!(" ({})", time(ns)));
    let is_judged = cells.iter().any(|cell| cell.ok.is_some());
    let rounds = |cell: Option<&Cell>| cell.and_then(|cell| cell.number("rounds_s/median"));
    let stalls = rounds(after) < rounds(before).map(|rounds| rounds / 2.0);
    let [inferred, not_inferred] = match misses {
        Some(_) => [vec![size], Vec::new()],
        None => [Vec::new(), vec![size]],
    };
    vec![
        ("form", vec![form]),
        ("inferred", inferred),
        ("not_inferred", not_inferred),
        ("evicting", vec![vec![("cost", cost)]]),
        ("judged", once(is_judged)),
        ("convoy", once(is_judged)),
        ("not_judged", once(!is_judged)),
        ("stalls", once(stalls)),
        ("one_vma", once(experiment_cells("one vma").next().is_some())),
    ]
}

#[cfg(test)]
mod tests;
