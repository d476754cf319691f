//! What reports of text say, as HTML.

use maud::{Markup, html};

use crate::report::Part;
use crate::table::{Table, in_one_line};

/// How a paragraph begins that warns.
const WARNING: &str = "Warning: ";

/// The parts of a report, without its first heading.
pub(super) fn all(parts: &[Part]) -> Markup {
    html! {
        @for part in parts { (one(part)) }
    }
}

fn one(part: &Part) -> Markup {
    html! {
        @match part {
            Part::Heading(text) => h2 { (text) },
            Part::Facts(facts) => (self::facts(facts)),
            Part::List(items) => ul { @for item in items { li { (item) } } },
            Part::Paragraph(text) => (paragraph(text)),
            Part::Table(table) => (self::table(table)),
            Part::Preformatted(text) => pre.scroll tabindex="0" { (text) },
        }
    }
}

fn paragraph(text: &str) -> Markup {
    match text.strip_prefix(WARNING) {
        Some(text) => html! { p.warning { strong { "Warning: " } (text) } },
        None => html! { p { (text) } },
    }
}

pub(super) fn facts(facts: &[(String, String)]) -> Markup {
    html! {
        dl.facts {
            @for (label, text) in facts {
                div { dt { (label) } dd { (text) } }
            }
        }
    }
}

/// A table that scrolls where a page is too narrow for it.
pub(super) fn table(table: &Table) -> Markup {
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

/// Figures that matter first: each with its name, and more on it.
pub(super) fn cards(cards: &[(String, String, String)]) -> Markup {
    html! {
        ul.cards {
            @for (name, figure, more) in cards {
                li {
                    span.what { (name) }
                    strong { (figure) }
                    span.more { (more) }
                }
            }
        }
    }
}
