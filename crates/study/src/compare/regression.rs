//! Decides which changes are regressions.

use filemap_job::program::{FileSpec, MappingSpec, ThreadPhaseSpec, ThreadSpec};
use filemap_job::{EngineKind, JobSpec, Record};
use filemap_report::Better;
use filemap_report::units::change;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figures::{ELAPSED, FIGURES, Figure, FigureInput, figure_inputs};
use crate::json::serialize_shortest;
use crate::verdict::{Margin, is_worse, median_or_zero};

/// Smallest relative fall of the time that outweighs another figure's rise.
const MIN_GAIN: f64 = 0.05;

/// Smallest relative rise of a median that counts as a regression.
const NOISE: Margin = Margin::share(0.01);

/// A lower-is-better figure that rose by more than noise.
///
/// Its median rose by more than 1 %, and by more than chance explains: with enough runs on both
/// sides the permutation test on ranks is significant; with too few for the test, every run is
/// worse than every run before. A single measured time is never a regression. Cells whose work
/// differs from the first cell's (another file, other accesses) or that ran on another engine are
/// not judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Regression {
    /// Median in this variant.
    #[serde(serialize_with = "serialize_shortest")]
    pub after: f64,
    /// Median in the first variant.
    #[serde(serialize_with = "serialize_shortest")]
    pub before: f64,
    /// Key of the figure.
    pub counter: String,
    /// The path of the job file, where several are compared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub job_file: Option<String>,
    /// Whether the variant takes less time by at least as large a share, and at least 5 %.
    #[serde(default)]
    pub outweighed: bool,
    pub variant: String,
}

/// The regressions of each record against the first one of its engine.
pub(super) fn find_regressions(records: &[&Record]) -> Vec<Vec<Regression>> {
    let first = |own: &Record| records.iter().find(|first| first.engine == own.engine);
    let against_first =
        |own: &&Record| first(own).map_or(Vec::new(), |first| regressions(first, own));
    records.iter().map(against_first).collect()
}

/// The regressions of `own` against `first`.
fn regressions(first: &Record, own: &Record) -> Vec<Regression> {
    // Threads that run for a fixed time read more when they get more done.
    if own.engine != first.engine || work(&own.job) != work(&first.job) || runs_for_a_time(own) {
        return Vec::new();
    }
    let is_measured = own.engine == EngineKind::Kernel.name();
    let both = [first, own].map(|record| figure_inputs(record, None));
    let gain = time_gain(&both, is_measured);
    let regression = |figure: &Figure| {
        let [before, after] = both.each_ref().map(|seen| figure.values_of_runs(seen));
        let is_one_time = figure.key == ELAPSED && before.len().min(after.len()) < 2;
        let is_worse = is_worse(&before, &after, NOISE) && !(is_measured && is_one_time);
        is_worse.then(|| {
            let [before, after] = [&before, &after].map(|values| median_or_zero(values));
            let is_outweighed = gain >= MIN_GAIN && after - before <= gain * before;
            Regression {
                after,
                before,
                counter: figure.key.to_string(),
                job_file: None,
                outweighed: figure.key != ELAPSED && is_outweighed,
                variant: String::new(),
            }
        })
    };
    FIGURES.iter().filter(|figure| figure.better == Better::Less).filter_map(regression).collect()
}

/// The relative fall of the time from the first to the second; 0 if it is not known to fall.
fn time_gain(both: &[Vec<FigureInput<'_>>; 2], is_measured: bool) -> f64 {
    let Some(figure) = FIGURES.iter().find(|figure| figure.key == ELAPSED) else { return 0.0 };
    let [before, after] = both.each_ref().map(|seen| figure.values_of_runs(seen));
    if before.is_empty() || !is_worse(&after, &before, NOISE) {
        return 0.0;
    }
    let is_one_time = is_measured && before.len().min(after.len()) < 2;
    let [before, after] = [before, after].map(|values| median_or_zero(&values));
    if is_one_time { 0.0 } else { 1.0 - after / before }
}

/// Whether its threads run for a fixed time instead of a fixed number of rounds.
fn runs_for_a_time(record: &Record) -> bool {
    record.job.thread.iter().any(|thread| thread.lasts.is_some())
}

/// The files, mappings and accesses of a job, without the settings that a variant may change.
fn work(job: &JobSpec) -> JobSpec {
    let file = |file: &FileSpec| FileSpec {
        size: file.size.clone(),
        path: file.path.clone(),
        ..FileSpec::default()
    };
    let mapping = |mapping: &MappingSpec| MappingSpec {
        offset: mapping.offset.clone(),
        len: mapping.len.clone(),
        ..MappingSpec::default()
    };
    let accesses = job.thread.iter().map(|thread| {
        let phases = thread.phase.iter().filter(|phase| phase.has_accesses());
        let phase = phases.map(|phase| ThreadPhaseSpec { write: false, ..phase.clone() });
        ThreadSpec { phase: phase.collect(), ..ThreadSpec::default() }
    });
    JobSpec {
        seed: job.seed,
        file: job.file.iter().map(file).collect(),
        mapping: job.mapping.iter().map(mapping).collect(),
        thread: accesses.collect(),
        ..JobSpec::default()
    }
}

/// Formats the regressions of `variant`, whose record is `own`: `vma-bound, split 16: 1 -> 4096
/// major faults`.
pub(super) fn line(variant: &str, own: &Record, regressions: &[Regression]) -> Option<String> {
    let texts: Vec<String> = regressions.iter().map(Regression::text).collect();
    let split = own.job.mapping.iter().find_map(|mapping| mapping.split);
    let split = split.filter(|_| !variant.contains("split="));
    let split = split.map_or(String::new(), |pages| format!(", split {pages}"));
    (!texts.is_empty()).then(|| format!("{variant}{split}: {}", texts.join(", ")))
}

impl Regression {
    fn text(&self) -> String {
        let figure = FIGURES.iter().find(|figure| figure.key == self.counter);
        let figure = figure.expect("it is one of these");
        let [before, after] = [self.before, self.after].map(|value| figure.unit.text(value));
        let text = format!("{before} -> {after} {}", figure.name);
        match self.before {
            0.0 => text,
            _ => format!("{text} ({})", change(self.before, self.after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::{Counters, JobFlags, Run};
    use serde_json::Map;

    use super::*;

    fn record(engine: &str, keys: &str, runs: &[(u64, u64)]) -> Record {
        let toml = format!("workload = 'random'\nfile_size = '1m'\n{keys}");
        let job = JobFlags::from_toml(&toml).unwrap().validate(None).unwrap();
        let run = |&(major, elapsed): &(u64, u64)| Run {
            counters: Counters { major_faults: Some(major), ..Counters::default() },
            elapsed_ns: Some(elapsed),
            ..Run::default()
        };
        Record::new(&job, engine, Map::new(), runs.iter().map(run).collect())
    }

    /// 3.9 % more major faults are the price of 74 % less time; ten times as many are not.
    #[test]
    fn a_shorter_time_outweighs_a_smaller_rise() {
        let first = record("model", "", &[(1000, 1000)]);
        let outweighed = |major, elapsed| {
            let own = record("model", "", &[(major, elapsed)]);
            let found = regressions(&first, &own);
            found.iter().map(|own| own.outweighed).collect::<Vec<_>>()
        };
        assert_eq!(outweighed(1039, 260), [true]);
        assert_eq!(outweighed(10_000, 260), [false]);
        assert_eq!(outweighed(1039, 970), [false]);
        assert_eq!(outweighed(1039, 1000), [false]);
    }

    #[test]
    fn a_regression_is_named() {
        let [first, own] =
            [(1, 1000), (4096, 900)].map(|run| record("model", "split = 16", &[run]));
        let found = regressions(&first, &own);
        let line = line("vma-bound", &own, &found);
        assert_eq!(line.unwrap(), "vma-bound, split 16: 1 -> 4096 major faults (x 4096)");
        assert_eq!(regressions(&own, &first).len(), 1, "of the time");
        assert_eq!(super::line("p1", &own, &[]), None);
    }

    #[test]
    fn other_work_and_engines_are_not_compared() {
        let first = record("model", "accesses = 5", &[(1, 1)]);
        assert_eq!(regressions(&first, &record("model", "accesses = 9", &[(9, 9)])), []);
        assert_eq!(regressions(&first, &record("kernel", "accesses = 5", &[(9, 9)])), []);
        let other = "accesses = 5\nread_ahead_kb = 16";
        assert_eq!(regressions(&first, &record("model", other, &[(9, 9)])).len(), 2);
    }

    #[test]
    fn a_single_measured_time_says_nothing() {
        let kernel = |time| record("kernel", "", &[(1, time)]);
        assert_eq!(regressions(&kernel(100), &kernel(900)), []);
        let model = |time| record("model", "", &[(1, time)]);
        assert_eq!(regressions(&model(100), &model(900)).len(), 1);
    }
}
