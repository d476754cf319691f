//! Tables of what was tried.

use super::choice::{Beside, Choice};
use super::{Condition, Outcome, Study, Trial, answer};
use crate::table::{Column, Table};
use crate::units::{number, time};

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
            label,
            number(outcome.figures().pages),
            number(outcome.major_faults as f64),
            time(outcome.ns[0]),
            range(outcome),
            verdict.to_string(),
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
            Column::left("tried"),
            Column::right("pages read"),
            Column::right("major faults"),
            Column::right("time"),
            Column::right("least to most"),
            Column::left("verdict"),
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

/// `0.2 s to 0.8 s`.
fn range(outcome: &Outcome) -> String {
    let least = outcome.ns.iter().copied().fold(f64::INFINITY, f64::min);
    let most = outcome.ns.iter().copied().fold(0.0, f64::max);
    format!("{} to {}", time(least), time(most))
}

/// The answer under other conditions.
pub fn conditions(study: &Study) -> Table {
    let figures =
        |outcome: &Outcome| format!("{}, {}", number(outcome.figures().pages), time(outcome.ns[0]));
    let row = |condition: &Condition| {
        let Some(under) = &condition.under else {
            let nothing = "the program does not run so";
            return vec![condition.name.clone(), nothing.to_string(), String::new(), String::new()];
        };
        let best = under.best.clone().unwrap_or("nothing".to_string());
        let answer = under.answer.as_ref().map_or(String::new(), figures);
        vec![condition.name.clone(), figures(&under.now), answer, best]
    };
    Table {
        title: String::new(),
        columns: vec![
            Column::left("with"),
            Column::right("as it is"),
            Column::right("with the answer"),
            Column::left("best there"),
        ],
        rows: study.conditions.iter().map(row).collect(),
    }
}
