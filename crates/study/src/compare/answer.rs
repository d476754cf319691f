//! The answer of a comparison in a line, and the table of several jobs.

use std::collections::BTreeSet;

use filemap_job::{EngineKind, Spread};
use filemap_report::Table;
use filemap_report::units::{bytes, change, number, time};

use super::emulated::has_emulated_times;
use super::{Cell, Comparison, Variants};
use crate::verdict::{Margin, TestResult, Verdict};

/// Relative difference in time below which no variant is called the fastest.
const MIN_GAIN: f64 = 0.01;

/// The fastest variant, compared with the first; `None` if times are unknown, or of several
/// engines.
pub fn fastest(variants: &Variants) -> Option<String> {
    let cells = variants.cells;
    let first = &cells[0];
    let is_one_engine = cells.iter().all(|cell| cell.engine == first.engine);
    let runs_for_a_time = first.job.thread.iter().any(|thread| thread.lasts.is_some());
    let is_emulated = variants.records.iter().any(has_emulated_times);
    if !is_one_engine || runs_for_a_time || is_emulated || cells.len() < 2 {
        return None;
    }
    let time_of = |cell: &Cell| Some(cell.figures.elapsed_ns?.median);
    let times: Vec<f64> = cells.iter().map(time_of).collect::<Option<_>>()?;
    let at = (0..times.len()).min_by(|one, other| times[*one].total_cmp(&times[*other]))?;
    let (before, after) = (times[0], times[at]);
    if before <= 0.0 || after > before * (1.0 - MIN_GAIN) {
        return Some(format!("Nothing is faster than {}: {}.", first.variant, time(before)));
    }
    let is_measured = first.engine == EngineKind::Kernel.name();
    let runs = |cell: &Cell| {
        cell.runs.iter().filter_map(|run| Some(run.elapsed_ns? as f64)).collect::<Vec<f64>>()
    };
    let tested = TestResult::unpaired(&runs(first), &runs(&cells[at]), Margin::NONE);
    let doubt = match tested.verdict {
        _ if !is_measured => "",
        Verdict::Less => "",
        _ => " The runs do not show that this is more than chance.",
    };
    let read = |cell: &Cell| read_bytes(cell).map(|read| read.median);
    let reads = read(first).zip(read(&cells[at])).map_or(String::new(), |(before, after)| {
        let change = change(before, after);
        format!(", {} read instead of {} ({change})", bytes(after), bytes(before))
    });
    Some(format!(
        "Fastest is {}: {} instead of {} ({}){reads}.{doubt}",
        cells[at].variant,
        time(after),
        time(before),
        change(before, after)
    ))
}

/// Bytes read from the device.
fn read_bytes(cell: &Cell) -> Option<Spread> {
    cell.figures.counters.bytes_read
}

/// All variants of several jobs, a row each; `None` for a single job.
pub fn jobs_table(comparison: &Comparison) -> Option<Table> {
    if comparison.jobs().count() < 2 {
        return None;
    }
    let paths: Vec<&str> =
        comparison.jobs().map(|cells| cells[0].job_file.as_deref().unwrap_or_default()).collect();
    let short = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
    let distinct: BTreeSet<String> = paths.iter().map(|path| short(path)).collect();
    let is_distinct = distinct.len() == paths.len();
    let named = |path: &str| if is_distinct { short(path) } else { path.to_string() };
    let rows = comparison.jobs().zip(&paths).flat_map(|(cells, path)| {
        let job = named(path);
        cells.iter().map(move |cell| row(job.clone(), cell, &cells[0]))
    });
    let heads = ["read", "change", "major faults", "change", "time", "change"];
    let rows: Vec<Vec<String>> = rows.collect();
    Some(Table::from_parts(["job", "variant"], heads, rows).with_title("All jobs"))
}

/// The row of `cell`, whose job is called `job` and has `first` as its first variant.
fn row(job: String, cell: &Cell, first: &Cell) -> Vec<String> {
    let variant = if cell.engine == first.engine {
        cell.variant.clone()
    } else {
        format!("{} on the {}", cell.variant, cell.engine)
    };
    type Figure = (Option<Spread>, Option<Spread>, fn(f64) -> String);
    let figures: [Figure; 3] = [
        (read_bytes(cell), read_bytes(first), bytes),
        (cell.figures.counters.major_faults, first.figures.counters.major_faults, number),
        (cell.figures.elapsed_ns, first.figures.elapsed_ns, time),
    ];
    let mut row = vec![job, variant];
    for (own, before, text) in figures {
        row.push(own.map_or("-".to_string(), |own| text(own.median)));
        let both = own.zip(before).filter(|_| !std::ptr::eq(cell, first));
        row.push(both.map_or(String::new(), |(own, before)| change(before.median, own.median)));
    }
    row
}
