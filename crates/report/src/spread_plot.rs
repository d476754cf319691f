//! How figures spread over runs: how often each outcome comes.

use maud::html;

use crate::axis::{Axis, tick_text, ticks};
use crate::table::{Head, Table};
use crate::units::{byte_unit, bytes, bytes_range, number};

use crate::plot::{ABOVE, BELOW, LEFT, PLOT, Plot, horizontal, round};

/// Parts of the scale.
const BINS: usize = 81;

/// Height of the outcomes of one variant, and of the tallest tower among them.
const ROW: f64 = 64.0;
const TOWER: f64 = 36.0;

/// Runs that are listed at most; JSON has all.
const MOST_LISTED: usize = 2000;

/// The runs of one variant: the name of each, such as its seed, and the bytes that it read.
#[allow(missing_docs, reason = "their names say it")]
pub struct Outcomes {
    pub name: String,
    pub runs: Vec<(String, f64)>,
}

/// The picture of several variants on one scale; none where all of them have one run at most.
pub fn spread(rows: &[Outcomes], runs_are: &str) -> Option<Plot> {
    if rows.iter().all(|row| row.runs.len() < 2) {
        return None;
    }
    let values = || rows.iter().flat_map(|row| row.runs.iter().map(|(_, value)| *value));
    let most = values().fold(0.0, f64::max);
    let (unit, unit_bytes) = byte_unit(most);
    let axis = Axis { left: LEFT, width: PLOT, first: 0.0, last: (most / unit_bytes).max(1e-9) };
    let bottom = ABOVE + ROW * rows.len() as f64;
    let marks = ticks(0.0, axis.last, 6.0, 0.01).into_iter();
    let marks: Vec<_> = marks.map(|value| (value, tick_text(value))).collect();
    let towers: Vec<Vec<Vec<&(String, f64)>>> =
        rows.iter().map(|row| towers(&row.runs, most)).collect();
    let tallest = towers.iter().flatten().map(Vec::len).max().unwrap_or(1).max(1) as f64;
    let width = PLOT / BINS as f64;
    let body = html! {
        (horizontal(&axis, (ABOVE, bottom), &marks, &format!("{unit} read")))
        @for (number_of, (row, towers)) in rows.iter().zip(&towers).enumerate() {
            @let base = ABOVE + ROW * (number_of + 1) as f64;
            text.name x=(round(LEFT)) y=(round(base - ROW + 16.0)) { (row.name) }
            path.axis d=(format!("M{} {}h{}", round(LEFT), round(base), round(PLOT))) {}
            @for (bin, runs) in towers.iter().enumerate().filter(|(_, runs)| !runs.is_empty()) {
                @let height = (runs.len() as f64 / tallest * TOWER).max(3.0);
                rect.u4 x=(round(LEFT + width * bin as f64 + 0.5)) y=(round(base - height))
                    width=(round(width - 1.0)) height=(round(height))
                    data-t=(told(&row.name, runs, row.runs.len())) {}
            }
        }
    };
    let in_all: usize = rows.iter().map(|row| row.runs.len()).sum();
    let listed = rows.iter().flat_map(|row| row.runs.iter().map(move |run| (row, run)));
    let listed = listed.take(MOST_LISTED).map(|(row, (name, value))| {
        vec![row.name.clone(), name.clone(), bytes(*value), number(*value)]
    });
    let columns =
        vec![Head::left("job"), Head::right(runs_are), Head::right("read"), Head::right("bytes")];
    Some(Plot {
        title: "How the runs spread".to_string(),
        note: format!(
            "The height of a bar is the number of runs that read as much as its place says. All \
             rows have one scale; each bar is {} {unit} wide.",
            tick_text(axis.last / BINS as f64)
        ),
        described: format!("How much each of {in_all} runs read; the table below has each run."),
        legend: Vec::new(),
        height: bottom + BELOW,
        body,
        table: Some((
            format!("All {} runs", number(in_all.min(MOST_LISTED) as f64)),
            Table { title: String::new(), columns, rows: listed.collect() },
        )),
    })
}

/// The runs of each part of the scale from 0 to `most`.
fn towers(runs: &[(String, f64)], most: f64) -> Vec<Vec<&(String, f64)>> {
    let mut towers = vec![Vec::new(); BINS];
    for run in runs {
        let bin = (run.1 / most.max(f64::MIN_POSITIVE) * BINS as f64) as usize;
        towers[bin.min(BINS - 1)].push(run);
    }
    towers
}

fn told(name: &str, runs: &[&(String, f64)], all: usize) -> String {
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
