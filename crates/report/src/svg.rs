//! The pictures of a report as one self-contained SVG file.

mod attributes;
mod wrapped;

use crate::axis::text_width;
use crate::bars::{Bar, Bars};
use crate::plot::{Plot, WIDTH};
use crate::report::{Part, Report};

use attributes::Attributes;

/// Margin at each side.
const MARGIN: f64 = 16.0;

/// Font sizes of the title, headings, names and other texts in pixels.
const TITLE: f64 = 17.0;
const HEADING: f64 = 14.0;
const NAME: f64 = 12.0;
const SMALL: f64 = 11.0;

/// Height of a row of bars.
const ROW: f64 = 20.0;
/// Gap between columns.
const COLUMN_GAP: f64 = 14.0;

/// Maximum length of a bar's name.
const MAX_NAME: usize = 40;

impl Report {
    /// Its pictures, one below the other, under its title.
    pub fn svg(&self) -> String {
        let mut picture = Picture::new();
        picture.lines(self.title(), TITLE, "");
        for part in &self.parts {
            match part {
                Part::Bars(bars) => picture.bars(bars),
                Part::Plot(plot) => picture.plot(plot),
                _ => {}
            }
        }
        picture.finish()
    }
}

/// A picture that is drawn from top to bottom.
struct Picture {
    attributes: Attributes,
    body: String,
    /// Bottom of the last part.
    y: f64,
}

impl Picture {
    fn new() -> Self {
        Picture { attributes: Attributes::of_pages(), body: String::new(), y: MARGIN }
    }

    /// Draws a text over the whole width.
    fn lines(&mut self, text: &str, size: f64, class: &str) {
        for line in wrapped::lines(text, size, WIDTH) {
            self.y += size * 1.3;
            self.text(MARGIN, size, class, &line);
        }
    }

    fn text(&mut self, x: f64, size: f64, class: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let tag = format!("text class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\"", self.y);
        let tag = self.attributes.inlined(&format!("{tag} font-size=\"{size}\""));
        self.body += &format!("\n<{tag}>{text}</text>");
    }

    fn rect(&mut self, class: &str, (x, width): (f64, f64), height: f64) {
        let place = format!("x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.2}\"", self.y - height + 2.0);
        let tag = format!("rect class=\"{class}\" {place} height=\"{height:.1}\"");
        self.body += &format!("\n<{}/>", self.attributes.inlined(&tag));
    }

    fn heading(&mut self, title: &str, note: &str) {
        self.y += HEADING;
        self.lines(title, HEADING, "");
        self.lines(note, SMALL, "tick");
    }

    fn plot(&mut self, plot: &Plot) {
        self.heading(&plot.title, &plot.note);
        plot.legend.iter().for_each(|entries| self.legend(entries));
        self.y += 6.0;
        let body = self.attributes.all_inlined(&plot.body.clone().into_string());
        self.body += &format!("\n<g transform=\"translate({MARGIN} {:.1})\">{body}\n</g>", self.y);
        self.y += plot.height;
    }

    /// Draws a legend, on as many lines as needed.
    fn legend(&mut self, entries: &[(String, String)]) {
        self.y += 18.0;
        let mut x = MARGIN;
        for (class, text) in entries {
            let key = if class.is_empty() { 0.0 } else { 17.0 };
            let width = key + text_width(text, SMALL);
            if x > MARGIN && x + width > MARGIN + WIDTH {
                x = MARGIN;
                self.y += 16.0;
            }
            if let Some(line) = class.strip_suffix("-key") {
                let path = format!("path class=\"{line}\" d=\"M{x:.1} {:.1}h12\"", self.y - 4.0);
                self.body += &format!("\n<{}/>", self.attributes.inlined(&path));
            } else if !class.is_empty() {
                self.rect(class, (x, 12.0), 10.0);
            }
            self.text(x + key, SMALL, "", text);
            x += width + 18.0;
        }
    }

    /// Draws each bar between its name and its texts.
    fn bars(&mut self, Bars { title, note, heads, bars }: &Bars) {
        self.heading(title, note);
        let names: Vec<String> = bars.iter().map(|bar| shorten(&bar.name)).collect();
        let Some((first, heads)) = heads.split_first().filter(|_| !bars.is_empty()) else { return };
        let widest = |texts: &mut dyn Iterator<Item = &str>, size: f64| {
            texts.map(|text| text_width(text, size)).fold(0.0, f64::max)
        };
        let left = widest(&mut names.iter().map(String::as_str).chain([first.as_str()]), NAME);
        let left = MARGIN + left + COLUMN_GAP;
        let mut right = MARGIN + WIDTH;
        let mut ends = vec![0.0; heads.len()];
        for (at, head) in heads.iter().enumerate().rev() {
            let cells = bars.iter().filter_map(|bar| bar.texts.get(at)).map(String::as_str);
            ends[at] = right;
            right -= widest(&mut cells.chain([head.as_str()]), SMALL) + COLUMN_GAP;
        }
        self.y += ROW;
        self.text(MARGIN, SMALL, "tick", first);
        let heads = heads.iter().zip(&ends);
        heads.for_each(|(head, end)| self.text(*end, SMALL, "tick end", head));
        let most = bars.iter().filter_map(|bar| bar.value).fold(0.0, f64::max);
        for (Bar { value, class, texts, .. }, name) in bars.iter().zip(&names) {
            self.y += ROW;
            self.text(MARGIN, NAME, "", name);
            if let Some(value) = value.filter(|_| most > 0.0) {
                let least = if value > 0.0 { 1.0 } else { 0.0 };
                let width = (value.max(0.0) / most * (right - left)).max(least);
                self.rect(class, (left, width), ROW - 6.0);
            }
            let texts = texts.iter().zip(&ends);
            texts.for_each(|(text, end)| self.text(*end, SMALL, "end", text));
        }
        self.y += MARGIN;
    }

    /// The SVG, with a white background for dark windows.
    fn finish(self) -> String {
        let (width, height) = (WIDTH + 2.0 * MARGIN, self.y + MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{}\n</svg>\n",
            self.body
        )
    }
}

/// The name of a bar, shortened to fit.
fn shorten(name: &str) -> String {
    if name.chars().count() > MAX_NAME {
        name.chars().take(MAX_NAME - 3).chain("...".chars()).collect()
    } else {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;
    use crate::report::Footer;
    use crate::table::Table;

    #[test]
    fn draws_bars_and_plots_with_the_colours_of_pages() {
        let bar = Bar {
            name: "a <b>".to_string(),
            value: Some(3.0),
            class: "u4",
            texts: vec!["3 KiB".to_string()],
        };
        let plot = Plot {
            title: "Plot".to_string(),
            note: "How to read it.".to_string(),
            described: String::new(),
            legend: vec![vec![("u0".to_string(), "none".to_string())]],
            height: 20.0,
            body: html! {
                rect.u0 x="1" data-t="told" {}
                rect.hit x="1" data-t="told" {}
                text.tick.middle x="5" { "5" }
            },
            table: None,
        };
        let bars = Part::Bars(Bars::new("Bars", &["name", "read"], vec![bar]));
        let parts = vec![Part::Heading("Title".to_string()), bars, Part::Plot(plot)];
        let (rows, footer) = (Table::default(), Footer::default());
        let svg = Report { parts, rows, footer, record_json: String::new() }.svg();
        for words in [
            ">Title</text>",
            ">a &lt;b&gt;</text>",
            "text-anchor=\"end\"",
            "<rect fill=\"#b8480c\" x=\"1\"></rect>",
            "\n<text fill=\"#4d535e\" font-size=\"11\" text-anchor=\"middle\" x=\"5\">5</text>",
        ] {
            assert!(svg.contains(words), "{words}: {svg}");
        }
        assert!(!svg.contains("told") && !svg.contains("class"), "{svg}");
    }
}
