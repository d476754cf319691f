//! What was tried, in one table: bytes read and seconds as plots side by side.

use maud::{Markup, html};

use filemap_report::units::{byte_unit, bytes, number, time, time_unit};
use filemap_report::{Axis, text_width, tick_text, ticks};

use super::{Advised, Outcome, told};
use filemap_report::plot::{entry, legend, round};

/// Width and height of a plot in a row, and its margin at both sides.
const PLOT: (f64, f64) = (210.0, 22.0);
const MARGIN: f64 = 10.0;

/// Size of the texts of a scale in pixels.
const SMALL: f64 = 11.0;

/// Amounts that are so many times what is read as it is lie beyond their scale.
const MOST_MORE: f64 = 3.0;

/// From such a ratio of the longest time to the shortest on their scale is logarithmic.
const MOST_LINEAR: f64 = 30.0;

/// Verdicts, the best first, each with the class of its marks and whether these are hollow.
const VERDICTS: [(&str, &str); 6] = [
    ("best", "u4"),
    ("tied", "tied"),
    ("helps", "u3"),
    ("no change", "none"),
    ("slower", "u1"),
    ("reads more", "u0"),
];

/// A row: what was tried, and what came of it.
struct Row<'a> {
    label: String,
    outcome: &'a Outcome,
    verdict: &'a str,
}

impl Row<'_> {
    fn rank(&self) -> usize {
        let known = VERDICTS.iter().position(|(name, _)| *name == self.verdict);
        known.unwrap_or(VERDICTS.len())
    }

    /// The class of its marks; that of what the program does now has no verdict.
    fn class(&self) -> &'static str {
        VERDICTS.get(self.rank()).map_or("u2", |(_, class)| class)
    }
}

/// A scale from 0, or a logarithmic one.
struct Scale {
    axis: Axis,
    is_logarithmic: bool,
    unit: (&'static str, f64),
}

impl Scale {
    /// Of amounts, beside what is read as it is: what is far more would leave no room for what is
    /// less.
    fn of_bytes(now: f64, all: impl Iterator<Item = f64>) -> Scale {
        let near = all.filter(|value| *value <= now * MOST_MORE);
        let most = near.fold(now, f64::max);
        Scale::linear(most, byte_unit(most))
    }

    fn linear(most: f64, unit: (&'static str, f64)) -> Scale {
        let last = if most > 0.0 { most / unit.1 } else { 1.0 };
        let axis = Axis { left: MARGIN, width: PLOT.0 - 2.0 * MARGIN, first: 0.0, last };
        Scale { axis, is_logarithmic: false, unit }
    }

    fn of_times(least: f64, most: f64) -> Scale {
        if least <= 0.0 || most / least <= MOST_LINEAR {
            return Scale::linear(most, time_unit(most));
        }
        let (first, last) = (least.log10().floor(), most.log10().ceil());
        let axis = Axis { left: MARGIN, width: PLOT.0 - 2.0 * MARGIN, first, last };
        Scale { axis, is_logarithmic: true, unit: ("", 1.0) }
    }

    fn at(&self, value: f64) -> f64 {
        match self.is_logarithmic {
            true => self.axis.at(value.max(1.0).log10()),
            false => self.axis.at(value / self.unit.1),
        }
    }

    /// Places with their texts.
    fn marks(&self) -> Vec<(f64, String)> {
        let Axis { first, last, .. } = self.axis;
        if !self.is_logarithmic {
            let marks = ticks(first, last, 3.0, 0.01).into_iter();
            return marks.map(|value| (self.axis.at(value), tick_text(value))).collect();
        }
        let step = ((last - first) / 3.0).ceil().max(1.0);
        let count = ((last - first) / step).floor().min(12.0) as usize;
        let powers = (0..=count).map(|number| first + number as f64 * step);
        powers.map(|power| (self.axis.at(power), time(10_f64.powf(power)))).collect()
    }

    fn name(&self, what: &str) -> String {
        match self.unit.0 {
            "" => what.to_string(),
            unit => format!("{what} ({unit})"),
        }
    }
}

/// All that was tried, with how to read it.
pub(super) fn section(advised: &Advised) -> Markup {
    let rows = rows(advised);
    let page_bytes = advised.page_bytes;
    let all = || rows.iter().map(|row| row.outcome);
    let read = Scale::of_bytes(advised.now.bytes(page_bytes), all().map(|of| of.bytes(page_bytes)));
    let ranges = || all().map(Outcome::range_ns);
    let least = ranges().map(|(least, _)| least).fold(f64::INFINITY, f64::min);
    let times = Scale::of_times(least, ranges().map(|(_, most)| most).fold(0.0, f64::max));
    html! {
        h2 { "What was tried in the model" }
        p {
            "Dashed lines are at what the program reads and takes as it is. A bar that ends in a "
            "tip goes on beyond its scale. A dot is the time that "
            "is predicted with the machine profile, whose device has a latency of "
            (time(advised.latency_ns as f64)) ". The line through it reaches from half of that "
            "latency to double, as a device's latency moves from hour to hour. What the latency "
            "can turn around is a tie. Readahead size " (number(advised.read_ahead_kb as f64))
            " KiB where nothing else is said. A verdict is on the whole program."
        }
        (legend(&meanings(&rows)))
        div.scroll tabindex="0" role="group" aria-label="What was tried" {
            table.beside.tried {
                thead {
                    tr {
                        th scope="col" { "tried" }
                        th.n scope="col" { "bytes read" }
                        (head(&read, &read.name("bytes read")))
                        th.n scope="col" { "major faults" }
                        th.n scope="col" { "time" }
                        (head(&times, &times.name("time")))
                        th scope="col" { "verdict" }
                    }
                }
                tbody { @for row in &rows { (row_of(row, advised, &read, &times)) } }
            }
        }
    }
}

/// What the program does now, and then all trials, the best verdicts and the fastest first.
fn rows(advised: &Advised) -> Vec<Row<'_>> {
    let tried = advised.tried.iter().map(|tried| Row {
        label: tried.label(),
        outcome: &tried.outcome,
        verdict: &tried.verdict,
    });
    let mut rows: Vec<Row> = tried.collect();
    rows.sort_by_key(|row| (row.rank(), row.outcome.elapsed_ns));
    rows.insert(0, Row { label: "as it is".to_string(), outcome: &advised.now, verdict: "" });
    rows
}

fn meanings(rows: &[Row]) -> Vec<(String, String)> {
    let has = |name: &str| rows.iter().any(|row| row.verdict == name);
    let known = VERDICTS.into_iter().filter(|(name, _)| has(name));
    let text = |name: &str| match name {
        "best" => "the answer".to_string(),
        "tied" => "tied with the answer in time".to_string(),
        "helps" => "helps less".to_string(),
        name => name.to_string(),
    };
    let mut entries = vec![entry("threshold-key", "as it is")];
    entries.extend(known.map(|(name, class)| entry(class, text(name))));
    entries
}

/// The heading over plots: their scale.
fn head(scale: &Scale, name: &str) -> Markup {
    let view = format!("0 0 {} {}", PLOT.0, PLOT.1);
    html! {
        th.plot scope="col" {
            (name)
            svg viewBox=(view) aria-hidden="true" {
                @for (x, text) in scale.marks() {
                    @let half = text_width(&text, SMALL) / 2.0 + 3.0;
                    @let x = x.clamp(half.min(PLOT.0 / 2.0), (PLOT.0 - half).max(PLOT.0 / 2.0));
                    text.tick.middle x=(round(x)) y="16" { (text) }
                }
            }
        }
    }
}

fn row_of(row: &Row, advised: &Advised, read: &Scale, times: &Scale) -> Markup {
    let (outcome, now) = (row.outcome, &advised.now);
    let told = told(&row.label, outcome, advised.page_bytes);
    let class = match row.verdict {
        "best" => Some("good"),
        _ => None,
    };
    html! {
        tr {
            th scope="row" { (row.label) }
            td.n { (bytes(outcome.bytes(advised.page_bytes))) }
            td.plot { (amount(row, advised, read, &told)) }
            td.n { (number(outcome.major_faults as f64)) }
            td.n { (time(outcome.elapsed_ns as f64)) }
            td.plot { (duration(row, now, times, &told)) }
            td class=[class] { (row.verdict) }
        }
    }
}

/// A plot of one row, with the line of what the program does now.
fn plot(scale: &Scale, now: f64, told: &str, marks: &Markup) -> Markup {
    let view = format!("0 0 {} {}", PLOT.0, PLOT.1);
    html! {
        svg viewBox=(view) role="img" aria-label=(told) {
            @for (x, _) in scale.marks() {
                path.grid d=(format!("M{} 0v{}", round(x), PLOT.1)) {}
            }
            (marks)
            path.threshold d=(format!("M{} 0v{}", round(scale.at(now)), PLOT.1)) {}
            rect.hit width=(PLOT.0) height=(PLOT.1) data-t=(told) {}
        }
    }
}

fn amount(row: &Row, advised: &Advised, scale: &Scale, told: &str) -> Markup {
    let value = row.outcome.bytes(advised.page_bytes);
    let end = PLOT.0 - MARGIN;
    let is_beyond = scale.at(value) > end + 0.1;
    let at = scale.at(value).min(end).max(MARGIN + if value > 0.0 { 1.0 } else { 0.0 });
    let tip = if is_beyond { MARGIN - 2.0 } else { 0.0 };
    let (top, middle, bottom) = (5.0, PLOT.1 / 2.0, PLOT.1 - 5.0);
    let shape = format!(
        "M{MARGIN} {top}H{}L{} {middle}L{} {bottom}H{MARGIN}z",
        round(at),
        round(at + tip),
        round(at)
    );
    let marks = html! { path class=(row.class()) d=(shape) {} };
    plot(scale, advised.now.bytes(advised.page_bytes), told, &marks)
}

fn duration(row: &Row, now: &Outcome, scale: &Scale, told: &str) -> Markup {
    let middle = PLOT.1 / 2.0;
    let (least, most) = row.outcome.range_ns();
    let line = format!("M{} {middle}H{}", round(scale.at(least)), round(scale.at(most)));
    let marks = html! {
        path.span.(row.class()) d=(line) {}
        circle class=(row.class()) cx=(round(scale.at(row.outcome.elapsed_ns as f64))) cy=(middle)
            r="4.5" {}
    };
    plot(scale, now.elapsed_ns as f64, told, &marks)
}
