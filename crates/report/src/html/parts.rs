//! The parts of reports as HTML.

use maud::{Markup, html};

use crate::report::{Card, Details, Part};

use super::table::table;
use super::{bars, dots, plot};

/// A part.
pub(super) fn one(part: &Part) -> Markup {
    html! {
        @match part {
            Part::Heading(text) => h2 { (text) },
            Part::Lead(text) => p.answer { (text) },
            Part::Facts(facts) => (self::facts(facts)),
            Part::List(items) => ul { @for item in items { li { (item) } } },
            Part::Paragraph(text) => p { (text) },
            Part::Warning(text) => p.warning { strong { "Warning: " } (text) },
            Part::Table(own) => (table(own)),
            Part::Comparison(comparison) => (table(&comparison.table())),
            Part::Preformatted(text) => pre.scroll tabindex="0" { (text) },
            Part::Cards(cards) => (self::cards(cards)),
            Part::Bars(bars) => (bars::markup(bars)),
            Part::Dots(dots) => (dots::markup(dots)),
            Part::Plot(own) => (plot::markup(own)),
            Part::Drawn(markup) => (markup),
            Part::Details(Details { summary, parts }) => details {
                summary { (summary) }
                @for part in parts { (one(part)) }
            },
        }
    }
}

fn facts(facts: &[(String, String)]) -> Markup {
    html! {
        dl.facts {
            @for (label, text) in facts {
                div { dt { (label) } dd { (text) } }
            }
        }
    }
}

/// Figures that matter first.
fn cards(cards: &[Card]) -> Markup {
    html! {
        ul.cards {
            @for Card { name, figure, more } in cards {
                li {
                    span.what { (name) }
                    strong { (figure) }
                    span.more { (more) }
                }
            }
        }
    }
}
