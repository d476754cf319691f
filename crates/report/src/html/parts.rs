//! The parts of reports as HTML.

use maud::{Markup, html};

use crate::report::{Card, Details, Part};
use crate::table::{Table, in_one_line};

use super::{bars, dots};

/// Parts, one after the other.
pub fn all(parts: &[Part]) -> Markup {
    html! {
        @for part in parts { (one(part)) }
    }
}

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
            Part::Table(table) => (self::table(table)),
            Part::Comparison(comparison) => (table(&comparison.table())),
            Part::Preformatted(text) => pre.scroll tabindex="0" { (text) },
            Part::Cards(cards) => (self::cards(cards)),
            Part::Bars(bars) => (bars::markup(bars)),
            Part::Dots(dots) => (dots::markup(dots)),
            Part::Plot(plot) => (plot.markup()),
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

/// A table that scrolls where a page is too narrow for it.
pub fn table(table: &Table) -> Markup {
    let class = |index: usize| table.columns.get(index).filter(|column| column.right).map(|_| "n");
    html! {
        div.scroll tabindex="0" role="group" aria-label="table" {
            table {
                @if !table.title.is_empty() { caption { (table.title) } }
                thead {
                    tr {
                        @for (index, column) in table.columns.iter().enumerate() {
                            th scope="col" class=[class(index)] { (column.one_line()) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                td class=[class(index)] { (in_one_line(cell)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Figures that matter first.
pub fn cards(cards: &[Card]) -> Markup {
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
