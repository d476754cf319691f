//! The parts of reports as HTML.

use maud::{Markup, html};

use super::dots;
use crate::bars::BarTable;
use crate::plot::{Plot, WIDTH, legend, round};
use crate::report::{Card, Details, Part};
use crate::table::{Table, single_line};

/// Renders one part.
pub(super) fn part(content: &Part) -> Markup {
    html! {
        @match content {
            Part::Heading(text) => h2 { (text) },
            Part::Lead(text) => p.answer { (text) },
            Part::Facts(facts) => (self::facts(facts)),
            Part::List(items) => ul { @for item in items { li { (item) } } },
            Part::Paragraph(text) => p { (text) },
            Part::Warning(text) => p.warning { strong { "Warning: " } (text) },
            Part::Table(content) => (table(content)),
            Part::Comparison(comparison) => (table(&comparison.table())),
            Part::Preformatted(text) => pre.scroll tabindex="0" { (text) },
            Part::Cards(cards) => (self::cards(cards)),
            Part::Bars(content) => (bars(content)),
            Part::Dots(content) => (dots::markup(content)),
            Part::Plot(content) => (plot(content)),
            Part::Drawn(markup) => (markup),
            Part::Details(Details { summary, parts }) => details {
                summary { (summary) }
                @for nested in parts { (part(nested)) }
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

/// A table, which scrolls on narrow pages.
fn table(table: &Table) -> Markup {
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
                                td class=[class(index)] { (single_line(cell)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Minimum width of a bar above 0, in percent.
const MIN_BAR_PERCENT: f64 = 0.3;

/// A table of bars, which scrolls on narrow pages.
fn bars(BarTable { title, note, heads, bars }: &BarTable) -> Markup {
    let max = bars.iter().filter_map(|bar| bar.value).fold(0.0, f64::max);
    let width = |value: f64| {
        let min = if value > 0.0 { MIN_BAR_PERCENT } else { 0.0 };
        if max > 0.0 { (value.max(0.0) / max * 100.0).max(min) } else { 0.0 }
    };
    let (first, rest) = heads.split_first().expect("there is a first column");
    html! {
        @if !note.is_empty() { p { (note) } }
        @if !bars.is_empty() {
        div.scroll tabindex="0" role="group" aria-label=(title) {
            table.bars {
                caption { (title) }
                thead {
                    tr {
                        th scope="col" { (first) }
                        th.bar scope="col" { span.unseen { "as a bar" } }
                        @for head in rest { th.n scope="col" { (head) } }
                    }
                }
                tbody {
                    @for bar in bars {
                        tr {
                            th scope="row" { (bar.name) }
                            td.bar {
                                @if let Some(value) = bar.value {
                                    @let style = format!("width:{:.2}%", width(value));
                                    div.fill.(bar.class) style=(style) {}
                                }
                            }
                            @for text in &bar.texts { td.n { (text) } }
                        }
                    }
                }
            }
        }
        }
    }
}

/// A plot as a figure, with its values in a table.
fn plot(plot: &Plot) -> Markup {
    let view = format!("0 0 {WIDTH} {}", round(plot.height));
    html! {
        figure {
            figcaption {
                h3 { (plot.title) }
                p { (plot.note) }
                @for entries in &plot.legend { (legend(entries)) }
            }
            div.scroll tabindex="0" role="group" aria-label=(plot.title) {
                svg viewBox=(view) role="img" aria-label=(plot.description) { (plot.body) }
            }
            @if let Some((heading, values)) = &plot.table {
                details {
                    summary { (heading) }
                    (table(values))
                }
            }
        }
    }
}
