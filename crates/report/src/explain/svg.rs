//! An explanation as a picture.

use std::fmt::Write;

use filemap_core::readahead::miss::THRESHOLD;
use filemap_job::{Job, Record};

use super::Explanation;
use super::map::Cell;
use super::origin::Origin;
use crate::record::{number, title};

/// A strip of the map: its name, what it counts of a cell, and its colour.
type Strip = (&'static str, fn(&Cell) -> u64, &'static str);

const WIDTH: f64 = 900.0;
const LEFT: f64 = 200.0;
const PLOT: f64 = 560.0;
const BAR: f64 = 22.0;
const STRIP: f64 = 24.0;
const CHART: f64 = 150.0;

/// Colours of the origins: what was used, and what was not.
const USED: &str = "#2a7f62";
const EXCESS: &str = "#c8553d";
const LINE: &str = "#33507a";

/// Bars of the bytes by cause, the course of `mmap_miss`, and the map of the file, as SVG.
pub fn svg(explanation: &Explanation, job: &Job, record: &Record) -> String {
    let mut picture = Picture { body: String::new(), y: 34.0 };
    picture.text(16.0, "title", &title(record));
    picture.causes(explanation, job.page_size());
    picture.course(explanation);
    picture.map(explanation);
    let height = picture.y + 10.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<style>.title{{font-size:17px}}\
         .end{{text-anchor:end}}.small{{font-size:11px;fill:#555}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
        picture.body
    )
}

struct Picture {
    body: String,
    /// Where the next part begins.
    y: f64,
}

impl Picture {
    fn causes(&mut self, explanation: &Explanation, page_size: u64) {
        self.y += 24.0;
        let total = explanation.pages_read().max(1) as f64;
        for (origin, amount) in explanation.amounts.iter().filter(|(_, amount)| amount.pages > 0) {
            let width = amount.pages as f64 / total * PLOT;
            let colour = if origin == Origin::Used { USED } else { EXCESS };
            self.text(LEFT - 8.0, "end", origin.name());
            self.rect(LEFT, -14.0, width.max(0.5), BAR - 6.0, colour, 1.0);
            let mib = (amount.pages * page_size) as f64 / f64::from(1 << 20);
            self.text(LEFT + width + 6.0, "small", &format!("{mib:.1} MiB"));
            self.y += BAR;
        }
    }

    fn course(&mut self, explanation: &Explanation) {
        self.y += 30.0;
        let accesses = number(explanation.course.accesses() as f64);
        self.text(16.0, "", &format!("mmap_miss along {accesses} accesses"));
        self.y += 12.0;
        let top = f64::from(explanation.mmap_miss_max.max(THRESHOLD + THRESHOLD / 4));
        let bottom = self.y + CHART;
        let at = |value: u16| bottom - f64::from(value) / top * CHART;
        let last = explanation.course.accesses().max(1) as f64;
        let (mut path, mut before) = (String::new(), 0);
        for point in explanation.course.points() {
            let x = LEFT + point.access as f64 / last * PLOT;
            let command = if path.is_empty() { 'M' } else { 'L' };
            let from = if path.is_empty() { at(point.low) } else { at(before) };
            let _ = write!(path, "{command}{x:.1} {from:.1}");
            for value in [point.high, point.low, point.last] {
                let _ = write!(path, "L{x:.1} {:.1}", at(value));
            }
            before = point.last;
        }
        let (threshold, end) = (at(THRESHOLD), LEFT + PLOT);
        let _ = writeln!(
            self.body,
            "<path d=\"M{LEFT} {:.1}V{bottom:.1}H{end}\" fill=\"none\" stroke=\"#888\"/>\n\
             <path d=\"M{LEFT} {threshold:.1}H{end}\" stroke=\"{EXCESS}\" \
             stroke-dasharray=\"4 3\"/>\n\
             <path d=\"{path}\" fill=\"none\" stroke=\"{LINE}\" stroke-width=\"1.2\"/>",
            self.y
        );
        for value in [0, THRESHOLD, explanation.mmap_miss_max] {
            let label = format!("{value}");
            let y = at(value) + 4.0;
            let _ = writeln!(
                self.body,
                "<text x=\"{}\" y=\"{y:.1}\" class=\"end small\">{label}</text>",
                LEFT - 8.0
            );
        }
        self.y = bottom;
    }

    fn map(&mut self, explanation: &Explanation) {
        self.y += 34.0;
        let map = &explanation.map;
        self.text(16.0, "", &format!("pages {} to {}", map.start, map.start + map.pages - 1));
        self.y += 24.0;
        let strips: [Strip; 4] = [
            ("mapped", |cell| cell.mapped, "#777777"),
            ("came in", |cell| cell.came, LINE),
            ("accessed", |cell| cell.used, USED),
            ("left", |cell| cell.left, EXCESS),
        ];
        let width = PLOT / map.cells.len() as f64;
        for (name, part, colour) in strips {
            self.text(LEFT - 8.0, "end", name);
            self.rect(LEFT, -14.0, PLOT, STRIP - 6.0, "#eeeeee", 1.0);
            let mut number = 0;
            for alike in map.cells.chunk_by(|a, b| shade(part, a) == shade(part, b)) {
                let opacity = shade(part, &alike[0]);
                if opacity > 0.0 {
                    let x = LEFT + number as f64 * width;
                    let length = width * alike.len() as f64;
                    self.rect(x, -14.0, length, STRIP - 6.0, colour, opacity);
                }
                number += alike.len();
            }
            self.y += STRIP;
        }
    }

    fn text(&mut self, x: f64, class: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let y = self.y;
        let _ =
            writeln!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>");
    }

    /// A rectangle that begins `above` below the text line.
    fn rect(&mut self, x: f64, above: f64, width: f64, height: f64, colour: &str, opacity: f64) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" \
             fill=\"{colour}\" fill-opacity=\"{opacity:.2}\"/>",
            self.y + above
        );
    }
}

/// How dark a cell is, in eighths: what is there at all can be seen.
fn shade(part: fn(&Cell) -> u64, cell: &Cell) -> f64 {
    (part(cell) as f64 / cell.pages as f64 * 8.0).ceil() / 8.0
}
