//! What is called a regression.

use filemap_job::{EngineKind, JobSpec, Record, Run};
use serde_json::{Value, json};

use crate::verdict::{Margin, is_worse, median_of, samples};
use filemap_report::units::{bytes, change, number, time};

/// A figure has to rise by more than this share of itself.
const NOISE: Margin = Margin::share(0.01);

/// A counter of which less is better that got worse by more than noise.
///
/// That is: its median rose by more than 1 %, and by more than chance explains. Where both sides
/// have several runs, the permutation test on ranks has to say so at its usual level; where they
/// are too few for it, every run has to be worse than every run before. A single measured time is
/// never called a regression. Cells that do other work than the first (another file, other
/// accesses) or run on another engine have none.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// The counter's name in records.
    pub counter: &'static str,
    /// Its median before.
    pub before: f64,
    /// Its median now.
    pub after: f64,
}

/// A counter of which less is better: name, figure of a run, how reports write it.
type Counter = (&'static str, fn(&Run) -> Option<u64>, fn(f64, f64) -> String);

const LESS_IS_BETTER: [Counter; 3] = [
    (
        "major_faults",
        |run| run.counters.major_faults,
        |before, after| format!("{} -> {} major faults", number(before), number(after)),
    ),
    (
        "bytes_read",
        |run| run.counters.bytes_read,
        |before, after| format!("{} -> {} read", bytes(before), bytes(after)),
    ),
    (
        "elapsed_ns",
        |run| run.elapsed_ns,
        |before, after| format!("{} -> {} elapsed", time(before), time(after)),
    ),
];

/// The regressions of `own` against `first`.
pub fn regressions(first: &Record, own: &Record) -> Vec<Regression> {
    // Threads that run for a time read more where they do more in it.
    if own.engine != first.engine
        || work(&own.job.flags()) != work(&first.job.flags())
        || runs_for_a_time(own)
    {
        return Vec::new();
    }
    let measured = own.engine == EngineKind::Kernel.name();
    let of = |&(counter, figure, _): &Counter| {
        let [before, after] =
            [first, own].map(|record| samples(record.runs.iter().filter_map(figure)));
        let one_time = counter == "elapsed_ns" && before.len().min(after.len()) < 2;
        let worse = is_worse(&before, &after, NOISE) && !(measured && one_time);
        worse.then(|| Regression { counter, before: median_of(&before), after: median_of(&after) })
    };
    LESS_IS_BETTER.iter().filter_map(of).collect()
}

/// Whether it makes rounds for a time, not so many.
fn runs_for_a_time(record: &Record) -> bool {
    record.job.flags().duration.is_some()
}

/// What a job does, without how it is served.
fn work(job: &JobSpec) -> JobSpec {
    JobSpec {
        workload: job.workload.clone(),
        accesses: job.accesses,
        accesses_file: job.accesses_file.clone(),
        seed: job.seed,
        bs: job.bs.clone(),
        file_size: job.file_size.clone(),
        file: job.file.clone(),
        map_offset: job.map_offset.clone(),
        map_len: job.map_len.clone(),
        phase: job.phase.clone(),
        ..JobSpec::default()
    }
}

/// The regressions of `variant`, whose record is `own`, as a line: `vma-bound, split 16: 1 -> 4096
/// major faults`.
pub fn line(variant: &str, own: &Record, regressions: &[Regression]) -> Option<String> {
    let texts: Vec<String> = regressions.iter().map(Regression::text).collect();
    let split = own.job.flags().split.filter(|_| !variant.contains("split="));
    let split = split.map_or(String::new(), |pages| format!(", split {pages}"));
    (!texts.is_empty()).then(|| format!("{variant}{split}: {}", texts.join(", ")))
}

impl Regression {
    fn text(&self) -> String {
        let (_, _, text) = LESS_IS_BETTER
            .iter()
            .find(|(counter, ..)| *counter == self.counter)
            .expect("it is of one of these counters");
        let by = change(self.before, self.after);
        match self.before {
            0.0 => text(self.before, self.after),
            _ => format!("{} ({by})", text(self.before, self.after)),
        }
    }

    /// It for JSON.
    pub fn json(&self, variant: &str) -> Value {
        json!({
            "variant": variant,
            "counter": self.counter,
            "before": whole_if_it_is(self.before),
            "after": whole_if_it_is(self.after),
        })
    }
}

/// A median without a decimal point, unless it is a half.
fn whole_if_it_is(median: f64) -> Value {
    if median.fract() == 0.0 { (median as u64).into() } else { median.into() }
}

#[cfg(test)]
mod tests {
    use filemap_job::Counters;
    use serde_json::Map;

    use super::*;

    fn record(engine: &str, keys: &str, runs: &[(u64, u64)]) -> Record {
        let toml = format!("workload = 'random'\nfile_size = '1m'\n{keys}");
        let job = JobSpec::from_toml(&toml).unwrap().validate(None).unwrap();
        let run = |&(major, elapsed): &(u64, u64)| Run {
            counters: Counters { major_faults: Some(major), ..Counters::default() },
            elapsed_ns: Some(elapsed),
            ..Run::default()
        };
        Record::new(&job, engine, Map::new(), runs.iter().map(run).collect())
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
    fn other_work_and_other_engines_are_not_held_against_each_other() {
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
