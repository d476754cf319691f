//! What the page cache held along a run.

use std::fmt::Write;

use maud::html;

use filemap_report::plot::{
    ABOVE, BELOW, LEFT, PLOT, Plot, accesses_done, byte_marks, column, entry, of_accesses, round,
    vertical,
};
use filemap_report::units::{bytes, number};
use filemap_report::{Head, Table};

use super::super::history::History;
use super::shares::{interval, percent};

const HEIGHT: f64 = 200.0;

/// What was in the cache along the run; none where that was nothing.
pub(super) fn plot(history: &History) -> Option<Plot> {
    let intervals = history.resident.len().min(history.resident_used.len());
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
            interval(history.accesses, at, intervals),
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
        legend: vec![vec![
            entry("u4", "accessed since they came in"),
            entry("u0", "not accessed so far"),
        ]],
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
        let name = interval(history.accesses, at, intervals);
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
