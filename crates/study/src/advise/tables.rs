//! Tables of what was tried.

use super::choice::{Beside, Choice};
use super::{Condition, Outcome, Study, Trial, answer};
use filemap_report::units::{number, time, time_range};
use filemap_report::{Head, Table, folded};

/// How the verdict on a trial is named, in tables and in JSON.
pub fn verdict(study: &Study, index: usize) -> &'static str {
    let trial = &study.trials[index];
    let own = trial.outcome.figures().verdict(study.now.figures());
    let (is_best, is_tied) = match answer(&study.now, &study.trials) {
        Choice::Best { best, ties, .. } => (best == index, ties.contains(&index)),
        Choice::Nothing => (false, false),
    };
    match own {
        Beside::ReadsMore => "reads more",
        Beside::Slower => "slower",
        Beside::Same => "no change",
        Beside::Better if is_best => "best",
        Beside::Better if is_tied => "tied",
        Beside::Better => "helps",
    }
}

/// All that was tried, the program as it is first.
pub fn tried(study: &Study) -> Table {
    let row = |label: String, outcome: &Outcome, verdict: &str| {
        vec![
            folded(&label, LABEL_COLUMNS),
            number(outcome.figures().pages),
            number(outcome.major_faults as f64),
            time(outcome.ns[0]),
            range(outcome),
            folded(verdict, VERDICT_COLUMNS),
        ]
    };
    let now = row("as it is".to_string(), &study.now, "");
    let trials = study.trials.iter().enumerate();
    let rows = trials
        .map(|(index, trial): (usize, &Trial)| {
            row(trial.label(), &trial.outcome, verdict(study, index))
        })
        .collect::<Vec<_>>();
    Table {
        title: String::new(),
        columns: vec![
            Head::left("tried"),
            Head::right("pages\nread"),
            Head::right("major\nfaults"),
            Head::right("time"),
            Head::right("least\nto most"),
            Head::left("verdict"),
        ],
        rows: [now].into_iter().chain(rows).collect(),
    }
}

/// Where the times of [`tried`] come from.
pub fn note(study: &Study) -> String {
    format!(
        "Times are predicted with the machine profile, whose device has a latency of {}; least to \
         most is with half and double of that, as a device's latency moves from hour to hour. \
         Readahead size {} KiB where nothing else is said. A verdict is on the whole program.",
        time(study.latency_ns as f64),
        study.read_ahead_kb
    )
}

/// `0.20 to 0.80 s`.
fn range(outcome: &Outcome) -> String {
    let least = outcome.ns.iter().copied().fold(f64::INFINITY, f64::min);
    let most = outcome.ns.iter().copied().fold(0.0, f64::max);
    time_range(least, most)
}

/// Most columns of what is tried, of a verdict, of another condition, and of what is best there: a
/// table is to fit into 80.
const LABEL_COLUMNS: usize = 19;
const VERDICT_COLUMNS: usize = 7;
const CONDITION_COLUMNS: usize = 18;
const BEST_COLUMNS: usize = 17;

/// The answer under other conditions.
pub fn conditions(study: &Study) -> Table {
    let figures =
        |outcome: &Outcome| format!("{}, {}", number(outcome.figures().pages), time(outcome.ns[0]));
    let row = |condition: &Condition| {
        let name = folded(&condition.name, CONDITION_COLUMNS);
        let Some(under) = &condition.under else {
            let nothing = folded("the program does not run so", BEST_COLUMNS);
            return vec![name, nothing, String::new(), String::new()];
        };
        let best = folded(under.best.as_deref().unwrap_or("nothing"), BEST_COLUMNS);
        let answer = under.answer.as_ref().map_or(String::new(), figures);
        vec![name, figures(&under.now), answer, best]
    };
    Table {
        title: String::new(),
        columns: vec![
            Head::left("with"),
            Head::right("as it is"),
            Head::right("with the answer"),
            Head::left("best there"),
        ],
        rows: study.conditions.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::Target;
    use super::super::{Change, Under};
    use super::*;
    use filemap_core::address::vma::ReadHint;

    /// Figures as large as those of real programs.
    #[test]
    fn tables_fit_into_80_columns() {
        let outcome = |pages: u64, ms: f64| Outcome {
            pages: vec![pages],
            major_faults: pages,
            ns: [ms * 1e6, ms * 5e5, ms * 2e6],
        };
        let on = Target { file: 0, name: "mapping 'data.mdb'".to_string(), numbers: vec![0] };
        let random = Change::Madvise(on.clone(), ReadHint::Sequential);
        let trials = vec![Trial {
            changes: vec![random, Change::WillNeed(on, vec![(0, 1)])],
            outcome: outcome(1_545_166, 999.9),
        }];
        let study = Study {
            name: String::new(),
            program: None,
            files: Vec::new(),
            now: outcome(12_345_678, 123_456.0),
            conditions: vec![Condition {
                name: "page cache of 123456m".to_string(),
                under: Some(Under {
                    now: outcome(12_345_678, 123_456.0),
                    answer: Some(outcome(12_345_678, 999.9)),
                    best: Some(trials[0].label()),
                }),
            }],
            trials,
            page_bytes: 4096,
            read_ahead_kb: 8192,
            latency_ns: 1,
            check: None,
            warnings: Vec::new(),
        };
        for table in [tried(&study), conditions(&study)] {
            let text = table.text();
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(80), "{text}");
        }
    }
}
