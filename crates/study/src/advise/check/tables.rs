//! Tables of what was measured.

use filemap_job::Spread;

use super::judge::in_words;
use super::{Check, Checked, label};
use crate::advise::{Outcome, Study};
use crate::verdict::p_value;
use filemap_report::units::{number, time};
use filemap_report::{Head, Table};

/// What was predicted for a variant.
pub(super) fn predicted<'a>(study: &'a Study, of: &Checked) -> &'a Outcome {
    of.trial.map_or(&study.now, |trial| &study.trials[trial].outcome)
}

/// The spread of one figure over the runs of a variant.
///
/// # Panics
/// Without a run.
pub(super) fn spread(figures: Vec<u64>) -> Spread {
    Spread::of(figures).expect("each variant has a run")
}

/// Pages and faults, predicted and measured.
pub fn counts(study: &Study, check: &Check) -> Table {
    let row = |of: &Checked| {
        let predicted = predicted(study, of);
        let pages = spread(of.all(|run| run.pages_read));
        let faults = spread(of.all(|run| run.major_faults));
        vec![
            label(study, of.trial),
            number(predicted.figures().pages),
            number(pages.median),
            format!("{} to {}", number(pages.min as f64), number(pages.max as f64)),
            number(predicted.major_faults as f64),
            number(faults.median),
        ]
    };
    let right = ["pages,\nmodel", "pages,\nmeasured", "least to most", "faults,\nmodel"];
    let right = right.into_iter().chain(["faults,\nmeasured"]).map(Head::right);
    Table {
        title: "Read from disk".to_string(),
        columns: [Head::left("with")].into_iter().chain(right).collect(),
        rows: check.variants.iter().map(row).collect(),
    }
}

/// Times, predicted and measured, and what each variant is beside the program as it is.
pub fn times(study: &Study, check: &Check) -> Table {
    let plain = &check.variants[0];
    let row = |of: &Checked| {
        let ns = of.all(|run| run.elapsed_ns);
        let p = p_value(&of.ns(), &plain.ns());
        let ns = spread(ns);
        let beside = of.trial.map(|_| (format!("{p:.3}"), in_words(of.beside(plain))));
        let (p, beside) = beside.unwrap_or_default();
        vec![
            label(study, of.trial),
            time(predicted(study, of).ns[0]),
            time(ns.median),
            format!("{} to {}", time(ns.min as f64), time(ns.max as f64)),
            p,
            beside,
        ]
    };
    let right = ["model", "measured", "least to most", "p"].map(Head::right);
    let columns = [Head::left("with")].into_iter().chain(right);
    Table {
        title: "Time".to_string(),
        columns: columns.chain([Head::left("beside as it is")]).collect(),
        rows: check.variants.iter().map(row).collect(),
    }
}

/// How it was measured.
pub fn note(check: &Check) -> String {
    let plural = if check.runs == 1 { "run" } else { "runs" };
    format!(
        "Measured: medians of {} {plural} of each, in turn, each with the recorded files dropped \
         from the page cache. They are of the program and of all that it started and waited for. \
         p is how often chance alone sets times apart as much (unpaired permutation test on \
         ranks). The model's times are without the program's start. The program had no input, and \
         what it wrote to stdout and stderr was thrown away.",
        check.runs
    )
}
