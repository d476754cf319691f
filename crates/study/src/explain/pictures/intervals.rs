//! Charts of counts by interval: stacked areas, and the used share of pages read as colour and
//! text.

use std::fmt::Write;

use maud::{Markup, html};

use filemap_report::plot::{
    MARGIN_ABOVE, PLOT_LEFT, PLOT_WIDTH, accesses_axis, draw_accesses_axis, draw_vertical_axis,
    hover_column, legend_entry, round,
};
use filemap_report::units::number;

use super::super::history::first_access;

/// y coordinate of the bottom of stacked areas.
pub(super) const BOTTOM: f64 = MARGIN_ABOVE + 200.0;

/// One area, on top of the layers before it.
pub(super) struct Layer {
    /// The class of its colour.
    pub(super) class: &'static str,
    pub(super) name: String,
    /// Its amount in each interval.
    pub(super) amounts: Vec<u64>,
}

/// The largest sum of all `layers` in an interval.
pub(super) fn max_sum(layers: &[Layer]) -> u64 {
    let intervals = 0..layers.first().map_or(0, |layer| layer.amounts.len());
    intervals.map(|at| sum(layers.iter().map(|layer| layer.amounts[at]))).max().unwrap_or(0)
}

/// Plots `layers` along a run of `accesses` accesses. `describe` returns the text of an interval;
/// the vertical axis is called `name` and has `marks` at amounts.
pub(super) fn stacked_areas(
    accesses: u64,
    layers: &[Layer],
    (marks, name): (Vec<(f64, String)>, &str),
    describe: impl Fn(usize) -> String,
) -> Markup {
    let most = max_sum(layers).max(1) as f64;
    let height = |amount: f64| BOTTOM - amount / most * (BOTTOM - MARGIN_ABOVE);
    let marks: Vec<_> = marks.into_iter().map(|(at, text)| (height(at), text)).collect();
    let intervals = layers[0].amounts.len();
    let bound = |number: usize| PLOT_LEFT + PLOT_WIDTH * number as f64 / intervals as f64;
    let mut below = vec![0.0; intervals];
    let mut areas = Vec::new();
    for Layer { class, amounts, .. } in layers {
        let above: Vec<f64> = below.iter().zip(amounts).map(|(a, b)| a + *b as f64).collect();
        let mut path = format!("M{PLOT_LEFT} {}", round(height(below[0])));
        for (at, top) in above.iter().enumerate() {
            let _ = write!(path, "V{}H{}", round(height(*top)), round(bound(at + 1)));
        }
        for (at, bottom) in below.iter().enumerate().rev() {
            let _ = write!(path, "V{}H{}", round(height(*bottom)), round(bound(at)));
        }
        areas.push((class, path + "z"));
        below = above;
    }
    html! {
        (draw_vertical_axis((MARGIN_ABOVE, BOTTOM), &marks, name))
        (draw_accesses_axis(&accesses_axis(accesses), (MARGIN_ABOVE, BOTTOM)))
        @for (class, path) in &areas { path class=(class) d=(path) {} }
        @for number in 0..intervals {
            @let columns = (bound(number), bound(number + 1));
            (hover_column(columns, (MARGIN_ABOVE, BOTTOM), &describe(number)))
        }
    }
}

/// The legend of `layers`.
pub(super) fn layer_legend(layers: &[Layer]) -> Vec<Vec<(String, String)>> {
    vec![layers.iter().map(|layer| legend_entry(layer.class, layer.name.as_str())).collect()]
}

/// The colour class for the used share of pages read.
pub(super) fn share_class(read: u64, used: u64) -> &'static str {
    match (read, used) {
        (0, _) => "none",
        (_, 0) => "u0",
        (read, used) if used >= read => "u4",
        (read, used) if used * 4 <= read => "u1",
        (read, used) if used * 2 <= read => "u2",
        _ => "u3",
    }
}

pub(super) fn share_legend() -> Vec<(String, String)> {
    vec![
        legend_entry("", "of the pages read, accessed before they left:"),
        legend_entry("u0", "none"),
        legend_entry("u1", "up to a quarter"),
        legend_entry("u2", "up to half"),
        legend_entry("u3", "more"),
        legend_entry("u4", "all"),
    ]
}

/// The saturating sum of counts from a record, which may be arbitrarily large.
pub(super) fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// A share in percent.
pub(super) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// The accesses of an interval in words: `accesses 12 to 23`.
pub(super) fn interval_text(accesses: u64, interval: usize, intervals: usize) -> String {
    let bound = |at: usize| first_access(at as u64, accesses, intervals as u64);
    let (from, end) = (bound(interval), bound(interval + 1));
    format!("accesses {} to {}", number(from as f64), number(end.max(from + 1) as f64 - 1.0))
}
