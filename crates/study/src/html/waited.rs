//! What the threads of a program waited for in the course of a run.

use std::fmt::Write;

use maud::{Markup, html};

use crate::explain::{Origin, ProgramHistory, first_access};
use filemap_report::units::{number, time, time_unit};
use filemap_report::{Head, Table};
use filemap_report::{tick_text, ticks};

use super::windows::percent;
use filemap_report::Bar;
use filemap_report::html::bars;
use filemap_report::plot::{
    ABOVE, BELOW, LEFT, PLOT, Plot, accesses_done, column, entry, legend, of_accesses, round,
    vertical,
};

const HEIGHT: f64 = 200.0;

/// Classes of what is waited for, by its place in the record.
const CLASSES: [&str; 8] = ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"];

/// Waiting by cause: in all, along the run, and by thread.
pub(crate) fn section(history: &ProgramHistory) -> Markup {
    let sums: Vec<u64> = history.waits.iter().map(|of| sum(&of.ns)).collect();
    let all = sum(&sums);
    if all == 0 {
        return html! {};
    }
    let bar = |(number, of): (usize, &crate::explain::WaitHistory)| {
        let ns = sums[number];
        (ns > 0).then(|| Bar {
            name: name(&of.cause),
            value: Some(ns as f64),
            class: CLASSES[number % CLASSES.len()],
            texts: vec![time(ns as f64), percent(ns, all)],
        })
    };
    let shown: Vec<Bar> = history.waits.iter().enumerate().filter_map(bar).collect();
    html! {
        h2 { "Waiting, by cause" }
        p {
            "Time in which threads could not go on, by what had asked for the page that they "
            "waited for: predicted, of all threads together. "
            strong { (time(all as f64)) } " in all."
        }
        (bars("By cause", &["waiting for", "time", "share"], &shown))
        (picture(history).markup())
        @if history.threads.len() > 1 {
            details {
                summary { "By thread" }
                (filemap_report::html::table(&by_thread(history)))
            }
        }
    }
}

fn sum(values: &[u64]) -> u64 {
    values.iter().fold(0, |sum, value| sum.saturating_add(*value))
}

/// What was waited for, in words.
fn name(cause: &str) -> String {
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

fn picture(history: &ProgramHistory) -> Plot {
    let intervals = history.waits.first().map_or(1, |first| first.ns.len());
    let accesses = history.accesses;
    let at = |number: usize| {
        let of = history.waits.iter().map(|of| of.ns[number]);
        of.collect::<Vec<u64>>()
    };
    let most = (0..intervals).map(|number| sum(&at(number))).max().unwrap_or(0).max(1) as f64;
    let (unit, unit_ns) = time_unit(most);
    let (top, bottom) = (ABOVE, ABOVE + HEIGHT);
    let height = |ns: f64| bottom - ns / most * HEIGHT;
    let axis = of_accesses(accesses);
    let bound = |number: usize| LEFT + PLOT * number as f64 / intervals as f64;
    let marks = ticks(0.0, most / unit_ns, 4.0, 0.01).into_iter();
    let marks: Vec<_> = marks.map(|value| (height(value * unit_ns), tick_text(value))).collect();
    let mut below = vec![0.0; intervals];
    let mut areas = Vec::new();
    for (number, of) in history.waits.iter().enumerate().filter(|(_, of)| sum(&of.ns) > 0) {
        let above: Vec<f64> = below.iter().zip(&of.ns).map(|(a, b)| a + *b as f64).collect();
        let mut path = format!("M{LEFT} {}", round(height(below[0])));
        for (at, ns) in above.iter().enumerate() {
            let _ = write!(path, "V{}H{}", round(height(*ns)), round(bound(at + 1)));
        }
        for (at, ns) in below.iter().enumerate().rev() {
            let _ = write!(path, "V{}H{}", round(height(*ns)), round(bound(at)));
        }
        areas.push((CLASSES[number % CLASSES.len()], path + "z"));
        below = above;
    }
    let first = |number: usize| first_access(number as u64, accesses, intervals as u64);
    let interval = |number: usize| {
        let (from, end) = (first(number), first(number + 1));
        format!("accesses {} to {}", count(from), count(end.max(from + 1) - 1))
    };
    let told = |number: usize| {
        let own = history.waits.iter().filter(|of| of.ns[number] > 0);
        let own: Vec<String> =
            own.map(|of| format!("{} {}", name(&of.cause), time(of.ns[number] as f64))).collect();
        match own.is_empty() {
            true => format!("{}: nothing was waited for", interval(number)),
            false => format!("{}: {}", interval(number), own.join(", ")),
        }
    };
    let body = html! {
        (vertical((top, bottom), &marks, &format!("waiting in an interval ({unit})")))
        (accesses_done(&axis, (top, bottom)))
        @for (class, path) in &areas { path class=(class) d=(path) {} }
        @for number in 0..intervals {
            (column((bound(number), bound(number + 1)), (top, bottom), &told(number)))
        }
    };
    let known = history.waits.iter().enumerate().filter(|(_, of)| sum(&of.ns) > 0);
    let entries: Vec<_> =
        known.map(|(number, of)| entry(CLASSES[number % CLASSES.len()], name(&of.cause))).collect();
    let row = |number: usize| {
        let ns = at(number).into_iter().map(|ns| time(ns as f64));
        [interval(number)].into_iter().chain(ns).collect()
    };
    let names = history.waits.iter().map(|of| Head::right(name(&of.cause)));
    let table = Table {
        title: String::new(),
        columns: [Head::left("interval")].into_iter().chain(names).collect(),
        rows: (0..intervals).map(row).collect(),
    };
    Plot {
        title: "Waiting along the run".to_string(),
        note: format!(
            "The time that all threads together waited in each of {intervals} intervals of the \
             program's accesses, one cause on top of the other."
        ),
        described: format!(
            "Waiting by cause along the run, at most {} in an interval; the table below has each.",
            time(most)
        ),
        legend: legend(&entries),
        height: bottom + BELOW,
        body,
        table: Some(("All intervals".to_string(), table)),
    }
}

fn count(value: u64) -> String {
    number(value as f64)
}

fn by_thread(history: &ProgramHistory) -> Table {
    let names = history.waits.iter().map(|of| Head::right(name(&of.cause)));
    let row = |of: &crate::explain::ThreadWaits| {
        let ns = of.ns.iter().map(|ns| time(*ns as f64));
        [of.name.clone()].into_iter().chain(ns).collect()
    };
    Table {
        title: String::new(),
        columns: [Head::left("thread")].into_iter().chain(names).collect(),
        rows: history.threads.iter().map(row).collect(),
    }
}
