//! Chart of `mmap_miss` along a run.

use std::fmt::Write;

use maud::html;

use filemap_report::plot::{
    MARGIN_ABOVE, MARGIN_BELOW, PLOT_LEFT, PLOT_WIDTH, Plot, accesses_axis, draw_accesses_axis,
    draw_vertical_axis, hover_column, legend_entry, round,
};
use filemap_report::units::number;
use filemap_report::{Table, ticks};

use super::super::history::CounterPoint;

const HEIGHT: f64 = 200.0;

/// Maximum number of points drawn; `explain` writes fewer.
const MAX_POINTS: usize = 4096;

/// `mmap_miss` along a run of `accesses` accesses, with its threshold if known. `complete` tells
/// whether the points include every change.
pub(in super::super) fn plot(
    points: &[CounterPoint],
    accesses: u64,
    complete: bool,
    threshold: Option<u16>,
) -> Plot {
    let points = match points {
        // The counter stays 0.
        [] => &[CounterPoint { access: 0, low: 0, high: 0, last: 0 }],
        points => &points[..points.len().min(MAX_POINTS)],
    };
    let highest = points.iter().map(|point| point.high).max().unwrap_or(0);
    let least = threshold.map_or(1, |value| value.saturating_add(value / 4));
    let scale = f64::from(highest.max(least).max(1));
    let (top, bottom) = (MARGIN_ABOVE, MARGIN_ABOVE + HEIGHT);
    let height = |value: f64| bottom - value / scale * HEIGHT;
    let axis = accesses_axis(accesses);
    let at = |access: u64| axis.position((access as f64).min(axis.last));
    let end = |number: usize| {
        points.get(number + 1).map_or(PLOT_LEFT + PLOT_WIDTH, |next| at(next.access))
    };
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
    let describe = |index: usize, point: &CounterPoint| {
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
    let body = html! {
        (draw_vertical_axis((top, bottom), &marks, "mmap_miss (count)"))
        (draw_accesses_axis(&axis, (top, bottom)))
        @if let Some(value) = threshold {
            path.threshold d=(format!("M{PLOT_LEFT} {}h{PLOT_WIDTH}", round(height(value.into())))) {}
        }
        path.line d=(line) {}
        @for (index, point) in points.iter().enumerate() {
            (hover_column((at(point.access), end(index)), (top, bottom), &describe(index, point)))
        }
    };
    let seen = if complete {
        ""
    } else {
        " The tracepoints show it only where a mark or a stream enters readahead."
    };
    let row = |point: &CounterPoint| {
        let values = [point.low, point.high, point.last].map(|value| value.to_string());
        [number(point.access as f64)].into_iter().chain(values).collect()
    };
    let heads = ["from access", "lowest", "highest", "last"];
    let table = Table::from_parts([""; 0], heads, points.iter().map(row));
    Plot {
        title: "mmap_miss, the miss counter".to_string(),
        note: format!(
            "Its range and its last value in each of up to {} parts of the run. Above the \
             threshold a miss reads a single page.{seen}",
            points.len()
        ),
        description: format!(
            "The counter along the run, {highest} at most{}; the table below has its values.",
            threshold.map_or(String::new(), |value| format!(", with its threshold {value}"))
        ),
        legend: vec![
            [legend_entry("line-key", "mmap_miss, lowest to highest")]
                .into_iter()
                .chain(
                    threshold
                        .map(|value| legend_entry("threshold-key", format!("threshold {value}"))),
                )
                .collect(),
        ],
        height: bottom + MARGIN_BELOW,
        body,
        table: Some(("All values".to_string(), table)),
    }
}
