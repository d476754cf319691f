//! Plots, with axes, a legend, and a table of values.

use std::fmt::Write;

use maud::{Markup, html};

use crate::axis::{Axis, tick_text, ticks};
use crate::table::Table;
use crate::units::{byte_unit, number};

/// Width of a picture, in the units of all sizes here.
pub(crate) const WIDTH: f64 = 760.0;

/// Left edge of the plot in a picture.
pub const PLOT_LEFT: f64 = 92.0;

/// Width of the plot in a picture.
pub const PLOT_WIDTH: f64 = 620.0;

/// Height above a plot, for the name of its vertical axis.
pub const MARGIN_ABOVE: f64 = 26.0;

/// Height below a plot, for its horizontal axis.
pub const MARGIN_BELOW: f64 = 42.0;

/// A plot.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Plot {
    pub title: String,
    /// How to read it.
    pub note: String,
    /// Description for screen readers.
    pub description: String,
    /// Legends: lists of CSS classes with their meaning. An entry without a class is a heading.
    pub legend: Vec<Vec<(String, String)>>,
    pub height: f64,
    pub body: Markup,
    /// A table of its values, with a heading.
    pub table: Option<(String, Table)>,
}

/// A legend of CSS classes.
pub fn legend(entries: &[(String, String)]) -> Markup {
    html! {
        ul.legend {
            @for (class, text) in entries {
                li {
                    @if !class.is_empty() { span.key.(class) {} " " }
                    (text)
                }
            }
        }
    }
}

/// An entry of a legend: a CSS class and its meaning.
pub fn legend_entry(class: &str, text: impl Into<String>) -> (String, String) {
    (class.to_string(), text.into())
}

/// A coordinate with at most one decimal.
pub fn round(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

/// Number of colour classes for amounts; the limit of each is a quarter of the next one's.
const AMOUNTS: u32 = 5;

/// The largest amount of a class, from 1; `most` is the largest of all.
fn amount_limit(most: u64, class: u32) -> u64 {
    most >> (2 * (AMOUNTS - class))
}

/// The CSS class of a cell with `amount`, where the largest cell has `most`; `None` for 0.
pub fn amount_class(most: u64, amount: u64) -> Option<String> {
    let class = (1..=AMOUNTS).find(|&class| amount <= amount_limit(most, class))?;
    (amount > 0).then(|| format!("a{class}"))
}

/// The legend of [`amount_class`], with a heading.
pub fn amount_legend(heading: &str, most: u64) -> Vec<(String, String)> {
    let mut entries = vec![legend_entry("", heading)];
    let mut least = 1;
    for class in 1..=AMOUNTS {
        let most = amount_limit(most, class);
        let text = match least {
            least if least < most => format!("{} to {}", number(least as f64), number(most as f64)),
            least => number(least as f64),
        };
        if least <= most {
            entries.push(legend_entry(&format!("a{class}"), text));
        }
        least = most + 1;
    }
    entries
}

/// The cells of each class as one path; neighbours of one class are one rectangle. A cell has
/// width and height 1, and the first row is at the bottom.
pub fn cell_paths(
    columns: usize,
    rows: usize,
    class: impl Fn(usize, usize) -> Option<String>,
) -> Vec<(String, String)> {
    let mut paths: Vec<(String, String)> = Vec::new();
    for row in 0..rows {
        let y = rows - 1 - row;
        let mut column = 0;
        while column < columns {
            let own = class(column, row);
            let begin = column;
            while column < columns && class(column, row) == own {
                column += 1;
            }
            let Some(own) = own else { continue };
            let width = column - begin;
            let at = paths.iter().position(|(known, _)| *known == own).unwrap_or_else(|| {
                paths.push((own, String::new()));
                paths.len() - 1
            });
            let _ = write!(paths[at].1, "M{begin} {y}h{width}v1h-{width}z");
        }
    }
    paths
}

/// A horizontal axis of accesses.
pub fn accesses_axis(accesses: u64) -> Axis {
    Axis { left: PLOT_LEFT, width: PLOT_WIDTH, first: 0.0, last: accesses.max(1) as f64 }
}

/// Draws a horizontal axis with `marks` below a plot from `top` to `bottom`.
pub fn draw_horizontal_axis(
    axis: &Axis,
    (top, bottom): (f64, f64),
    marks: &[(f64, String)],
    name: &str,
) -> Markup {
    let end = axis.left + axis.width;
    html! {
        @for (value, text) in marks {
            @let x = round(axis.position(*value));
            path.grid d=(format!("M{x} {}V{}", round(top), round(bottom))) {}
            path.axis d=(format!("M{x} {}v4", round(bottom))) {}
            text.tick.middle x=(x) y=(round(bottom + 17.0)) { (text) }
        }
        path.axis d=(format!("M{} {}H{}", round(axis.left), round(bottom), round(end))) {}
        text.name.middle x=(round(axis.left + axis.width / 2.0)) y=(round(bottom + 35.0)) { (name) }
    }
}

/// Draws a horizontal axis of accesses.
pub fn draw_accesses_axis(axis: &Axis, plot: (f64, f64)) -> Markup {
    let marks = ticks(axis.first, axis.last, 5.0, 1.0).into_iter();
    let marks: Vec<_> = marks.map(|value| (value, number(value))).collect();
    draw_horizontal_axis(axis, plot, &marks, "accesses done")
}

/// Draws a vertical axis with `marks` at their coordinates, and its name above.
pub fn draw_vertical_axis(
    (top, bottom): (f64, f64),
    marks: &[(f64, String)],
    name: &str,
) -> Markup {
    html! {
        @for (y, text) in marks {
            path.grid d=(format!("M{PLOT_LEFT} {}h{PLOT_WIDTH}", round(*y))) {}
            path.axis d=(format!("M{PLOT_LEFT} {}h-4", round(*y))) {}
            text.tick.end x=(round(PLOT_LEFT - 8.0)) y=(round(y + 4.0)) { (text) }
        }
        path.axis d=(format!("M{PLOT_LEFT} {}V{}", round(top), round(bottom))) {}
        text.name x="4" y=(round(top - 10.0)) { (name) }
    }
}

/// Marks of a vertical axis in bytes from `first` to `last`, and their unit.
pub fn byte_marks(
    first: f64,
    last: f64,
    height: impl Fn(f64) -> f64,
) -> (Vec<(f64, String)>, &'static str) {
    let (unit, unit_bytes) = byte_unit(last - first);
    let values = ticks(first / unit_bytes, last / unit_bytes, 4.0, 0.01).into_iter();
    let text = |value: f64| match value {
        large if large >= 10_000.0 => number(large.round()),
        small => tick_text(small),
    };
    (values.map(|value| (height(value * unit_bytes), text(value))).collect(), unit)
}

/// A column of a plot with a tooltip.
pub fn hover_column(x: (f64, f64), plot: (f64, f64), text: &str) -> Markup {
    let ((left, right), (top, bottom)) = (x, plot);
    html! {
        rect.hit x=(round(left)) y=(round(top)) width=(round((right - left).max(0.1)))
            height=(round(bottom - top)) data-t=(text) {}
    }
}
