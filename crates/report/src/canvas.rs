//! Where a picture is drawn: texts, lines, rectangles and axes.

use std::fmt::Write;

/// Width of a character as a share of the font's size: more than digits and most letters of the
/// usual sans-serif fonts take.
const CHARACTER: f64 = 0.62;

/// Colour of texts.
const INK: &str = "#1a1a1a";

/// Colour of axes.
const AXIS: &str = "#888888";

/// Colour of the lines behind a plot.
const GRID: &str = "#dddddd";

/// On which side of its point a text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
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
pub(crate) struct Canvas {
    body: String,
}

/// Width of pictures in pixels, and what they leave free at each side.
const WIDTH: f64 = 916.0;
pub(crate) const MARGIN: f64 = 16.0;

/// Size of the title, of headings, and of the rest in pixels.
const TITLE: f64 = 17.0;
pub(crate) const HEADING: f64 = 14.0;
pub(crate) const SMALL: f64 = 11.0;

/// A picture that is drawn from above, part by part.
#[derive(Debug)]
pub(crate) struct Picture {
    /// What is drawn.
    pub(crate) canvas: Canvas,
    /// Where the last part ended.
    pub(crate) y: f64,
}

impl Picture {
    /// A picture with its title.
    pub(crate) fn new(title: &str) -> Picture {
        let mut picture = Picture { canvas: Canvas::default(), y: MARGIN };
        picture.lines(title, TITLE, 1.3);
        picture
    }

    /// A text over the whole width, in lines `apart` times as high as its letters.
    pub(crate) fn lines(&mut self, text: &str, size: f64, apart: f64) {
        for line in lines(text, size, WIDTH - 2.0 * MARGIN) {
            self.y += size * apart;
            self.canvas.text(MARGIN, self.y, size, Anchor::Start, &line);
        }
    }

    /// The whole as SVG.
    pub(crate) fn svg(&self) -> String {
        self.canvas.svg(WIDTH, self.y + MARGIN)
    }
}

/// The horizontal axis of a plot: `first` at `left`, `last` at `left + width`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    /// Where it begins.
    pub(crate) left: f64,
    /// How long it is.
    pub(crate) width: f64,
    /// The value at its beginning.
    pub(crate) first: f64,
    /// The value at its end, larger than the first.
    pub(crate) last: f64,
}

impl Axis {
    /// Where a value lies.
    pub(crate) fn at(&self, value: f64) -> f64 {
        self.left + (value - self.first) / (self.last - self.first) * self.width
    }
}

impl Canvas {
    /// A text whose base line is at `y`.
    pub(crate) fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let anchor = anchor.name();
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
             fill=\"{INK}\">{text}</text>"
        );
    }

    /// A rectangle.
    pub(crate) fn rect(&mut self, at: (f64, f64), size: (f64, f64), colour: &str, opacity: f64) {
        let ((x, y), (width, height)) = (at, size);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" \
             fill=\"{colour}\" fill-opacity=\"{opacity:.2}\"/>"
        );
    }

    /// A line along `path`, which is that of SVG.
    pub(crate) fn line(&mut self, path: &str, colour: &str, more: &str) {
        let _ =
            writeln!(self.body, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" {more}/>");
    }

    /// A horizontal axis at `y` with `ticks` and their texts below, and lines up to `top` behind
    /// the plot. `name` says below them what is counted.
    pub(crate) fn horizontal(
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
    pub(crate) fn vertical(&mut self, x: f64, (top, bottom): (f64, f64), ticks: &[(f64, String)]) {
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

/// The room that a text needs.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * CHARACTER
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

/// Round values from `first` to `last`, about `count` steps apart, and at least `least` apart.
pub(crate) fn ticks(first: f64, last: f64, count: f64, least: f64) -> Vec<f64> {
    let wanted = ((last - first) / count).max(least);
    let power = 10f64.powf(wanted.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= wanted * 0.999);
    let step = factor.unwrap_or(10.0) * power;
    let begin = (first / step).ceil();
    let mut values = Vec::new();
    while (begin + values.len() as f64) * step <= last + step * 1e-6 {
        values.push((begin + values.len() as f64) * step);
    }
    values
}

/// A value of an axis without needless digits.
pub(crate) fn tick_text(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_an_axis_have_no_needless_digits() {
        let texts = [0.0, 0.6000000000000001, 20.0, 2.5].map(tick_text);
        assert_eq!(texts, ["0", "0.6", "20", "2.5"]);
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks(0.0, 100.0, 5.0, 1.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(0.0, 3.0, 5.0, 1.0), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(ticks(0.0, 1.0, 5.0, 0.1), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks(4096.0, 4099.0, 5.0, 1.0), [4096.0, 4097.0, 4098.0, 4099.0]);
        assert_eq!(ticks(0.0, 0.0, 5.0, 1.0), [0.0]);
        let far = ticks(137438953456.0, 137438953727.0, 4.0, 1.0);
        assert_eq!(far, [137438953500.0, 137438953600.0, 137438953700.0]);
    }

    #[test]
    fn long_texts_take_several_lines() {
        let text = format!("elf of /{} and more", "x".repeat(100));
        let lines = lines(&text, 10.0, 310.0);
        assert_eq!(lines[0], "elf of");
        assert!(lines.iter().all(|line| line.chars().count() <= 50), "{lines:?}");
        assert_eq!(lines.join("").replace(' ', "").len(), text.replace(' ', "").len());
    }
}
