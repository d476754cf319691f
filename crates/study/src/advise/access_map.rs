//! Where and when a program accesses its files: offset over time.

use std::collections::BTreeMap;

use filemap_core::decision::{Decision, Log};
use filemap_core::units::{FileId, PageCount, PageIndex};
use filemap_job::Job;
use filemap_report::plot::{
    MARGIN_ABOVE, MARGIN_BELOW, PLOT_LEFT, PLOT_WIDTH, Plot, amount_class, amount_legend,
    byte_marks, cell_paths, draw_horizontal_axis, draw_vertical_axis, round,
};
use filemap_report::units::{bytes, number, time, time_unit};
use filemap_report::{Axis, Table, tick_text, ticks};
use maud::html;
use serde::{Deserialize, Serialize};

/// Maximum columns of a map; at least half of them are used by a run that does not end early.
const MAX_COLUMNS: usize = 160;

/// Maximum rows of a map.
const MAX_ROWS: u64 = 48;

/// Rows that accesses are counted in. The map shows the span of rows that hold any, merged to
/// [`MAX_ROWS`].
const FINE_ROWS: u64 = MAX_ROWS * 64;

/// Initial duration of a column, in nanoseconds. It doubles when a run outgrows the columns.
const FIRST_COLUMN_NS: u64 = 1 << 10;

/// Maximum number of maps: the files with most accesses.
const MAX_MAPS: usize = 4;

/// Height of the plot.
const HEIGHT: f64 = 220.0;

/// The accesses to a file by time and offset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AccessMap {
    /// The file.
    pub file: String,
    /// First page of the map.
    pub start: u64,
    /// Pages of a row.
    pub row_pages: u64,
    /// Time of a column in nanoseconds.
    pub column_ns: u64,
    /// Accessed pages by column and row.
    pub cells: Vec<Vec<u64>>,
}

/// Counts the accesses of a run of the model.
pub(super) struct AccessMapLog<'j> {
    job: &'j Job,
    file: FileId,
    column: usize,
    column_ns: u64,
    /// For each file its accessed pages by column and fine row.
    cells: Vec<BTreeMap<(usize, u64), u64>>,
}

impl<'j> AccessMapLog<'j> {
    pub fn new(job: &'j Job) -> AccessMapLog<'j> {
        let cells = vec![BTreeMap::new(); job.files.len()];
        AccessMapLog { job, file: FileId::FIRST, column: 0, column_ns: FIRST_COLUMN_NS, cells }
    }

    /// Maps of the files that `is_shown` selects, those with most accesses.
    pub fn into_maps(self, is_shown: impl Fn(usize) -> bool) -> Vec<AccessMap> {
        let mut files: Vec<(u64, usize)> = (0..self.cells.len())
            .filter(|file| is_shown(*file))
            .map(|file| (self.cells[file].values().sum(), file))
            .filter(|(accesses, _)| *accesses > 0)
            .collect();
        files.sort_by_key(|(accesses, file)| (std::cmp::Reverse(*accesses), *file));
        files.truncate(MAX_MAPS);
        files.into_iter().filter_map(|(_, file)| self.map(file)).collect()
    }

    fn fine_row_pages(&self, file: usize) -> u64 {
        self.job.file_pages(file).0.div_ceil(FINE_ROWS).max(1)
    }

    fn map(&self, file: usize) -> Option<AccessMap> {
        let cells = &self.cells[file];
        let first = cells.keys().map(|(_, row)| *row).min()?;
        let last = cells.keys().map(|(_, row)| *row).max()?;
        // The same for all files, so that their maps have one axis of time.
        let all = self.cells.iter().flat_map(BTreeMap::keys);
        let columns = all.map(|(column, _)| *column).max()? + 1;
        let together = (last + 1 - first).div_ceil(MAX_ROWS);
        let rows = (last + 1 - first).div_ceil(together);
        let mut map = AccessMap {
            file: self.job.files[file].name.clone(),
            start: first * self.fine_row_pages(file),
            row_pages: together * self.fine_row_pages(file),
            column_ns: self.column_ns,
            cells: vec![vec![0; rows as usize]; columns],
        };
        for ((column, row), pages) in cells {
            map.cells[*column][((row - first) / together) as usize] += pages;
        }
        Some(map)
    }
}

impl Log for AccessMapLog<'_> {
    fn record(&mut self, decision: Decision) {
        if let Decision::File { file } = decision {
            self.file = file;
        }
    }

    fn at(&mut self, _: usize, now_ns: u64) {
        while now_ns / self.column_ns >= MAX_COLUMNS as u64 {
            self.column_ns *= 2;
            for cells in &mut self.cells {
                let mut wider = BTreeMap::new();
                for ((column, row), pages) in std::mem::take(cells) {
                    *wider.entry((column / 2, row)).or_default() += pages;
                }
                *cells = wider;
            }
        }
        self.column = (now_ns / self.column_ns) as usize;
    }

    fn describe_access(&mut self, start: PageIndex, pages: PageCount) {
        let row_pages = self.fine_row_pages(self.file.number());
        let cells = &mut self.cells[self.file.number()];
        let (mut from, end) = (start.0, (start + pages).0);
        while from < end {
            let row = from / row_pages;
            let until = end.min((row + 1) * row_pages);
            *cells.entry((self.column, row)).or_default() += until - from;
            from = until;
        }
    }
}

impl AccessMap {
    /// Whether it can be drawn: a record may have been edited.
    fn is_sound(&self) -> bool {
        let rows = self.cells.first().map_or(0, Vec::len);
        (1..=MAX_COLUMNS).contains(&self.cells.len())
            && (1..=MAX_ROWS as usize).contains(&rows)
            && self.cells.iter().all(|column| column.len() == rows)
            && (1..1 << 40).contains(&self.row_pages)
            && (1..1 << 56).contains(&self.column_ns)
            && self.start < 1 << 56
    }

    /// The plot; `None` if it cannot be drawn.
    pub(super) fn plot(&self, page_bytes: u64) -> Option<Plot> {
        if !self.is_sound() {
            return None;
        }
        let (columns, rows) = (self.cells.len(), self.cells[0].len());
        let most = self.cells.iter().flatten().copied().max().unwrap_or(0);
        let row_bytes = self.row_pages as f64 * page_bytes as f64;
        let first = self.start as f64 * page_bytes as f64;
        let end = first + row_bytes * rows as f64;
        let (top, bottom) = (MARGIN_ABOVE, MARGIN_ABOVE + HEIGHT);
        let height = |at: f64| bottom - (at - first) / (end - first) * HEIGHT;
        let (marks, unit) = byte_marks(first, end, height);
        let run_ns = columns as f64 * self.column_ns as f64;
        let (time_name, unit_ns) = time_unit(run_ns);
        let axis = Axis { left: PLOT_LEFT, width: PLOT_WIDTH, first: 0.0, last: run_ns };
        let times = ticks(0.0, run_ns / unit_ns, 5.0, 0.001).into_iter();
        let times: Vec<_> = times.map(|value| (value * unit_ns, tick_text(value))).collect();
        let scale = format!(
            "translate({PLOT_LEFT} {}) scale({:.5} {:.5})",
            round(top),
            PLOT_WIDTH / columns as f64,
            HEIGHT / rows as f64
        );
        let class = |column: usize, row: usize| amount_class(most, self.cells[column][row]);
        let body = html! {
            (draw_vertical_axis((top, bottom), &marks, &format!("file offset ({unit})")))
            (draw_horizontal_axis(&axis, (top, bottom), &times, &format!("time ({time_name})")))
            g.cells transform=(scale) {
                @for (class, path) in cell_paths(columns, rows, class) {
                    path class=(class) d=(path) {}
                }
            }
        };
        Some(Plot {
            title: format!("Accesses to {}", self.file),
            note: format!(
                "The program as it is, in the model. A cell stands for {} of the file during {}. \
                 The stronger its colour, the more pages were accessed. Reads with O_DIRECT are \
                 not shown.",
                bytes(row_bytes),
                time(self.column_ns as f64)
            ),
            description: format!(
                "Accessed pages by time and file offset, in {columns} by {rows} cells; the table \
                 below adds up the parts of the file."
            ),
            legend: vec![amount_legend("pages accessed in a cell:", most)],
            height: bottom + MARGIN_BELOW,
            body,
            table: Some(("All parts of the file".to_string(), self.table())),
        })
    }

    /// The accesses of each row, and when they were.
    fn table(&self) -> Table {
        let rows = (0..self.cells[0].len()).filter_map(|row| {
            let accessed = |column: &usize| self.cells[*column][row] > 0;
            let columns = 0..self.cells.len();
            let (first, last) = (columns.clone().find(accessed)?, columns.rev().find(accessed)?);
            let pages = self.cells.iter().fold(0_u64, |sum, rows| sum.saturating_add(rows[row]));
            let start = self.start + row as u64 * self.row_pages;
            let at = |column: usize| time(column as f64 * self.column_ns as f64);
            Some(vec![
                format!(
                    "{} to {}",
                    number(start as f64),
                    number((start + self.row_pages - 1) as f64)
                ),
                number(pages as f64),
                at(first),
                at(last + 1),
            ])
        });
        Table::from_parts(["pages of the file"], ["pages accessed", "from", "to"], rows)
    }
}
