//! The windows of a run with too many to list, by interval of the run and part of the file.

use maud::{Markup, html};

use filemap_report::plot::{
    MARGIN_ABOVE, MARGIN_BELOW, PLOT_LEFT, PLOT_WIDTH, Plot, accesses_axis, amount_class,
    amount_legend, byte_marks, cell_paths, draw_accesses_axis, draw_vertical_axis, round,
};
use filemap_report::units::{bytes, number};
use filemap_report::{Axis, Table, count_row};

use super::super::history::{Grid, History};
use super::intervals::{percent, share_class, share_legend, sum};

/// Height of one of the two plots.
const PANEL: f64 = 190.0;

/// The rows of a grid that hold anything or are mapped.
struct GridView<'a> {
    grid: &'a Grid,
    first: usize,
    count: usize,
    columns: usize,
}

impl<'a> GridView<'a> {
    fn new(history: &History, grid: &'a Grid) -> Option<GridView<'a>> {
        let columns = grid.read.len().min(grid.used.len());
        let rows = grid.read.iter().chain(&grid.used).map(Vec::len).min()?;
        let row_pages = grid.row_pages.max(1);
        let row = |page: u64| (page.saturating_sub(grid.start) / row_pages) as usize;
        let [from, end] = history.mapped;
        let holds = |&number: &usize| grid.read.iter().any(|rows| rows[number] > 0);
        let (first, last) = ((0..rows).find(holds)?, (0..rows).rev().find(holds)?);
        let first = first.min(row(from));
        let last = last.max(row(end.saturating_sub(1))).min(rows - 1);
        Some(GridView { grid, first, count: last + 1 - first, columns })
    }

    /// Pages read and used in a cell, the first row at the bottom.
    fn cell(&self, column: usize, row: usize) -> (u64, u64) {
        let row = self.first + row;
        (self.grid.read[column][row], self.grid.used[column][row])
    }

    fn most(&self) -> u64 {
        let cells = self.grid.read[..self.columns].iter().flatten();
        cells.copied().max().unwrap_or(0)
    }

    /// The cells of each class as one path.
    fn paths(&self, class: impl Fn(u64, u64) -> Option<String>) -> Vec<(String, String)> {
        cell_paths(self.columns, self.count, |column, row| {
            let (read, used) = self.cell(column, row);
            class(read, used)
        })
    }

    fn values(&self, cells: &[Vec<u64>]) -> String {
        let rows = |rows: &Vec<u64>| {
            let shown = &rows[self.first..self.first + self.count];
            shown.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
        };
        cells[..self.columns].iter().map(rows).collect::<Vec<_>>().join(";")
    }
}

/// The chart of `grid`; `None` if it is empty.
pub(super) fn plot(history: &History, grid: &Grid) -> Option<Plot> {
    let shown = GridView::new(history, grid)?;
    let page = history.page_bytes as f64;
    let row_pages = grid.row_pages.max(1);
    let first = grid.start.saturating_add((shown.first as u64).saturating_mul(row_pages));
    let end = first.saturating_add((shown.count as u64).saturating_mul(row_pages));
    let axis = accesses_axis(history.accesses);
    let most = shown.most();
    let panels = [
        ("pages read", shown.paths(|read, _| amount_class(most, read))),
        (
            "share used",
            shown.paths(|read, used| (read > 0).then(|| share_class(read, used).to_string())),
        ),
    ];
    let body = html! {
        @for (number, (name, paths)) in panels.iter().enumerate() {
            @let top = MARGIN_ABOVE + (MARGIN_ABOVE + MARGIN_BELOW + PANEL) * number as f64;
            (panel(&shown, &axis, top, (first as f64 * page, end as f64 * page), name, paths))
        }
    };
    let calls = sum(history.calls.iter().copied());
    Some(Plot {
        title: "Windows along the run".to_string(),
        note: format!(
            "{} windows and single pages are too many to draw one by one. A cell \
             stands for {} of the file during about {} accesses. The upper plot shows how many \
             pages were read there, the lower one which share of them was accessed before they \
             left. Blank cells had nothing to read.",
            number(calls as f64),
            bytes(row_pages as f64 * page),
            number((history.accesses as f64 / shown.columns.max(1) as f64).round()),
        ),
        description: format!(
            "Pages read and the share of them that was used, by access and file offset, in {} by \
             {} cells; the table below the next picture adds them up.",
            shown.columns, shown.count
        ),
        legend: vec![amount_legend("pages read in a cell:", most), share_legend()],
        height: (MARGIN_ABOVE + MARGIN_BELOW + PANEL) * 2.0,
        body: html! {
            g data-accesses=(history.accesses) data-intervals=(shown.columns)
                data-start=(first) data-row=(row_pages) data-rows=(shown.count)
                data-read=(shown.values(&grid.read)) data-used=(shown.values(&grid.used)) {
                (body)
            }
        },
        table: Some(("All by part of the file".to_string(), by_part(&shown, first, row_pages))),
    })
}

fn panel(
    shown: &GridView,
    axis: &Axis,
    top: f64,
    (first, end): (f64, f64),
    name: &str,
    paths: &[(String, String)],
) -> Markup {
    let bottom = top + PANEL;
    let height = |at: f64| bottom - (at - first) / (end - first) * PANEL;
    let (marks, unit) = byte_marks(first, end, height);
    let scale = format!(
        "translate({PLOT_LEFT} {}) scale({:.5} {:.5})",
        round(top),
        PLOT_WIDTH / shown.columns as f64,
        PANEL / shown.count as f64
    );
    html! {
        (draw_vertical_axis((top, bottom), &marks, &format!("{name}, by file offset ({unit})")))
        (draw_accesses_axis(axis, (top, bottom)))
        g.cells transform=(scale) {
            @for (class, path) in paths { path class=(class) d=(path) {} }
        }
        rect.hit x=(round(PLOT_LEFT)) y=(round(top)) width=(round(PLOT_WIDTH)) height=(round(PANEL))
            data-grid="" {}
    }
}

fn by_part(shown: &GridView, first: u64, row_pages: u64) -> Table {
    let row = |row: usize| {
        let cells = (0..shown.columns).map(|column| shown.cell(column, row));
        let (read, used): (Vec<u64>, Vec<u64>) = cells.unzip();
        let (read, used) = (sum(read), sum(used));
        let from = first.saturating_add((row as u64).saturating_mul(row_pages));
        let last = from.saturating_add(row_pages) - 1;
        let pages = format!("{} to {}", number(from as f64), number(last as f64));
        let mut cells = count_row(pages, [read, used]);
        cells.push(if read == 0 { String::new() } else { percent(used, read) });
        cells
    };
    let rows = (0..shown.count).map(row);
    Table::from_parts(["pages of the file"], ["pages read", "used", "share"], rows)
}
