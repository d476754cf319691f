//! Published figures beside those that came out, in one table with a plot in each row.

use maud::{Markup, html};

use filemap_report::{Axis, tick_text, ticks};

use super::{Cell, NAMES, figure};
use filemap_report::plot::round;

/// Width and height of the plot in a row, and its margin at both sides.
const PLOT: (f64, f64) = (260.0, 22.0);
const MARGIN: f64 = 8.0;

/// The scale of a table.
struct Scale {
    axis: Axis,
    is_logarithmic: bool,
}

impl Scale {
    fn of(cells: &[&Cell]) -> Scale {
        let values = cells.iter().flat_map(|cell| {
            let spread = cell.spread().map(|(least, most)| [Some(least), Some(most)]);
            [cell.published, cell.model()].into_iter().chain(spread.into_iter().flatten()).flatten()
        });
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let least = values.iter().copied().fold(f64::MAX, f64::min).min(1e300);
        let most = values.iter().copied().fold(f64::MIN, f64::max).max(least);
        let is_logarithmic = least > 0.0 && most / least > 30.0;
        let (first, last) = match is_logarithmic {
            true => (least.log10().floor(), most.log10().ceil()),
            false => (least.min(0.0), most.max(0.0)),
        };
        let last = if last > first { last } else { first + 1.0 };
        let axis = Axis { left: MARGIN, width: PLOT.0 - 2.0 * MARGIN, first, last };
        Scale { axis, is_logarithmic }
    }

    fn at(&self, value: f64) -> f64 {
        self.axis.at(if self.is_logarithmic { value.log10() } else { value })
    }

    /// Places with their texts.
    fn marks(&self) -> Vec<(f64, String)> {
        let Axis { first, last, .. } = self.axis;
        if !self.is_logarithmic {
            let marks = ticks(first, last, 3.0, 1e-3).into_iter();
            return marks.map(|value| (self.at(value), tick_text(value))).collect();
        }
        let powers = ((last - first) / 4.0).ceil().max(1.0);
        let count = ((last - first) / powers).floor() as usize;
        let power = |step: usize| first + step as f64 * powers;
        let marks = (0..=count).map(power);
        marks.map(|power| (self.axis.at(power), figure(10f64.powf(power)))).collect()
    }
}

/// The table of `cells`, which are of one unit.
pub(super) fn beside(title: &str, cells: &[&Cell]) -> Markup {
    let scale = Scale::of(cells);
    let mut heads: Vec<&'static str> = Vec::new();
    for (key, _) in cells.iter().flat_map(|cell| cell.names()) {
        if !heads.contains(&key) {
            heads.push(key);
        }
    }
    heads.sort_by_key(|key| NAMES.iter().position(|known| known == key));
    let view = format!("0 0 {} {}", PLOT.0, PLOT.1);
    html! {
        div.scroll tabindex="0" role="group" aria-label=(title) {
            table.beside {
                caption { (title) }
                thead {
                    tr {
                        @for head in &heads { th scope="col" { (head.replace('_', " ")) } }
                        th.n scope="col" { "published" }
                        th.n scope="col" { "here" }
                        th scope="col" {
                            span.unseen { "as a picture" }
                            svg viewBox=(view) aria-hidden="true" {
                                @for (x, text) in scale.marks() {
                                    @let x = round(x.clamp(18.0, PLOT.0 - 18.0));
                                    text.tick.middle x=(x) y="18" { (text) }
                                }
                            }
                        }
                        th.n scope="col" { "error" }
                        th scope="col" { "verdict" }
                    }
                }
                tbody { @for cell in cells { (row(cell, &heads, &scale, &view)) } }
            }
        }
    }
}

fn row(cell: &Cell, heads: &[&'static str], scale: &Scale, view: &str) -> Markup {
    let names = cell.names();
    let name = |head: &&'static str| {
        names.iter().find(|(key, _)| key == head).map_or("", |(_, text)| text.as_str())
    };
    let text = |value: Option<f64>| value.map_or("-".to_string(), figure);
    let unit = cell.error_unit.as_deref().unwrap_or_default();
    let unit = if unit == "%" { " %" } else { "" };
    let error = cell.error.map_or("-".to_string(), |error| signed(error) + unit);
    let class = match cell.ok {
        Some(true) => Some("good"),
        Some(false) => Some("bad"),
        None => None,
    };
    let told = told(cell);
    html! {
        tr {
            @for head in heads { td { (name(head)) } }
            td.n { (text(cell.published)) }
            td.n { (text(cell.model())) }
            td.plot { (drawn(cell, scale, view, &told)) }
            td.n { (error) }
            td class=[class] title=[cell.tolerance.as_deref()] { (cell.verdict) }
        }
    }
}

/// An error with its sign; without one where it rounds to nothing.
fn signed(error: f64) -> String {
    match format!("{error:+.2}").as_str() {
        "+0.00" | "-0.00" => "0.00".to_string(),
        text => text.to_string(),
    }
}

fn told(cell: &Cell) -> String {
    let mut words = Vec::new();
    words.extend(cell.published.map(|value| format!("published {}", figure(value))));
    words.extend(cell.model().map(|value| format!("here {}", figure(value))));
    words.extend(
        cell.spread().map(|(least, most)| format!("from {} to {}", figure(least), figure(most))),
    );
    words.extend(cell.tolerance.as_ref().map(|tolerance| format!("tolerated {tolerance}")));
    words.join("; ")
}

fn drawn(cell: &Cell, scale: &Scale, view: &str, told: &str) -> Markup {
    let middle = PLOT.1 / 2.0;
    let place = |value: f64| round(scale.at(value));
    html! {
        svg viewBox=(view) role="img" aria-label=(told) {
            @for (x, _) in scale.marks() {
                path.grid d=(format!("M{} 0v{}", round(x), PLOT.1)) {}
            }
            @if let Some((least, most)) = cell.spread() {
                path.range d=(format!("M{} {middle}H{}", place(least), place(most))) {}
            }
            @if let Some(published) = cell.published {
                circle.published cx=(place(published)) cy=(middle) r="6" {}
            }
            @if let Some(model) = cell.model() {
                circle.model cx=(place(model)) cy=(middle) r="3.2" {}
            }
            rect.hit width=(PLOT.0) height=(PLOT.1) data-t=(told) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::signed;

    #[test]
    fn nothing_has_no_sign() {
        let shown = [-0.004, 0.004, 0.0, -0.006, 12.345].map(signed);
        assert_eq!(shown, ["0.00", "0.00", "0.00", "-0.01", "+12.35"]);
    }
}
