//! Where the time of threads went in the course of a run.

use std::fmt::Write;

use filemap_job::Record;
use maud::{Markup, html};

use crate::canvas::{Axis, tick_text, ticks};
use crate::table::{Column, Table};
use crate::thrash::Panel;
use crate::units::{number, time, time_unit};

use super::plot::{ABOVE, BELOW, LEFT, PLOT, Picture, column, horizontal, round, vertical};

const HEIGHT: f64 = 240.0;

/// The pictures of `records`, each under its name, on one scale.
pub(super) fn pictures(records: &[(String, &Record)]) -> Markup {
    let panels: Vec<Panel> = records.iter().map(|(name, record)| Panel::of(name, record)).collect();
    let most = panels.iter().filter_map(Panel::most).fold(0.0, f64::max);
    html! {
        @for panel in &panels { (picture(panel, most)) }
    }
}

fn picture(panel: &Panel, most: f64) -> Markup {
    let Some(course) = &panel.course else {
        return html! { p { (panel.heading) ": where the time of its threads went is not known." } };
    };
    let (top, bottom) = (ABOVE, ABOVE + HEIGHT);
    let most = if most > 0.0 { most } else { 1.0 };
    let length_ns = course.ends_ns.last().copied().unwrap_or(0.0).max(1.0);
    let (unit, unit_ns) = time_unit(length_ns);
    let axis = Axis { left: LEFT, width: PLOT, first: 0.0, last: length_ns / unit_ns };
    let height = |threads: f64| bottom - threads / most * HEIGHT;
    let marks = ticks(0.0, axis.last, 5.0, 0.01).into_iter();
    let marks: Vec<_> = marks.map(|value| (value, tick_text(value))).collect();
    let levels = ticks(0.0, most, 5.0, if most < 4.0 { 0.01 } else { 1.0 }).into_iter();
    let levels: Vec<_> = levels.map(|value| (height(value), tick_text(value))).collect();
    let x = |at: usize| match at {
        0 => LEFT,
        at => axis.at(course.ends_ns[at - 1] / unit_ns),
    };
    let count = course.ends_ns.len();
    let mut below = vec![0.0; count];
    let mut areas = Vec::new();
    for layer in &course.causes {
        let above: Vec<f64> = below.iter().zip(&layer.threads).map(|(a, b)| a + b).collect();
        let mut path = String::new();
        let _ =
            write!(path, "M{} {}", round(LEFT), round(height(below.first().map_or(0.0, |b| *b))));
        for (at, threads) in above.iter().enumerate() {
            let _ = write!(path, "V{}H{}", round(height(*threads)), round(x(at + 1)));
        }
        for (at, threads) in below.iter().enumerate().rev() {
            let _ = write!(path, "V{}H{}", round(height(*threads)), round(x(at)));
        }
        areas.push((layer.colour, path + "z"));
        below = above;
    }
    let told = |at: usize| {
        let own = course.causes.iter().filter(|layer| layer.threads[at] >= 0.005);
        let own = own.map(|layer| format!("{} {:.2}", layer.name, layer.threads[at]));
        let from = if at == 0 { 0.0 } else { course.ends_ns[at - 1] };
        let threads: Vec<String> = own.collect();
        format!("{} to {}: {} threads", time(from), time(course.ends_ns[at]), threads.join(", "))
    };
    let body = html! {
        (vertical((top, bottom), &levels, "threads"))
        (horizontal(&axis, (top, bottom), &marks, &format!("{unit} since {}", course.from)))
        @for (colour, path) in &areas { path fill=(colour) d=(path) {} }
        @for at in 0..count { (column((x(at), x(at + 1)), (top, bottom), &told(at))) }
    };
    let shares = html! {
        ul.legend {
            @for layer in course.causes.iter().rev() {
                li {
                    svg.swatch viewBox="0 0 12 12" aria-hidden="true" {
                        rect width="12" height="12" fill=(layer.colour) {}
                    }
                    " " (layer.name) " " (format!("{:.1} %", layer.share * 100.0))
                }
            }
        }
    };
    let row = |at: usize| {
        let threads = course.causes.iter().map(|layer| format!("{:.3}", layer.threads[at]));
        [time(course.ends_ns[at])].into_iter().chain(threads).collect()
    };
    let names = course.causes.iter().map(|layer| Column::right(layer.name.clone()));
    let table = Table {
        title: String::new(),
        columns: [Column::right("until")].into_iter().chain(names).collect(),
        rows: (0..count).map(row).collect(),
    };
    let picture = Picture {
        title: format!("Where the time went: {}", panel.heading),
        note: "How many threads were at what, on average over each interval: the seconds that all \
               of them together spent on it per second of the run."
            .to_string(),
        described: format!(
            "Threads by what they did in {} intervals; the table below has all of them.",
            number(count as f64)
        ),
        legend: shares,
        height: bottom + BELOW,
        body,
        table: Some(("All intervals, in threads".to_string(), table)),
    };
    picture.markup()
}
