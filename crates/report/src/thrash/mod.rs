//! What a report says of the workload `thrash` beside its figures: how it ended, and where its
//! threads waited.

mod picture;

pub(crate) use picture::Panel;

use filemap_job::thrash::{Ended, Wait};
use filemap_job::{EngineKind, Record, Run, ThrashRun};

use crate::compare::{Cell, name};
use crate::record;
use crate::report::Part;
use crate::table::{Column, Table};
use crate::units::{number, time};

/// Where the time of the threads of `record` went in the course of its run, as SVG.
pub fn svg(record: &Record) -> String {
    picture::svg(&record::title(record), &[(title(record), record)])
}

/// The same of several variants, one below the other on one scale.
///
/// # Panics
/// Without any cell.
pub fn svg_of_variants(cells: &[Cell]) -> String {
    let names: Vec<String> = cells.iter().map(|cell| name(cell, cells)).collect();
    let panels = names.iter().zip(cells).map(|(name, cell)| (name.as_str(), &cell.record));
    let title = format!("{}: where the time of the threads went", cells[0].record.job.heading());
    picture::svg(&title, &panels.collect::<Vec<_>>())
}

/// The parts of the report on `record`; none for another workload.
pub(crate) fn parts(record: &Record) -> Vec<Part> {
    let runs: Vec<&ThrashRun> = record.runs.iter().filter_map(|run| run.thrash.as_ref()).collect();
    if runs.is_empty() {
        return Vec::new();
    }
    let mut parts: Vec<Part> = pressure_note(&runs).map(Part::Paragraph).into_iter().collect();
    parts.extend(ended_early("", &runs).map(Part::Paragraph));
    let waits = Wait::merged(runs.iter().flat_map(|run| &run.waits));
    match waits.is_empty() {
        true => parts.extend(not_traced(record).map(Part::Paragraph)),
        false => parts.push(Part::Table(self::waits(title(record), &waits))),
    }
    let traced_ns = runs.iter().filter_map(|run| run.traced_ns).min();
    parts.extend(traced_ns.map(|ns| {
        Part::Paragraph(format!(
            "Waits and tries are those of the first {}, until the buffer of the trace was full.",
            time(ns as f64)
        ))
    }));
    parts
}

/// What x is in the tables on `runs`; `None` where it is not in them.
pub(crate) fn pressure_note(runs: &[&ThrashRun]) -> Option<String> {
    let is_known = runs.iter().any(|run| run.pressure.is_some());
    is_known.then(|| "x = threads x readahead / memory limit.".to_string())
}

/// A warning for each of `runs` that ended before it was to end. `name` says what they are of.
pub(crate) fn ended_early<'a>(
    name: &'a str,
    runs: &'a [&ThrashRun],
) -> impl Iterator<Item = String> + 'a {
    let is_early = |run: &ThrashRun| run.in_warm_up || run.ended != Ended::Complete;
    let early = runs.iter().enumerate().filter(move |(_, run)| is_early(run));
    early.map(move |(number, run)| {
        let of = match runs.len() {
            1 => "the job".to_string(),
            all => format!("run {} of {all}", number + 1),
        };
        let reason = run.reason.as_deref().unwrap_or("for an unknown reason");
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        let when = match run.in_warm_up {
            true => "in its warm-up, so that nothing was measured",
            false => "before its time",
        };
        format!("Warning: {name}{of} ended {when}: {reason}.")
    })
}

/// Why a kernel did not tell where the threads waited.
fn not_traced(record: &Record) -> Option<String> {
    let was_measured = |run: &Run| run.thrash.as_ref().is_some_and(|thrash| !thrash.in_warm_up);
    if record.engine != EngineKind::Kernel.name() || !record.runs.iter().any(was_measured) {
        return None;
    }
    let reason = match record.runs.iter().any(|run| run.elapsed_ns.is_some()) {
        true => "that takes root, and a kernel with the tracepoints of mmap_lock",
        false => "the times of an emulated machine say nothing",
    };
    Some(format!("How long the threads waited is not known: {reason}."))
}

/// What the waits of `record` are: a kernel tells those for locks only.
fn title(record: &Record) -> &'static str {
    match record.engine == EngineKind::Model.name() {
        true => "Where the time of the threads went",
        false => "What the threads waited for",
    }
}

/// A table of `waits`.
pub(crate) fn waits(title: &str, waits: &[Wait]) -> Table {
    let all: u64 = waits.iter().map(|wait| wait.sum_ns).sum();
    let row = |wait: &Wait| {
        let share = wait.sum_ns as f64 * 100.0 / all.max(1) as f64;
        let times = [wait.sum_ns, wait.p50_ns, wait.p99_ns, wait.max_ns];
        let [sum, p50, p99, max] = times.map(|ns| time(ns as f64));
        let spans = number(wait.count as f64);
        vec![wait.cause.clone(), format!("{share:.1} %"), sum, spans, p50, p99, max]
    };
    let heads = ["share", "in all", "spans", "p50", "p99", "longest"].map(Column::right);
    Table {
        title: title.to_string(),
        columns: [Column::left("cause")].into_iter().chain(heads).collect(),
        rows: waits.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::thrash::Histogram;

    use super::*;

    #[test]
    fn waits_of_all_runs_are_in_one_table() {
        let wait = |cause: &str, spans: &[u64]| {
            let mut histogram = Histogram::default();
            spans.iter().for_each(|&ns| histogram.add(ns));
            Wait::of(cause, &histogram).unwrap()
        };
        let waits = [wait("device", &[1_000]), wait("work", &[4_000]), wait("device", &[3_000])];
        assert_eq!(
            super::waits("Waits", &Wait::merged(&waits)).text(),
            "Waits\n\n\
             cause    share  in all  spans      p50   p99  longest\n\
             ------  ------  ------  -----  -------  ----  -------\n\
             device  50.0 %    4 us      2  1.02 us  3 us     3 us\n\
             work    50.0 %    4 us      1     4 us  4 us     4 us\n"
        );
    }

    #[test]
    fn a_run_that_ends_early_says_why() {
        let early = ThrashRun {
            ended: Ended::NoProgress,
            reason: Some("no progress: all are locked".to_string()),
            ..ThrashRun::default()
        };
        let complete = ThrashRun::default();
        let said = |runs: &[&ThrashRun]| ended_early("p1", runs).collect::<Vec<_>>();
        assert_eq!(said(&[&complete]), Vec::<String>::new());
        let words = "ended before its time: no progress: all are locked.";
        assert_eq!(said(&[&early]), [format!("Warning: p1: the job {words}")]);
        assert_eq!(said(&[&complete, &early]), [format!("Warning: p1: run 2 of 2 {words}")]);
    }
}
