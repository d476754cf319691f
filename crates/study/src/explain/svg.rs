//! An explanation as a picture.

use std::fmt::Write;

use filemap_core::readahead::miss::THRESHOLD;
use filemap_job::{Job, Record};

use super::Explanation;
use super::counter::Sight;
use super::map::Cell;
use super::origin::Origin;
use filemap_report::{Axis, text_width, tick_text, ticks};

use super::canvas::{Anchor, HEADING, MARGIN, Picture, SMALL};
use crate::record::title;
use filemap_report::units::{self, byte_unit, number};

/// A strip of the map: its name, what it counts of a cell, and its colour.
type Strip = (&'static str, fn(&Cell) -> u64, &'static str);

const LEFT: f64 = 216.0;
const PLOT: f64 = 560.0;
const BAR: f64 = 22.0;
const CHART: f64 = 150.0;

/// Colours: what was accessed, what was accessed after it had been in before, and what was not.
const USED: &str = "#2a7f62";
const AGAIN: &str = "#c99a2e";
const EXCESS: &str = "#c8553d";
const LINE: &str = "#33507a";

/// Bars of the bytes by cause, the course of `mmap_miss`, and the map of the file, as SVG.
pub fn svg(explanation: &Explanation, job: &Job, record: &Record) -> String {
    let mut picture = Picture::new(&title(record));
    picture.causes(explanation, job.page_size());
    if explanation.sight != Sight::Nothing {
        picture.course(explanation);
    }
    picture.map(explanation, job.page_size());
    picture.svg()
}

impl Picture {
    fn heading(&mut self, text: &str) {
        self.y += 34.0;
        self.canvas.text(MARGIN, self.y, HEADING, Anchor::Start, text);
        self.y += 8.0;
    }

    /// Colours with what they mean, in one row.
    fn legend(&mut self, entries: &[(&str, f64, &str)]) {
        self.y += 16.0;
        let mut x = LEFT;
        for (colour, opacity, text) in entries {
            self.canvas.rect((x, self.y - 9.0), (12.0, 10.0), "#eeeeee", 1.0);
            self.canvas.rect((x, self.y - 9.0), (12.0, 10.0), colour, *opacity);
            self.canvas.text(x + 17.0, self.y, SMALL, Anchor::Start, text);
            x += 17.0 + text_width(text, SMALL) + 18.0;
        }
        self.y += 8.0;
    }

    fn causes(&mut self, explanation: &Explanation, page_size: u64) {
        self.heading("Bytes read, by cause");
        let bytes = |pages: u64| (pages * page_size) as f64;
        let most = explanation.amounts.iter().map(|(_, amount)| amount.pages).max().unwrap_or(0);
        if most == 0 {
            self.y += 16.0;
            self.canvas.text(LEFT, self.y, SMALL, Anchor::Start, "nothing was read");
            return;
        }
        self.legend(&[
            (USED, 1.0, "accessed"),
            (AGAIN, 1.0, "accessed, and read before already"),
            (EXCESS, 1.0, "not accessed"),
        ]);
        let (unit, unit_bytes) = byte_unit(bytes(most));
        let axis = Axis { left: LEFT, width: PLOT, first: 0.0, last: bytes(most) / unit_bytes };
        let shown: Vec<_> =
            explanation.amounts.iter().filter(|(_, amount)| amount.pages > 0).collect();
        let top = self.y + 4.0;
        let bottom = top + BAR * shown.len() as f64;
        let marks = ticks(0.0, axis.last, 5.0, 0.01).into_iter();
        let marks: Vec<_> = marks.map(|value| (value, tick_text(value))).collect();
        self.canvas.horizontal(&axis, (top, bottom), &marks, &format!("{unit} read"));
        for (number, (origin, amount)) in shown.into_iter().enumerate() {
            let y = top + BAR * number as f64;
            let value = bytes(amount.pages) / unit_bytes;
            let colour = match origin {
                Origin::Used => USED,
                Origin::Refetched => AGAIN,
                _ => EXCESS,
            };
            self.canvas.text(LEFT - 8.0, y + 15.0, 13.0, Anchor::End, origin.name());
            let width = (axis.at(value) - LEFT).max(0.5);
            self.canvas.rect((LEFT, y + 3.0), (width, BAR - 6.0), colour, 1.0);
            let text = units::bytes(bytes(amount.pages));
            self.canvas.text(LEFT + width + 6.0, y + 15.0, SMALL, Anchor::Start, &text);
        }
        self.y = bottom + 36.0;
    }

    fn course(&mut self, explanation: &Explanation) {
        self.heading("mmap_miss, the counter of misses");
        let above = format!("threshold {THRESHOLD}: above it a miss reads a single page");
        self.legend(&[(LINE, 1.0, "mmap_miss, lowest to highest"), (EXCESS, 1.0, &above)]);
        let highest = f64::from(explanation.mmap_miss_max.max(THRESHOLD + THRESHOLD / 4));
        let (top, bottom) = (self.y + 6.0, self.y + 6.0 + CHART);
        let height = |value: f64| bottom - value / highest * CHART;
        let last = explanation.course.accesses().max(1) as f64;
        let axis = Axis { left: LEFT, width: PLOT, first: 0.0, last };
        let marks: Vec<_> = whole_ticks(0.0, last);
        self.canvas.horizontal(&axis, (top, bottom), &marks, "accesses done");
        let values = ticks(0.0, highest, 5.0, 1.0).into_iter();
        let marks: Vec<_> = values.map(|value| (height(value), number(value))).collect();
        self.canvas.vertical(LEFT, (top, bottom), &marks);
        let name = "mmap_miss (count)";
        self.canvas.text(LEFT - 60.0, top + CHART / 2.0, SMALL, Anchor::End, name);
        let threshold = height(f64::from(THRESHOLD));
        let across = format!("M{LEFT} {threshold:.1}h{PLOT}");
        self.canvas.line(&across, EXCESS, "stroke-dasharray=\"4 3\"");
        let path = path(explanation, &axis, |value| height(f64::from(value)));
        self.canvas.line(&path, LINE, "stroke-width=\"1.2\"");
        self.y = bottom + 36.0;
    }

    fn map(&mut self, explanation: &Explanation, page_size: u64) {
        self.heading("Pages of the file");
        let colour = "#555555";
        self.legend(&[
            (colour, 0.0, "none of the pages there"),
            (colour, 0.25, "up to a quarter"),
            (colour, 0.5, "half"),
            (colour, 1.0, "all"),
        ]);
        let map = &explanation.map;
        let strips: [Strip; 4] = [
            ("mapped", |cell| cell.mapped, "#777777"),
            ("read", |cell| cell.came, LINE),
            ("accessed", |cell| cell.used, USED),
            ("evicted at the end", |cell| cell.left, EXCESS),
        ];
        let top = self.y + 4.0;
        let bottom = top + BAR * strips.len() as f64;
        let (first, last) = (map.start as f64, (map.start + map.pages) as f64);
        let axis = Axis { left: LEFT, width: PLOT, first, last };
        let marks = whole_ticks(first, last - 1.0);
        let name = format!("page of the file, of {} KiB", page_size >> 10);
        self.canvas.horizontal(&axis, (top, bottom), &marks, &name);
        let width = PLOT / map.cells.len() as f64;
        for (row, (name, part, colour)) in strips.into_iter().enumerate() {
            let y = top + BAR * row as f64;
            self.canvas.text(LEFT - 8.0, y + 15.0, 13.0, Anchor::End, name);
            self.canvas.rect((LEFT, y + 3.0), (PLOT, BAR - 6.0), "#eeeeee", 1.0);
            let mut before = 0;
            for alike in map.cells.chunk_by(|a, b| shade(part, a) == shade(part, b)) {
                let opacity = shade(part, &alike[0]);
                if opacity > 0.0 {
                    let at = (LEFT + before as f64 * width, y + 3.0);
                    let size = (width * alike.len() as f64, BAR - 6.0);
                    self.canvas.rect(at, size, colour, opacity);
                }
                before += alike.len();
            }
        }
        self.y = bottom + 36.0;
    }
}

/// The course of the counter as a path.
fn path(explanation: &Explanation, axis: &Axis, height: impl Fn(u16) -> f64) -> String {
    let (mut path, mut before) = (String::new(), 0);
    for point in explanation.course.points() {
        let x = axis.at(point.access as f64);
        let (command, from) = if path.is_empty() { ('M', point.low) } else { ('L', before) };
        let _ = write!(path, "{command}{x:.1} {:.1}", height(from));
        for value in [point.high, point.low, point.last] {
            let _ = write!(path, "L{x:.1} {:.1}", height(value));
        }
        before = point.last;
    }
    if !path.is_empty() {
        let _ = write!(path, "L{:.1} {:.1}", axis.at(axis.last), height(before));
    }
    path
}

/// Ticks of whole numbers with their texts.
fn whole_ticks(first: f64, last: f64) -> Vec<(f64, String)> {
    ticks(first, last, 4.0, 1.0).into_iter().map(|value| (value, number(value))).collect()
}

/// How dark a cell is, in eighths: what is there at all can be seen.
fn shade(part: fn(&Cell) -> u64, cell: &Cell) -> f64 {
    (part(cell) as f64 / cell.pages as f64 * 8.0).ceil() / 8.0
}
