//! Chart of reads along the run and the file: window by window, or by cells of a grid.

use maud::html;

use filemap_report::plot::{
    MARGIN_ABOVE, MARGIN_BELOW, PLOT_LEFT, PLOT_WIDTH, Plot, accesses_axis, byte_marks,
    draw_accesses_axis, draw_vertical_axis, legend_entry, round,
};
use filemap_report::units::number;
use filemap_report::{Table, count_row};

use super::super::history::{History, HistoryWindow};
use super::grid;
use super::intervals::{share_class, share_legend};

/// Height of the plot.
const HEIGHT: f64 = 300.0;

/// Minimum width and height of a window's mark.
const MIN_MARK_SIZE: f64 = 2.5;

/// The chart of `history`; `None` if nothing was read.
pub(super) fn plot(history: &History) -> Option<Plot> {
    if history.read.iter().all(|&pages| pages == 0) {
        return None;
    }
    match (&history.windows, &history.grid) {
        (Some(windows), _) => Some(window_plot(history, windows)),
        (None, Some(grid)) => grid::plot(history, grid),
        (None, None) => None,
    }
}

fn window_plot(history: &History, windows: &[HistoryWindow]) -> Plot {
    let [first, end] = history.mapped;
    let first = windows.iter().map(|window| window.start).fold(first, u64::min);
    let ends = windows.iter().map(|window| window.start.saturating_add(window.pages));
    let end = ends.fold(end, u64::max).max(first + 1);
    let (top, bottom) = (MARGIN_ABOVE, MARGIN_ABOVE + HEIGHT);
    let page = history.page_bytes as f64;
    let span = (end - first) as f64;
    let height = |index: f64| bottom - (index - first as f64) / span * HEIGHT;
    let axis = accesses_axis(history.accesses);
    let width = (PLOT_WIDTH / axis.last).clamp(MIN_MARK_SIZE, 14.0);
    let (marks, unit) =
        byte_marks(first as f64 * page, end as f64 * page, |bytes| height(bytes / page));
    let body = html! {
        (draw_vertical_axis((top, bottom), &marks, &format!("file offset ({unit})")))
        (draw_accesses_axis(&axis, (top, bottom)))
        @for window in windows {
            @let end = window.start.saturating_add(window.pages);
            @let tall = (window.pages as f64 / span * HEIGHT).max(MIN_MARK_SIZE);
            @let y = (height(end as f64)).min(bottom - tall);
            @let x = axis.position(window.access as f64).min(PLOT_LEFT + PLOT_WIDTH - width);
            rect class=(share_class(window.read, window.used))
                x=(round(x)) y=(round(y))
                width=(round(width)) height=(round(tall)) data-t=(window_text(window)) {}
        }
    };
    let mut legend = share_legend();
    legend.push(legend_entry("none", "nothing came in"));
    Plot {
        title: "Windows along the run".to_string(),
        note: "Each mark is one window that was asked for, or one page that was read alone: when, \
               and which part of the file. Small ones are drawn larger than they are."
            .to_string(),
        description: format!(
            "{} windows by access and file offset, coloured by the share of their pages that was \
             accessed; the table below has each of them.",
            windows.len()
        ),
        legend: vec![legend],
        height: bottom + MARGIN_BELOW,
        body,
        table: Some((format!("All {} windows", windows.len()), window_table(windows))),
    }
}

/// The text of a window.
fn window_text(window: &HistoryWindow) -> String {
    let HistoryWindow { access, by, start, pages, read, used } = window;
    let [access, first, last, pages, read, used] =
        [*access, *start, (start + pages).saturating_sub(1), *pages, *read, *used]
            .map(|n| number(n as f64));
    format!(
        "access {access}, {by}: pages {first} to {last} ({pages}); {read} came in, {used} of them \
         were used"
    )
}

fn window_table(windows: &[HistoryWindow]) -> Table {
    let row = |window: &HistoryWindow| {
        let HistoryWindow { access, by, start, pages, read, used } = window;
        count_row(by.as_str(), [access, start, pages, read, used].map(|number| *number))
    };
    let heads = ["access", "first page", "pages asked for", "came in", "used"];
    Table::from_parts(["asked by"], heads, windows.iter().map(row))
}
