//! Chart of the pages of a file in the page cache along a run.

use filemap_report::plot::{MARGIN_BELOW, Plot, byte_marks};
use filemap_report::units::bytes;
use filemap_report::{Table, count_row};

use super::super::history::History;
use super::intervals::{BOTTOM, Layer, interval_text, layer_legend, percent, stacked_areas};

/// Pages cached at the end of each interval; `None` if no page ever is.
pub(super) fn plot(history: &History) -> Option<Plot> {
    let most = history.resident.iter().copied().max().filter(|&most| most > 0)?;
    let intervals = history.resident.len();
    let both = || history.resident.iter().zip(&history.resident_used);
    let layer = |class, name: &str, amounts| Layer { class, name: name.to_string(), amounts };
    let layers = [
        layer(
            "u4",
            "accessed since they came in",
            both().map(|(all, used)| *used.min(all)).collect(),
        ),
        layer(
            "u0",
            "not accessed so far",
            both().map(|(all, used)| all.saturating_sub(*used)).collect(),
        ),
    ];
    let page = history.page_bytes as f64;
    let (marks, unit) = byte_marks(0.0, most as f64 * page, |bytes| bytes / page);
    let name = |at: usize| interval_text(history.accesses, at, intervals);
    let describe = |at: usize| {
        let (all, used) = (history.resident[at], history.resident_used[at]);
        format!(
            "after {}: {} in the page cache, {} of it accessed since it came in ({})",
            name(at),
            bytes(all as f64 * page),
            bytes(used as f64 * page),
            percent(used, all)
        )
    };
    let numbers = |at: usize| {
        let History { calls, read, used, resident, resident_used, .. } = history;
        [calls, read, used, resident, resident_used].map(|values| values[at])
    };
    let heads = [
        "windows and single pages",
        "pages read",
        "used",
        "pages in the cache at its end",
        "accessed since they came in",
    ];
    let rows = (0..intervals).map(|at| count_row(name(at), numbers(at)));
    let axis = format!("in the page cache ({unit})");
    Some(Plot {
        title: "Page cache along the run".to_string(),
        note: format!(
            "Pages of the file that are in the page cache at the end of each of {intervals} \
             intervals of the run."
        ),
        description: format!(
            "Pages of the file in the page cache along the run, at most {}; the table below has \
             each interval.",
            bytes(most as f64 * page)
        ),
        legend: layer_legend(&layers),
        height: BOTTOM + MARGIN_BELOW,
        body: stacked_areas(history.accesses, &layers, (marks, &axis), describe),
        table: Some(("All intervals".to_string(), Table::from_parts(["interval"], heads, rows))),
    })
}
