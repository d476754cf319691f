//! The report of a check.

use filemap_job::Spread;

use super::{Check, CheckVariant};
use crate::advise::{AdviseRecord, TrialOutcome};
use crate::trial::{RunSample, exit_text};
use filemap_report::units::{number, time};
use filemap_report::{CellValue, Column, Part, Unit, text_table};

/// The parts of the report, the verdict first.
pub fn parts(advice: &AdviseRecord, check: &Check) -> Vec<Part> {
    let mut parts = vec![Part::Heading("What was measured".to_string())];
    let differences = check.differences.iter();
    parts.extend(differences.map(|difference| Part::Lead(format!("Check failed: {difference}."))));
    parts.push(Part::Lead(check.text.clone()));
    if let Some(best) = advice.best()
        && !check.variants.iter().any(|variant| variant.tried == advice.answer.best)
    {
        parts.push(Part::Paragraph(format!(
            "The answer above, {}, was not run, so nothing here confirms it.",
            best.label()
        )));
    }
    let row = |variant: &CheckVariant| {
        let predicted = match variant.tried {
            None => &advice.now,
            Some(tried) => &advice.tried.get(tried)?.outcome,
        };
        Some((variant.clone(), predicted.clone()))
    };
    let rows: Vec<CheckRow> = check.variants.iter().filter_map(row).collect();
    parts.push(Part::Table(text_table("Read from disk", &COUNTS, &rows)));
    parts.push(Part::Table(text_table("Time", &TIMES, &rows)));
    parts.push(Part::Paragraph(note(check)));
    let skipped = |skipped: &super::SkippedChange| {
        format!("{} was not run: {}.", skipped.changes.join(" + "), skipped.reason)
    };
    if !check.left_out.is_empty() {
        parts.push(Part::List(check.left_out.iter().map(skipped).collect()));
    }
    parts.extend(failures(check).into_iter().chain(check.notes.clone()).map(Part::Paragraph));
    parts
}

/// A variant and its prediction.
type CheckRow = (CheckVariant, TrialOutcome);

fn range(spread: &Spread, text: fn(f64) -> String) -> CellValue {
    format!("{} to {}", text(spread.min as f64), text(spread.max as f64)).into()
}

/// Pages and faults, predicted and measured.
const COUNTS: [Column<CheckRow>; 6] = {
    use Unit::{Count, Text};
    [
        Column::new("with", "with", Text, |row| row.0.label().into()),
        Column::new("pages", "pages,\nmodel", Count, |row| row.1.data_pages_read.into()),
        Column::new("pages_read", "pages,\nmeasured", Count, |row| row.0.pages_read.median.into()),
        Column::new("range", "least to most", Text, |row| range(&row.0.pages_read, number)),
        Column::new("faults", "faults,\nmodel", Count, |row| row.1.major_faults.into()),
        Column::new("major_faults", "faults,\nmeasured", Count, |row| {
            row.0.major_faults.median.into()
        }),
    ]
};

/// Predicted and measured times, and how each variant compares with the unchanged program.
const TIMES: [Column<CheckRow>; 6] = {
    use Unit::{Nanoseconds, Text};
    [
        Column::new("with", "with", Text, |row| row.0.label().into()),
        Column::new("predicted_ns", "model", Nanoseconds, |row| row.1.elapsed_ns.into()),
        Column::new("elapsed_ns", "measured", Nanoseconds, |row| row.0.elapsed_ns.median.into()),
        Column::new("range", "least to most", Text, |row| range(&row.0.elapsed_ns, time)),
        Column::new("p", "p", Text, |row| row.0.p_value.map(|p| format!("{p:.3}")).into()),
        Column::new("beside", "beside as it is", Text, |row| row.0.beside.clone().into()),
    ]
};

/// The measuring method.
fn note(check: &Check) -> String {
    let plural = if check.runs == 1 { "run" } else { "runs" };
    format!(
        "Measured: medians of {} {plural} of each, in turn, each with the recorded files dropped \
         from the page cache. They are of the program and of all that it started and waited for. \
         Faults whose wait a signal interrupts are not counted: Go's runtime sends such signals. \
         p is how often chance alone sets times apart as much (unpaired permutation test on \
         ranks). The model's times are without the program's start. The program had no input, and \
         what it wrote to stdout and stderr was discarded.",
        check.runs
    )
}

/// A paragraph about failed plain runs, if there are any.
fn failures(check: &Check) -> Option<String> {
    let plain = check.variants.first()?;
    let has_failed = |run: &&RunSample| run.exit_code != Some(0);
    let failed: Vec<&RunSample> = plain.runs.iter().filter(has_failed).collect();
    let first = failed.first()?;
    Some(format!(
        "The program failed in {} of its {} runs as it is: one ended {}. The figures are those of \
         what it did until then.",
        failed.len(),
        plain.runs.len(),
        exit_text(first.exit_code, first.signal)
    ))
}
