//! What the threads of a program waited for in the course of a run.

use std::fmt::Write;

use maud::html;

use filemap_report::plot::{
    ABOVE, BELOW, LEFT, PLOT, Plot, accesses_done, column, entry, of_accesses, round, vertical,
};
use filemap_report::units::{time, time_unit};
use filemap_report::{Bar, Bars, Details, Head, Part, Table, tick_text, ticks};

use super::super::courses::{ProgramHistory, ThreadWaits, WaitHistory};
use super::super::origin::Origin;
use super::shares::{interval, percent, sum};

const HEIGHT: f64 = 200.0;

/// Classes of what is waited for, by its place in the record.
const CLASSES: [&str; 8] = ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"];

/// Waiting by cause: in all, along the run, and by thread.
pub(super) fn parts(history: &ProgramHistory) -> Vec<Part> {
    let sums: Vec<u64> = history.waits.iter().map(|of| sum_of(&of.ns)).collect();
    let all = sum_of(&sums);
    if all == 0 {
        return Vec::new();
    }
    let bar = |(number, of): (usize, &WaitHistory)| {
        let ns = sums[number];
        (ns > 0).then(|| Bar {
            name: name(&of.cause),
            value: Some(ns as f64),
            class: CLASSES[number % CLASSES.len()],
            texts: vec![time(ns as f64), percent(ns, all)],
        })
    };
    let shown = history.waits.iter().enumerate().filter_map(bar).collect();
    let note = format!(
        "Time in which threads could not go on, by what had asked for the page that they waited \
         for: predicted, of all threads together. {} in all.",
        time(all as f64)
    );
    let bars = Bars::new("Waiting, by cause", &["waiting for", "time", "share"], shown);
    let mut parts = vec![Part::Bars(bars.with_note(note)), Part::Plot(plot(history))];
    if history.threads.len() > 1 {
        let parts_of = vec![Part::Table(by_thread(history))];
        parts.push(Part::Details(Details { summary: "By thread".to_string(), parts: parts_of }));
    }
    parts
}

fn sum_of(values: &[u64]) -> u64 {
    sum(values.iter().copied())
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

fn plot(history: &ProgramHistory) -> Plot {
    let intervals = history.waits.first().map_or(1, |first| first.ns.len());
    let accesses = history.accesses;
    let at = |number: usize| {
        let of = history.waits.iter().map(|of| of.ns[number]);
        of.collect::<Vec<u64>>()
    };
    let most = (0..intervals).map(|number| sum(at(number))).max().unwrap_or(0).max(1) as f64;
    let (unit, unit_ns) = time_unit(most);
    let (top, bottom) = (ABOVE, ABOVE + HEIGHT);
    let height = |ns: f64| bottom - ns / most * HEIGHT;
    let axis = of_accesses(accesses);
    let bound = |number: usize| LEFT + PLOT * number as f64 / intervals as f64;
    let marks = ticks(0.0, most / unit_ns, 4.0, 0.01).into_iter();
    let marks: Vec<_> = marks.map(|value| (height(value * unit_ns), tick_text(value))).collect();
    let mut below = vec![0.0; intervals];
    let mut areas = Vec::new();
    for (number, of) in history.waits.iter().enumerate().filter(|(_, of)| sum_of(&of.ns) > 0) {
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
    let interval = |number: usize| interval(accesses, number, intervals);
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
    let known = history.waits.iter().enumerate().filter(|(_, of)| sum_of(&of.ns) > 0);
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
        legend: vec![entries],
        height: bottom + BELOW,
        body,
        table: Some(("All intervals".to_string(), table)),
    }
}

fn by_thread(history: &ProgramHistory) -> Table {
    let names = history.waits.iter().map(|of| Head::right(name(&of.cause)));
    let row = |of: &ThreadWaits| {
        let ns = of.ns.iter().map(|ns| time(*ns as f64));
        [of.name.clone()].into_iter().chain(ns).collect()
    };
    Table {
        title: String::new(),
        columns: [Head::left("thread")].into_iter().chain(names).collect(),
        rows: history.threads.iter().map(row).collect(),
    }
}
