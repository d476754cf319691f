//! A comparison as CSV: one row per variant and counter, file or figure.

use std::collections::BTreeMap;

use filemap_job::{Counters, Record, Spread};

use super::Variants;
use super::figures::OF_FILES;
use crate::measure::Measurement;
use crate::record::spreads;
use crate::stats::percent;

/// Column names. The first is used only when several jobs are compared.
pub(super) const HEADS: [&str; 9] =
    ["job_file", "engine", "variant", "counter", "median", "mad", "min", "max", "change_percent"];

/// Change of each counter's median from `first` to `own`, in percent.
pub(super) fn changes(own: &Record, first: &Record) -> BTreeMap<String, Option<f64>> {
    let both = spreads(own).into_iter().zip(spreads(first));
    let change = |own: Option<Spread>, first: Option<Spread>| percent(own?.median, first?.median);
    both.map(|((name, own), (_, first))| (name.to_string(), change(own, first))).collect()
}

/// All rows of one job.
pub(super) fn all_rows(variants: &Variants) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let first = spreads(&variants.records[0]);
    for (at, record) in variants.records.iter().enumerate() {
        for ((name, spread), (_, first)) in spreads(record).into_iter().zip(&first) {
            rows.extend(row(variants, at, name, spread.map(measure), first.map(measure)));
        }
    }
    for (at, cell) in variants.cells.iter().enumerate() {
        for (place, file) in cell.figures.files.iter().enumerate() {
            for (name, figure) in OF_FILES {
                let first = variants.file(0, place, &file.name).and_then(figure).map(measure);
                let name = format!("{name} of {}", file.name);
                rows.extend(row(variants, at, &name, figure(file).map(measure), first));
            }
        }
    }
    for (at, measures) in variants.measures.iter().enumerate() {
        for ((figure, own), (_, first)) in measures.iter().zip(variants.measures[0].iter()) {
            let is_counter = figure.key == "elapsed_ns" || Counters::NAMES.contains(&figure.key);
            let own = own.copied().filter(|_| !is_counter);
            rows.extend(row(variants, at, figure.key, own, first.copied()));
        }
    }
    rows
}

fn measure(Spread { median, mad, min, max }: Spread) -> Measurement {
    Measurement { median, mad, min: min as f64, max: max as f64 }
}

/// The row of one counter: `own` in this variant, `first` in the first. `None` if no run has it.
fn row(
    variants: &Variants,
    at: usize,
    name: &str,
    own: Option<Measurement>,
    first: Option<Measurement>,
) -> Option<Vec<String>> {
    let Measurement { median, mad, min, max } = own?;
    let cell = &variants.cells[at];
    let change = first.and_then(|first| percent(median, first.median));
    let mut row = vec![cell.job_file.clone().unwrap_or_default()];
    row.extend([cell.engine.as_str(), &cell.variant, name].map(String::from));
    row.extend([median, mad, min, max].map(|value| value.to_string()));
    row.push(change.map_or(String::new(), |change| change.to_string()));
    Some(row)
}
