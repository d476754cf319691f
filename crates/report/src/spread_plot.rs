//! A histogram of a figure over runs, for each variant.

use maud::html;

use crate::axis::{Axis, tick_text, ticks};
use crate::table::{Head, Table};
use crate::units::{byte_unit, bytes, bytes_range, number};

use crate::plot::{
    MARGIN_ABOVE, MARGIN_BELOW, PLOT_LEFT, PLOT_WIDTH, Plot, draw_horizontal_axis, round,
};

/// Number of bins.
const BINS: usize = 81;

/// Height of a variant's row.
const ROW: f64 = 64.0;
/// Height of the tallest bar.
const MAX_BAR: f64 = 36.0;

/// Maximum number of listed runs; JSON has all.
const MAX_LISTED: usize = 2000;

/// The runs of one variant: the name of each, such as its seed, and the bytes read.
#[allow(missing_docs, reason = "their names say it")]
pub struct SpreadRow {
    pub name: String,
    pub runs: Vec<(String, f64)>,
}

/// Histograms of several variants on one scale; `None` if none has more than one run.
pub fn spread_plot(rows: &[SpreadRow], runs_are: &str) -> Option<Plot> {
    if rows.iter().all(|row| row.runs.len() < 2) {
        return None;
    }
    let values = || rows.iter().flat_map(|row| row.runs.iter().map(|(_, value)| *value));
    let most = values().fold(0.0, f64::max);
    let (unit, unit_bytes) = byte_unit(most);
    let axis = Axis {
        left: PLOT_LEFT,
        width: PLOT_WIDTH,
        first: 0.0,
        last: (most / unit_bytes).max(1e-9),
    };
    let bottom = MARGIN_ABOVE + ROW * rows.len() as f64;
    let marks = ticks(0.0, axis.last, 6.0, 0.01).into_iter();
    let marks: Vec<_> = marks.map(|value| (value, tick_text(value))).collect();
    let histograms: Vec<Vec<Vec<&(String, f64)>>> =
        rows.iter().map(|row| bins(&row.runs, most)).collect();
    let tallest = histograms.iter().flatten().map(Vec::len).max().unwrap_or(1).max(1) as f64;
    let width = PLOT_WIDTH / BINS as f64;
    let body = html! {
        (draw_horizontal_axis(&axis, (MARGIN_ABOVE, bottom), &marks, &format!("{unit} read")))
        @for (index, (row, bins)) in rows.iter().zip(&histograms).enumerate() {
            @let base = MARGIN_ABOVE + ROW * (index + 1) as f64;
            text.name x=(round(PLOT_LEFT)) y=(round(base - ROW + 16.0)) { (row.name) }
            path.axis d=(format!("M{} {}h{}", round(PLOT_LEFT), round(base), round(PLOT_WIDTH))) {}
            @for (bin, runs) in bins.iter().enumerate().filter(|(_, runs)| !runs.is_empty()) {
                @let height = (runs.len() as f64 / tallest * MAX_BAR).max(3.0);
                rect.u4 x=(round(PLOT_LEFT + width * bin as f64 + 0.5)) y=(round(base - height))
                    width=(round(width - 1.0)) height=(round(height))
                    data-t=(tooltip(&row.name, runs, row.runs.len())) {}
            }
        }
    };
    let run_count: usize = rows.iter().map(|row| row.runs.len()).sum();
    let listed = rows.iter().flat_map(|row| row.runs.iter().map(move |run| (row, run)));
    let listed = listed.take(MAX_LISTED).map(|(row, (name, value))| {
        vec![row.name.clone(), name.clone(), bytes(*value), number(*value)]
    });
    let columns = vec![
        Head::text("job"),
        Head::number(runs_are),
        Head::number("read"),
        Head::number("bytes"),
    ];
    Some(Plot {
        title: "How the runs spread".to_string(),
        note: format!(
            "The height of a bar is the number of runs that read that much. All rows have the same \
             scale; each bar is {} {unit} wide.",
            tick_text(axis.last / BINS as f64)
        ),
        description: format!(
            "How much each of {run_count} runs read; the table below has each run."
        ),
        legend: Vec::new(),
        height: bottom + MARGIN_BELOW,
        body,
        table: Some((
            format!("All {} runs", number(run_count.min(MAX_LISTED) as f64)),
            Table { title: String::new(), columns, rows: listed.collect() },
        )),
    })
}

/// The runs in each bin of the scale from 0 to `max`.
fn bins(runs: &[(String, f64)], max: f64) -> Vec<Vec<&(String, f64)>> {
    let mut bins = vec![Vec::new(); BINS];
    for run in runs {
        let bin = (run.1 / max.max(f64::MIN_POSITIVE) * BINS as f64) as usize;
        bins[bin.min(BINS - 1)].push(run);
    }
    bins
}

fn tooltip(name: &str, runs: &[&(String, f64)], all: usize) -> String {
    let values = || runs.iter().map(|(_, value)| *value);
    match runs {
        [(run, value)] => format!("{name}: {run} read {}", bytes(*value)),
        _ => format!(
            "{name}: {} of {all} runs read {}",
            runs.len(),
            bytes_range(values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max))
        ),
    }
}
