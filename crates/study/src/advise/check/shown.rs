//! What a reader sees of a check.

use filemap_job::Spread;

use super::{Check, CheckRun, CheckVariant};
use crate::advise::{Advice, Outcome};
use filemap_report::units::{number, time};
use filemap_report::{Head, Part, Table};

/// `check` of `advice`, the verdict first.
pub fn parts(advice: &Advice, check: &Check) -> Vec<Part> {
    let mut parts = vec![Part::Heading("What was measured".to_string())];
    let differences = check.differences.iter();
    parts.extend(differences.map(|what| Part::Lead(format!("Check failed: {what}."))));
    parts.push(Part::Lead(check.text.clone()));
    if let Some(best) = advice.best()
        && !check.variants.iter().any(|of| of.tried == advice.answer.best)
    {
        parts.push(Part::Paragraph(format!(
            "The answer above, {}, was not run, so nothing here confirms it.",
            best.label()
        )));
    }
    let predicted = |of: &CheckVariant| match of.tried {
        None => Some(advice.now.clone()),
        Some(tried) => advice.tried.get(tried).map(|tried| tried.outcome.clone()),
    };
    let rows: Vec<(&CheckVariant, Outcome)> =
        check.variants.iter().filter_map(|of| Some((of, predicted(of)?))).collect();
    parts.push(Part::Table(counts(&rows)));
    parts.push(Part::Table(times(&rows)));
    parts.push(Part::Paragraph(note(check)));
    let left_out =
        |of: &super::LeftOut| format!("{} was not run: {}.", of.changes.join(" + "), of.reason);
    if !check.left_out.is_empty() {
        parts.push(Part::List(check.left_out.iter().map(left_out).collect()));
    }
    parts.extend(endings(check).into_iter().chain(check.notes.clone()).map(Part::Paragraph));
    parts
}

fn table(title: &str, columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    let right = columns.iter().map(|name| Head::right(*name));
    Table {
        title: title.to_string(),
        columns: [Head::left("with")].into_iter().chain(right).collect(),
        rows: rows.collect(),
    }
}

fn range(spread: &Spread, text: fn(f64) -> String) -> String {
    format!("{} to {}", text(spread.min as f64), text(spread.max as f64))
}

/// Pages and faults, predicted and measured.
fn counts(rows: &[(&CheckVariant, Outcome)]) -> Table {
    let columns = [
        "pages,\nmodel",
        "pages,\nmeasured",
        "least to most",
        "faults,\nmodel",
        "faults,\nmeasured",
    ];
    let row = |(of, predicted): &(&CheckVariant, Outcome)| {
        vec![
            of.label(),
            number(predicted.data_pages_read as f64),
            number(of.pages_read.median),
            range(&of.pages_read, number),
            number(predicted.major_faults as f64),
            number(of.major_faults.median),
        ]
    };
    table("Read from disk", &columns, rows.iter().map(row))
}

/// Times, predicted and measured, and what each variant is beside the program as it is.
fn times(rows: &[(&CheckVariant, Outcome)]) -> Table {
    let row = |(of, predicted): &(&CheckVariant, Outcome)| {
        vec![
            of.label(),
            time(predicted.elapsed_ns as f64),
            time(of.elapsed_ns.median),
            range(&of.elapsed_ns, time),
            of.p_value.map_or(String::new(), |p| format!("{p:.3}")),
            of.beside.clone().unwrap_or_default(),
        ]
    };
    let columns = ["model", "measured", "least to most", "p"];
    let mut table = table("Time", &columns, rows.iter().map(row));
    table.columns.push(Head::left("beside as it is"));
    table
}

/// How it was measured.
fn note(check: &Check) -> String {
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

/// What is said where the program failed as it is.
fn endings(check: &Check) -> Option<String> {
    let plain = &check.variants.first()?.runs;
    let failed: Vec<&CheckRun> = plain.iter().filter(|run| run.exit_code != Some(0)).collect();
    let how = match failed.first()? {
        CheckRun { signal: Some(signal), .. } => format!("by signal {signal}"),
        run => format!("with exit code {}", run.exit_code.unwrap_or_default()),
    };
    Some(format!(
        "The program failed in {} of its {} runs as it is: one ended {how}. The figures are those \
         of what it did until then.",
        failed.len(),
        plain.len(),
    ))
}
