//! Report sections for the variants of one job.

use std::collections::BTreeSet;

use filemap_report::units::{bytes, bytes_range};
use filemap_report::{Part, Table};

use super::emulated::has_emulated_times;
use super::{Regression, Variants, answer, regression};
use crate::latency;
use crate::record::{
    elapsed_note, foreign_note, measured_ns, outcomes, outlier_note, reclaim_note, runs_word,
};
use crate::setup;
use crate::spread;
use crate::stats::{SampleStats, percent};
use crate::verdict::{Margin, TIME_WORDS, TestResult, Verdict, samples};

/// All sections of the job, including `warnings`.
pub(super) fn parts(variants: &Variants, warnings: &[String], verbose: bool) -> Vec<Part> {
    let first = &variants.records[0];
    let mut parts = vec![
        variants.heading(),
        setup::records_setup(&variants.records),
        Part::Comparison(variants.figures()),
    ];
    if let Some(answer) = answer::fastest(variants) {
        parts.insert(1, Part::Lead(answer));
    }
    parts.extend(variants.by_file().into_iter().map(Part::Table));
    let names: Vec<String> = (0..variants.cells.len()).map(|at| variants.name(at)).collect();
    parts.extend(latency::comparison(&names, &variants.records).map(Part::Table));
    parts.extend(variants.calls().map(Part::Table));
    let (seeds, runs) = (spread::seeds(first), first.runs.len());
    if seeds > 1 {
        parts.push(Part::Table(spread_table(variants)));
        let note = |at: usize| spread::note(&variants.name(at), &read(variants, at)?);
        parts.extend((0..variants.cells.len()).filter_map(note).map(Part::Paragraph));
    }
    parts.extend((runs != 1).then(|| {
        Part::Paragraph(match seeds {
            1 => format!("Medians of {runs} runs."),
            _ => format!("Medians of {seeds} seeds."),
        })
    }));
    parts.extend(findings(variants, warnings));
    if verbose {
        parts.extend(variants.counters().into_iter().map(Part::Table));
    }
    parts.extend(conditions(variants).into_iter().map(Part::Paragraph));
    let of_variant = |(at, record)| outcomes(variants.name(at), record);
    let outcomes: Vec<_> = variants.records.iter().enumerate().map(of_variant).collect();
    parts.extend(filemap_report::spread_plot(&outcomes, runs_word(first)).map(Part::Plot));
    parts
}

/// Regressions, differences in time, and `warnings`.
pub(super) fn findings(variants: &Variants, warnings: &[String]) -> Vec<Part> {
    let mut parts = Vec::new();
    let against = &variants.cells[0].variant;
    let lines = regressions(variants, |own| !own.outweighed);
    if !lines.is_empty() {
        let plural = if lines.len() == 1 { "Regression" } else { "Regressions" };
        let against = format!("{plural} against {against}:");
        parts.extend([Part::Paragraph(against), Part::List(lines)]);
    }
    let prices = regressions(variants, |own| own.outweighed);
    if !prices.is_empty() {
        let against = format!("The price of less time than {against}:");
        parts.extend([Part::Paragraph(against), Part::List(prices)]);
    }
    parts.extend(times(variants).into_iter().map(Part::Paragraph));
    parts.extend(Part::warnings(warnings));
    parts
}

/// One line for each variant with regressions that are `wanted`.
pub(super) fn regressions(
    variants: &Variants,
    wanted: impl Fn(&Regression) -> bool,
) -> Vec<String> {
    let records: Vec<_> = variants.records.iter().collect();
    let mut worse = regression::find_regressions(&records);
    worse.iter_mut().for_each(|worse| worse.retain(|own| wanted(own)));
    let line = |(at, record)| regression::line(&variants.name(at), record, &worse[at]);
    variants.records.iter().enumerate().filter_map(line).collect()
}

/// The conditions under which the figures hold.
pub(super) fn conditions(variants: &Variants) -> Vec<String> {
    let mut notes: Vec<String> =
        variants.records.iter().find_map(reclaim_note).into_iter().collect();
    notes.extend(variants.records.iter().filter_map(foreign_note));
    notes.extend(variants.records.iter().filter_map(elapsed_note).collect::<BTreeSet<_>>());
    if variants.records.iter().any(has_emulated_times) {
        let note = "A time marked (e) is that of an emulated guest, not of a machine, and is not \
                    judged.";
        notes.push(note.to_string());
    }
    notes
}

/// Bytes read by each run of a variant.
fn read(from_sorted: &Variants, at: usize) -> Option<SampleStats> {
    SampleStats::from_sorted(spread::bytes_read(&from_sorted.records[at]))
}

/// Spread of each variant over seeds, and its paired difference from the first variant by seed.
fn spread_table(variants: &Variants) -> Table {
    let first = spread::bytes_read(&variants.records[0]);
    let row = |at: usize| {
        let read = read(variants, at)?;
        let changes = read.samples.iter().zip(&first);
        let changes = changes.filter_map(|(&own, &first)| percent(own, first));
        let changes = SampleStats::from_sorted(changes.collect());
        let range = changes.filter(|_| read.samples.len() == first.len()).map(|changes| {
            match (format!("{:+.1}", changes.min), format!("{:+.1}", changes.max)) {
                (min, max) if min == max => format!("{min} %"),
                (min, max) => format!("{min} to {max} %"),
            }
        });
        Some(vec![
            variants.name(at),
            bytes(read.median),
            bytes_range(read.min, read.max),
            range.unwrap_or("-".to_string()),
        ])
    };
    let heads = ["median", "least to most", "change, seed by seed"];
    let title = format!("Read from device over {} seeds", spread::seeds(&variants.records[0]));
    Table::from_parts(["variant"], heads, (0..variants.cells.len()).filter_map(row))
        .with_title(title)
}

/// Notes on measured times: outliers, and the variants that differ significantly.
pub(super) fn times(variants: &Variants) -> Vec<String> {
    let variant = |at: usize| &variants.cells[at].variant;
    let all = variants.records.iter().enumerate();
    let outliers = all.clone().filter_map(|(at, record)| {
        outlier_note(record).map(|note| format!("{}: {note}", variant(at)))
    });
    let mut notes: Vec<String> = outliers.collect();
    let times = all.map(|(at, record)| (variant(at), samples(measured_ns(record))));
    let mut measured = times.filter(|(_, times)| !times.is_empty());
    if let Some((first, before)) = measured.next() {
        let verdict =
            |(own, after): (&String, Vec<f64>)| time_verdict([first, own], &before, &after);
        notes.extend(measured.map(verdict));
    }
    notes
}

/// States whether the second variant is faster or slower than the first, or that the runs cannot
/// tell.
fn time_verdict([first, own]: [&str; 2], before: &[f64], after: &[f64]) -> String {
    let tested = TestResult::unpaired(before, after, Margin::NONE);
    let change = tested.change_percent().unwrap_or(0.0);
    let times = format!("Time of {own} against {first}: {change:+.1} %");
    let [before, after] = tested.runs;
    match (tested.verdict, before.min(after)) {
        (_, 1) => {
            format!("{times}, not tested: one run of each shows nothing; give --runs 5 or more.")
        }
        (Verdict::NotTested, runs) => format!(
            "{times}, not tested: {runs} runs of each cannot show a difference (p is {:.2} at \
             least); give --runs 5 or more.",
            tested.least_p_value
        ),
        (verdict, _) => format!(
            "{times}, {} (permutation test on ranks, {} runs, p = {:.3}).",
            verdict.describe(TIME_WORDS),
            before + after,
            tested.p_value
        ),
    }
}
