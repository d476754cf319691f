//! What the page cache held, and how the counter of misses stood, in the course of a run.

use std::fmt::Write;

use filemap_core::readahead::miss::THRESHOLD;
use maud::html;

use crate::explain::{History, Point};
use filemap_report::ticks;
use filemap_report::units::{bytes, number};
use filemap_report::{Head, Table};

use super::windows::{interval, percent};
use filemap_report::plot::{
    ABOVE, BELOW, LEFT, PLOT, Plot, accesses_done, byte_marks, column, entry, legend, of_accesses,
    round, vertical,
};

const HEIGHT: f64 = 200.0;

/// Points of a course that are drawn at most: more than a course of ours has.
const MOST_POINTS: usize = 4096;

/// What was in the cache along the run; none where that was nothing.
pub(crate) fn residency(history: &History) -> Option<Plot> {
    let intervals = history.resident.len().min(history.resident_used.len()).min(MOST_POINTS);
    let most = history.resident[..intervals].iter().copied().max().filter(|&most| most > 0)?;
    let page = history.page_bytes as f64;
    let (top, bottom) = (ABOVE, ABOVE + HEIGHT);
    let height = |pages: f64| bottom - pages / most as f64 * HEIGHT;
    let axis = of_accesses(history.accesses);
    let bound = |at: usize| LEFT + PLOT * at as f64 / intervals as f64;
    let (marks, unit) = byte_marks(0.0, most as f64 * page, |bytes| height(bytes / page));
    let area = |values: &[u64]| {
        let mut path = format!("M{LEFT} {}", round(bottom));
        for (at, &pages) in values[..intervals].iter().enumerate() {
            let _ = write!(path, "V{}H{}", round(height(pages as f64)), round(bound(at + 1)));
        }
        path + &format!("V{}z", round(bottom))
    };
    let told = |at: usize| {
        let (all, used) = (history.resident[at], history.resident_used[at]);
        format!(
            "after {}: {} in the page cache, {} of it accessed since it came in ({})",
            interval(history, at, intervals),
            bytes(all as f64 * page),
            bytes(used as f64 * page),
            percent(used, all)
        )
    };
    let body = html! {
        (vertical((top, bottom), &marks, &format!("in the page cache ({unit})")))
        (accesses_done(&axis, (top, bottom)))
        path.u0 d=(area(&history.resident)) {}
        path.u4 d=(area(&history.resident_used)) {}
        @for at in 0..intervals {
            (column((bound(at), bound(at + 1)), (top, bottom), &told(at)))
        }
    };
    Some(Plot {
        title: "Page cache along the run".to_string(),
        note: format!(
            "Pages of the file that are in the page cache at the end of each of {intervals} \
             intervals of the run."
        ),
        described: format!(
            "Pages of the file in the page cache along the run, at most {}; the table below has \
             each interval.",
            bytes(most as f64 * page)
        ),
        legend: legend(&[
            entry("u4", "accessed since they came in"),
            entry("u0", "not accessed so far"),
        ]),
        height: bottom + BELOW,
        body,
        table: Some(("All intervals".to_string(), by_interval(history, intervals))),
    })
}

fn by_interval(history: &History, intervals: usize) -> Table {
    let of = |values: &[u64], at: usize| {
        values.get(at).map_or("-".to_string(), |&value| number(value as f64))
    };
    let row = |at: usize| {
        let values = [
            &history.calls,
            &history.read,
            &history.used,
            &history.resident,
            &history.resident_used,
        ];
        let name = interval(history, at, intervals);
        [name].into_iter().chain(values.map(|values| of(values, at))).collect()
    };
    let columns = vec![
        Head::left("interval"),
        Head::right("windows and single pages"),
        Head::right("pages read"),
        Head::right("used"),
        Head::right("pages in the cache at its end"),
        Head::right("accessed since they came in"),
    ];
    Table { title: String::new(), columns, rows: (0..intervals).map(row).collect() }
}

/// The course of `mmap_miss`. `complete` says whether each change was seen.
pub(crate) fn counter(points: &[Point], accesses: u64, complete: bool) -> Option<Plot> {
    let points = &points[..points.len().min(MOST_POINTS)];
    let highest = points.iter().map(|point| point.high).max()?;
    let scale = f64::from(highest.max(THRESHOLD + THRESHOLD / 4));
    let (top, bottom) = (ABOVE, ABOVE + HEIGHT);
    let height = |value: f64| bottom - value / scale * HEIGHT;
    let axis = of_accesses(accesses);
    let at = |access: u64| axis.at((access as f64).min(axis.last));
    let end = |number: usize| points.get(number + 1).map_or(LEFT + PLOT, |next| at(next.access));
    let marks = ticks(0.0, scale, 4.0, 1.0).into_iter();
    let marks: Vec<_> = marks.map(|value| (height(value), number(value))).collect();
    let mut line = String::new();
    for (index, point) in points.iter().enumerate() {
        let x = round(at(point.access));
        let [low, high, last] = [point.low, point.high, point.last].map(|v| height(v.into()));
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(line, "{command}{x} {}V{}V{}", round(low), round(high), round(last));
        let _ = write!(line, "H{}", round(end(index)));
    }
    let told = |index: usize, point: &Point| {
        let before = points.get(index + 1).map_or(accesses, |next| next.access);
        format!(
            "accesses {} to {}: from {} to {}, {} at the end",
            number(point.access as f64),
            number(before.max(point.access + 1) as f64 - 1.0),
            point.low,
            point.high,
            point.last
        )
    };
    let threshold = height(f64::from(THRESHOLD));
    let body = html! {
        (vertical((top, bottom), &marks, "mmap_miss (count)"))
        (accesses_done(&axis, (top, bottom)))
        path.threshold d=(format!("M{LEFT} {}h{PLOT}", round(threshold))) {}
        path.line d=(line) {}
        @for (index, point) in points.iter().enumerate() {
            (column((at(point.access), end(index)), (top, bottom), &told(index, point)))
        }
    };
    let seen = match complete {
        true => "",
        false => " The tracepoints show it only where a mark or a stream enters readahead.",
    };
    let row = |point: &Point| {
        let values = [point.low, point.high, point.last].map(|value| value.to_string());
        [number(point.access as f64)].into_iter().chain(values).collect()
    };
    let columns = ["from access", "lowest", "highest", "last"].map(Head::right);
    Some(Plot {
        title: "mmap_miss, the counter of misses".to_string(),
        note: format!(
            "Its range and its last value in each of up to {} parts of the run. Above the \
             threshold a miss reads a single page.{seen}",
            points.len()
        ),
        described: format!(
            "The counter along the run, {highest} at most, with its threshold {THRESHOLD}; the \
             table below has its values."
        ),
        legend: legend(&[
            entry("line-key", "mmap_miss, lowest to highest"),
            entry("threshold-key", format!("threshold {THRESHOLD}")),
        ]),
        height: bottom + BELOW,
        body,
        table: Some((
            "All values".to_string(),
            Table {
                title: String::new(),
                columns: columns.to_vec(),
                rows: points.iter().map(row).collect(),
            },
        )),
    })
}
