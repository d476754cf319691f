//! What was read along a run and the file: window by window, or added up where there are many.

use std::fmt::Write;

use maud::{Markup, html};

use crate::canvas::Axis;
use crate::explain::{Grid, History, MAX_WINDOWS, Window, first_access};
use crate::table::{Column, Table};
use crate::units::{bytes, number};

use super::plot::{
    ABOVE, BELOW, LEFT, PLOT, Picture, accesses_done, byte_marks, entry, legend, of_accesses,
    round, vertical,
};

/// Heights of a plot of windows, and of one of the two plots of many.
const HEIGHT: f64 = 300.0;
const PANEL: f64 = 190.0;

/// Least width and height of the mark of a window.
const LEAST: f64 = 2.5;

/// Classes of amounts; each begins at a quarter of the next.
const AMOUNTS: u32 = 5;

/// The picture of `history`; none where nothing was read.
pub(super) fn picture(history: &History) -> Option<Markup> {
    if history.read.iter().all(|&pages| pages == 0) {
        return None;
    }
    let picture = match (&history.windows, &history.grid) {
        (Some(windows), _) => one_by_one(history, windows),
        (None, Some(grid)) => added_up(history, grid)?,
        (None, None) => return None,
    };
    Some(picture.markup())
}

/// The class of what share of the pages read was used.
fn share_class(read: u64, used: u64) -> &'static str {
    match (read, used) {
        (0, _) => "none",
        (_, 0) => "u0",
        (read, used) if used >= read => "u4",
        (read, used) if used * 4 <= read => "u1",
        (read, used) if used * 2 <= read => "u2",
        _ => "u3",
    }
}

fn share_legend() -> Vec<(String, String)> {
    vec![
        entry("", "of the pages read, accessed before they left:"),
        entry("u0", "none"),
        entry("u1", "up to a quarter"),
        entry("u2", "up to half"),
        entry("u3", "more"),
        entry("u4", "all"),
    ]
}

fn one_by_one(history: &History, windows: &[Window]) -> Picture {
    let [first, end] = history.mapped;
    let first = windows.iter().map(|window| window.start).fold(first, u64::min);
    let ends = windows.iter().map(|window| window.start.saturating_add(window.pages));
    let end = ends.fold(end, u64::max).max(first + 1);
    let (top, bottom) = (ABOVE, ABOVE + HEIGHT);
    let page = history.page_bytes as f64;
    let span = (end - first) as f64;
    let height = |index: f64| bottom - (index - first as f64) / span * HEIGHT;
    let axis = of_accesses(history.accesses);
    let width = (PLOT / axis.last).clamp(LEAST, 14.0);
    let (marks, unit) =
        byte_marks(first as f64 * page, end as f64 * page, |bytes| height(bytes / page));
    let body = html! {
        (vertical((top, bottom), &marks, &format!("file offset ({unit})")))
        (accesses_done(&axis, (top, bottom)))
        @for window in windows {
            @let end = window.start.saturating_add(window.pages);
            @let tall = (window.pages as f64 / span * HEIGHT).max(LEAST);
            @let y = (height(end as f64)).min(bottom - tall);
            rect class=(share_class(window.read, window.used))
                x=(round(axis.at(window.access as f64).min(LEFT + PLOT - width))) y=(round(y))
                width=(round(width)) height=(round(tall)) data-t=(told(window)) {}
        }
    };
    let mut meanings = share_legend();
    meanings.push(entry("none", "nothing came in"));
    Picture {
        title: "Windows along the run".to_string(),
        note: "Each mark is one window that was asked for, or one page that was read alone: when, \
               and which part of the file. Small ones are drawn larger than they are."
            .to_string(),
        described: format!(
            "{} windows by access and file offset, coloured by the share of their pages that was \
             accessed; the table below has each of them.",
            windows.len()
        ),
        legend: legend(&meanings),
        height: bottom + BELOW,
        body,
        table: Some((format!("All {} windows", windows.len()), listed(windows))),
    }
}

/// A window in words.
fn told(window: &Window) -> String {
    let Window { access, by, start, pages, read, used } = window;
    let [access, first, last, pages, read, used] =
        [*access, *start, (start + pages).saturating_sub(1), *pages, *read, *used]
            .map(|n| number(n as f64));
    format!(
        "access {access}, {by}: pages {first} to {last} ({pages}); {read} came in, {used} of them \
         were used"
    )
}

fn listed(windows: &[Window]) -> Table {
    let row = |window: &Window| {
        let numbers = [window.start, window.pages, window.read, window.used];
        let named = [number(window.access as f64), window.by.clone()];
        named.into_iter().chain(numbers.map(|n| number(n as f64))).collect()
    };
    let columns = vec![
        Column::right("access"),
        Column::left("asked by"),
        Column::right("first page"),
        Column::right("pages asked for"),
        Column::right("came in"),
        Column::right("used"),
    ];
    Table { title: String::new(), columns, rows: windows.iter().map(row).collect() }
}

/// The rows of a grid that hold anything or are mapped.
struct Shown<'a> {
    grid: &'a Grid,
    first: usize,
    count: usize,
    columns: usize,
}

impl<'a> Shown<'a> {
    fn of(history: &History, grid: &'a Grid) -> Option<Shown<'a>> {
        let columns = grid.read.len().min(grid.used.len());
        let rows = grid.read.iter().chain(&grid.used).map(Vec::len).min()?;
        let row_pages = grid.row_pages.max(1);
        let row = |page: u64| (page.saturating_sub(grid.start) / row_pages) as usize;
        let [from, end] = history.mapped;
        let holds = |&number: &usize| grid.read.iter().any(|rows| rows[number] > 0);
        let (first, last) = ((0..rows).find(holds)?, (0..rows).rev().find(holds)?);
        let first = first.min(row(from));
        let last = last.max(row(end.saturating_sub(1))).min(rows - 1);
        Some(Shown { grid, first, count: last + 1 - first, columns })
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

    /// The cells of each class as one path: those side by side that are alike are one rectangle.
    fn paths(&self, class: impl Fn(u64, u64) -> Option<String>) -> Vec<(String, String)> {
        let mut paths: Vec<(String, String)> = Vec::new();
        for row in 0..self.count {
            let y = self.count - 1 - row;
            let mut column = 0;
            while column < self.columns {
                let of = |column: usize| {
                    let (read, used) = self.cell(column, row);
                    class(read, used)
                };
                let own = of(column);
                let begin = column;
                while column < self.columns && of(column) == own {
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

    fn values(&self, of: &[Vec<u64>]) -> String {
        let rows = |rows: &Vec<u64>| {
            let shown = &rows[self.first..self.first + self.count];
            shown.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
        };
        of[..self.columns].iter().map(rows).collect::<Vec<_>>().join(";")
    }
}

fn added_up(history: &History, grid: &Grid) -> Option<Picture> {
    let shown = Shown::of(history, grid)?;
    let page = history.page_bytes as f64;
    let row_pages = grid.row_pages.max(1);
    let first = grid.start.saturating_add((shown.first as u64).saturating_mul(row_pages));
    let end = first.saturating_add((shown.count as u64).saturating_mul(row_pages));
    let axis = of_accesses(history.accesses);
    let most = shown.most();
    let amounts = Amounts::new(most);
    let panels = [
        ("pages read", shown.paths(|read, _| amounts.class(read))),
        (
            "share used",
            shown.paths(|read, used| (read > 0).then(|| share_class(read, used).to_string())),
        ),
    ];
    let body = html! {
        @for (number, (name, paths)) in panels.iter().enumerate() {
            @let top = ABOVE + (ABOVE + BELOW + PANEL) * number as f64;
            (panel(&shown, &axis, top, (first as f64 * page, end as f64 * page), name, paths))
        }
    };
    let calls = sum(history.calls.iter().copied());
    Some(Picture {
        title: "Windows along the run".to_string(),
        note: format!(
            "{} windows and single pages are too many to draw one by one (up to {} are). A cell \
             stands for {} of the file during about {} accesses. The upper plot shows how many \
             pages were read there, the lower one which share of them was accessed before they \
             left. What is blank had nothing to read.",
            number(calls as f64),
            number(MAX_WINDOWS as f64),
            bytes(row_pages as f64 * page),
            number((history.accesses as f64 / shown.columns.max(1) as f64).round()),
        ),
        described: format!(
            "Pages read and the share of them that was used, by access and file offset, in {} by \
             {} cells; the table below the next picture adds them up.",
            shown.columns, shown.count
        ),
        legend: html! { (legend(&amounts.meanings())) (legend(&share_legend())) },
        height: (ABOVE + BELOW + PANEL) * 2.0,
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
    shown: &Shown,
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
        "translate({LEFT} {}) scale({:.5} {:.5})",
        round(top),
        PLOT / shown.columns as f64,
        PANEL / shown.count as f64
    );
    html! {
        (vertical((top, bottom), &marks, &format!("{name}, by file offset ({unit})")))
        (accesses_done(axis, (top, bottom)))
        g.cells transform=(scale) {
            @for (class, path) in paths { path class=(class) d=(path) {} }
        }
        rect.hit x=(round(LEFT)) y=(round(top)) width=(round(PLOT)) height=(round(PANEL))
            data-grid="" {}
    }
}

/// How many pages a shade stands for.
struct Amounts {
    most: u64,
}

impl Amounts {
    fn new(most: u64) -> Amounts {
        Amounts { most }
    }

    /// The most that a class has, from 1.
    fn limit(&self, class: u32) -> u64 {
        self.most >> (2 * (AMOUNTS - class))
    }

    fn class(&self, pages: u64) -> Option<String> {
        let class = (1..=AMOUNTS).find(|&class| pages <= self.limit(class))?;
        (pages > 0).then(|| format!("a{class}"))
    }

    fn meanings(&self) -> Vec<(String, String)> {
        let mut entries = vec![entry("", "pages read in a cell:")];
        for class in 1..=AMOUNTS {
            let least = if class == 1 { 1 } else { self.limit(class - 1) + 1 };
            let most = self.limit(class);
            if least < most {
                let text = format!("{} to {}", number(least as f64), number(most as f64));
                entries.push(entry(&format!("a{class}"), text));
            } else if least == most {
                entries.push(entry(&format!("a{class}"), number(least as f64)));
            }
        }
        entries
    }
}

fn by_part(shown: &Shown, first: u64, row_pages: u64) -> Table {
    let row = |row: usize| {
        let cells = (0..shown.columns).map(|column| shown.cell(column, row));
        let (read, used): (Vec<u64>, Vec<u64>) = cells.unzip();
        let (read, used) = (sum(read), sum(used));
        let from = first.saturating_add((row as u64).saturating_mul(row_pages));
        let share = if read == 0 { String::new() } else { percent(used, read) };
        let pages = format!(
            "{} to {}",
            number(from as f64),
            number((from.saturating_add(row_pages) - 1) as f64)
        );
        vec![pages, number(read as f64), number(used as f64), share]
    };
    let columns = vec![
        Column::left("pages of the file"),
        Column::right("pages read"),
        Column::right("used"),
        Column::right("share"),
    ];
    Table { title: String::new(), columns, rows: (0..shown.count).map(row).collect() }
}

/// The sum of counts that may come from anywhere.
fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// A share in percent.
pub(super) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// The accesses of an interval in words: `accesses 12 to 23`.
pub(super) fn interval(history: &History, number_of: usize, intervals: usize) -> String {
    let bound = |at: usize| first_access(at as u64, history.accesses, intervals as u64);
    let (from, end) = (bound(number_of), bound(number_of + 1));
    format!("accesses {} to {}", number(from as f64), number(end.max(from + 1) as f64 - 1.0))
}
