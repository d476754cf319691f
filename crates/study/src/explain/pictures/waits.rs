//! Charts of the waits of a job's threads along a run.

use filemap_report::plot::{MARGIN_BELOW, Plot};
use filemap_report::units::{time, time_unit};
use filemap_report::{Bar, BarTable, Details, Part, Table, tick_text, ticks};

use super::super::history::{RunHistory, WaitHistory};
use super::super::origin::Origin;
use super::intervals::{
    BOTTOM, Layer, interval_text, layer_legend, max_sum, percent, stacked_areas, sum,
};

/// Colour classes, by the position of the cause in the record.
const CLASSES: [&str; 8] = ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"];

/// Waits by cause: in total, along the run, and by thread.
pub(super) fn parts(history: &RunHistory) -> Vec<Part> {
    let sums: Vec<u64> = history.waits.iter().map(|wait| total(&wait.ns)).collect();
    let all = total(&sums);
    if all == 0 {
        return Vec::new();
    }
    let bar = |(number, wait): (usize, &WaitHistory)| {
        let ns = sums[number];
        (ns > 0).then(|| Bar {
            name: cause_name(&wait.cause),
            value: Some(ns as f64),
            class: CLASSES[number % CLASSES.len()],
            texts: vec![time(ns as f64), percent(ns, all)],
        })
    };
    let shown = history.waits.iter().enumerate().filter_map(bar).collect();
    let note = format!(
        "Time in which threads waited, by what had asked for the page that they waited for: \
         predicted, and summed over all threads. {} in all.",
        time(all as f64)
    );
    let bars = BarTable::new("Waiting, by cause", &["waiting for", "time", "share"], shown);
    let mut parts = vec![Part::Bars(bars.with_note(note)), Part::Plot(plot(history))];
    if history.threads.len() > 1 {
        let rows = history.threads.iter().map(|thread| (thread.name.clone(), thread.ns.clone()));
        let by_thread = vec![Part::Table(table(history, "thread", rows))];
        parts.push(Part::Details(Details { summary: "By thread".to_string(), parts: by_thread }));
    }
    parts
}

fn total(values: &[u64]) -> u64 {
    sum(values.iter().copied())
}

/// The text for a cause.
fn cause_name(cause: &str) -> String {
    let origin = Origin::with_key(cause);
    match (cause, origin) {
        ("other-files", _) => "pages of other files".to_string(),
        ("memory", _) => "memory that is being read into".to_string(),
        ("cpu", _) => "a CPU".to_string(),
        ("phase", _) => "a phase of another thread".to_string(),
        ("lock", _) => "a lock of its process".to_string(),
        (_, Some(Origin::Single)) => "single pages".to_string(),
        (_, Some(origin)) => format!("pages of {}", origin.name()),
        (cause, None) => cause.to_string(),
    }
}

fn plot(history: &RunHistory) -> Plot {
    let (accesses, intervals) = (history.accesses, history.waits[0].ns.len());
    let known = history.waits.iter().enumerate().filter(|(_, wait)| total(&wait.ns) > 0);
    let layer = |(number, wait): (usize, &WaitHistory)| Layer {
        class: CLASSES[number % CLASSES.len()],
        name: cause_name(&wait.cause),
        amounts: wait.ns.clone(),
    };
    let layers: Vec<Layer> = known.map(layer).collect();
    let most = max_sum(&layers).max(1) as f64;
    let (unit, unit_ns) = time_unit(most);
    let marks = ticks(0.0, most / unit_ns, 4.0, 0.01).into_iter();
    let marks = marks.map(|value| (value * unit_ns, tick_text(value))).collect();
    let interval = |number: usize| interval_text(accesses, number, intervals);
    let describe = |number: usize| {
        let own = layers.iter().map(|layer| (&layer.name, layer.amounts[number]));
        let own = own.filter(|(_, ns)| *ns > 0);
        let own: Vec<String> =
            own.map(|(name, ns)| format!("{name} {}", time(ns as f64))).collect();
        let waits = if own.is_empty() { "no wait".into() } else { own.join(", ") };
        format!("{}: {waits}", interval(number))
    };
    let interval_ns = |number: usize| history.waits.iter().map(|wait| wait.ns[number]).collect();
    let rows = (0..intervals).map(|number| (interval(number), interval_ns(number)));
    let axis = format!("waiting in an interval ({unit})");
    Plot {
        title: "Waiting along the run".to_string(),
        note: format!(
            "The time that all threads together waited in each of {intervals} intervals of the \
             program's accesses, one cause on top of the other."
        ),
        description: format!(
            "Waiting by cause along the run, at most {} in an interval; the table below has each.",
            time(most)
        ),
        legend: layer_legend(&layers),
        height: BOTTOM + MARGIN_BELOW,
        body: stacked_areas(accesses, &layers, (marks, &axis), describe),
        table: Some(("All intervals".to_string(), table(history, "interval", rows))),
    }
}

/// A table of waiting times with a column for each cause.
fn table(
    history: &RunHistory,
    first: &str,
    rows: impl Iterator<Item = (String, Vec<u64>)>,
) -> Table {
    let rows = rows.map(|(name, ns)| {
        let times = ns.into_iter().map(|ns| time(ns as f64));
        [name].into_iter().chain(times).collect()
    });
    Table::from_parts([first], history.waits.iter().map(|wait| cause_name(&wait.cause)), rows)
}
