//! Where a picture is drawn: texts, lines, rectangles and axes.

use std::fmt::Write;

use filemap_report::{Axis, CHARACTER};

/// Colour of texts.
const INK: &str = "#1a1a1a";

/// Colour of axes.
const AXIS: &str = "#888888";

/// Colour of the lines behind a plot.
const GRID: &str = "#dddddd";

/// On which side of its point a text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The text begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// A picture that is being drawn.
#[derive(Debug, Default)]
pub struct Canvas {
    body: String,
}

/// Width of pictures in pixels, and what they leave free at each side.
const WIDTH: f64 = 916.0;
pub const MARGIN: f64 = 16.0;

/// Size of the title, of headings, and of the rest in pixels.
const TITLE: f64 = 17.0;
pub const HEADING: f64 = 14.0;
pub const SMALL: f64 = 11.0;

/// A picture that is drawn from above, part by part.
#[derive(Debug)]
pub struct Picture {
    /// What is drawn.
    pub canvas: Canvas,
    /// Where the last part ended.
    pub y: f64,
}

impl Picture {
    /// A picture with its title.
    pub fn new(title: &str) -> Picture {
        let mut picture = Picture { canvas: Canvas::default(), y: MARGIN };
        picture.lines(title, TITLE, 1.3);
        picture
    }

    /// A text over the whole width, in lines `apart` times as high as its letters.
    pub fn lines(&mut self, text: &str, size: f64, apart: f64) {
        for line in lines(text, size, WIDTH - 2.0 * MARGIN) {
            self.y += size * apart;
            self.canvas.text(MARGIN, self.y, size, Anchor::Start, &line);
        }
    }

    /// The whole as SVG.
    pub fn svg(&self) -> String {
        self.canvas.svg(WIDTH, self.y + MARGIN)
    }
}

impl Canvas {
    /// A text whose base line is at `y`.
    pub fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let anchor = anchor.name();
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
             fill=\"{INK}\">{text}</text>"
        );
    }

    /// A rectangle.
    pub fn rect(&mut self, at: (f64, f64), size: (f64, f64), colour: &str, opacity: f64) {
        let ((x, y), (width, height)) = (at, size);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" \
             fill=\"{colour}\" fill-opacity=\"{opacity:.2}\"/>"
        );
    }

    /// A line along `path`, which is that of SVG.
    pub fn line(&mut self, path: &str, colour: &str, more: &str) {
        let _ =
            writeln!(self.body, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" {more}/>");
    }

    /// A horizontal axis at `y` with `ticks` and their texts below, and lines up to `top` behind
    /// the plot. `name` says below them what is counted.
    pub fn horizontal(
        &mut self,
        axis: &Axis,
        (top, y): (f64, f64),
        ticks: &[(f64, String)],
        name: &str,
    ) {
        for (value, text) in ticks {
            let x = axis.at(*value);
            self.line(&format!("M{x:.1} {top:.1}V{y:.1}"), GRID, "stroke-width=\"1\"");
            self.line(&format!("M{x:.1} {y:.1}v4"), AXIS, "stroke-width=\"1\"");
            self.text(x, y + 16.0, 11.0, Anchor::Middle, text);
        }
        let end = axis.left + axis.width;
        self.line(&format!("M{:.1} {y:.1}H{end:.1}", axis.left), AXIS, "stroke-width=\"1\"");
        self.text(axis.left + axis.width / 2.0, y + 32.0, 11.0, Anchor::Middle, name);
    }

    /// A vertical axis at `x` from `bottom` up to `top`, with the place of each of `ticks`.
    pub fn vertical(&mut self, x: f64, (top, bottom): (f64, f64), ticks: &[(f64, String)]) {
        for (y, text) in ticks {
            self.line(&format!("M{x:.1} {y:.1}h-4"), AXIS, "stroke-width=\"1\"");
            self.text(x - 8.0, y + 4.0, 11.0, Anchor::End, text);
        }
        self.line(&format!("M{x:.1} {top:.1}V{bottom:.1}"), AXIS, "stroke-width=\"1\"");
    }

    /// The whole as SVG, on a background of its own, so that it can be read in a dark window.
    fn svg(&self, width: f64, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// `text` in lines no wider than `width`; a word that is wider is cut.
fn lines(text: &str, size: f64, width: f64) -> Vec<String> {
    let most = (width / (size * CHARACTER)) as usize;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let line = lines.last_mut().expect("there is a first line");
            let used = line.chars().count();
            if used > 0 && used + 1 + rest.len() > most {
                lines.push(String::new());
                continue;
            }
            if used > 0 {
                line.push(' ');
            }
            let taken = rest.len().min(most);
            line.extend(rest.drain(..taken));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_take_several_lines() {
        let text = format!("elf of /{} and more", "x".repeat(100));
        let lines = lines(&text, 10.0, 310.0);
        assert_eq!(lines[0], "elf of");
        assert!(lines.iter().all(|line| line.chars().count() <= 50), "{lines:?}");
        assert_eq!(lines.join("").replace(' ', "").len(), text.replace(' ', "").len());
    }
}
