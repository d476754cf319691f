//! Amounts in each interval of a run, one on top of the other.

use std::fmt::Write;

use maud::{Markup, html};

use filemap_report::plot::{
    ABOVE, LEFT, PLOT, accesses_done, column, entry, of_accesses, round, vertical,
};

use super::shares::sum;

/// Where such a plot ends.
pub(super) const BOTTOM: f64 = ABOVE + 200.0;

/// What is on top of what is below it.
pub(super) struct Layer {
    /// The class of its colour.
    pub(super) class: &'static str,
    pub(super) name: String,
    /// Its amount in each interval.
    pub(super) amounts: Vec<u64>,
}

/// The most that all `layers` together have in an interval.
pub(super) fn most(layers: &[Layer]) -> u64 {
    let intervals = 0..layers.first().map_or(0, |layer| layer.amounts.len());
    intervals.map(|at| sum(layers.iter().map(|layer| layer.amounts[at]))).max().unwrap_or(0)
}

/// `layers` along a run of so many accesses, of which `told` says an interval in words. The
/// vertical axis has `marks` at amounts, and this `name`.
pub(super) fn body(
    accesses: u64,
    layers: &[Layer],
    (marks, name): (Vec<(f64, String)>, &str),
    told: impl Fn(usize) -> String,
) -> Markup {
    let most = most(layers).max(1) as f64;
    let height = |amount: f64| BOTTOM - amount / most * (BOTTOM - ABOVE);
    let marks: Vec<_> = marks.into_iter().map(|(at, text)| (height(at), text)).collect();
    let intervals = layers[0].amounts.len();
    let bound = |number: usize| LEFT + PLOT * number as f64 / intervals as f64;
    let mut below = vec![0.0; intervals];
    let mut areas = Vec::new();
    for Layer { class, amounts, .. } in layers {
        let above: Vec<f64> = below.iter().zip(amounts).map(|(a, b)| a + *b as f64).collect();
        let mut path = format!("M{LEFT} {}", round(height(below[0])));
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
        (vertical((ABOVE, BOTTOM), &marks, name))
        (accesses_done(&of_accesses(accesses), (ABOVE, BOTTOM)))
        @for (class, path) in &areas { path class=(class) d=(path) {} }
        @for number in 0..intervals {
            (column((bound(number), bound(number + 1)), (ABOVE, BOTTOM), &told(number)))
        }
    }
}

/// What the colours of `layers` mean.
pub(super) fn legend(layers: &[Layer]) -> Vec<Vec<(String, String)>> {
    vec![layers.iter().map(|layer| entry(layer.class, layer.name.as_str())).collect()]
}
