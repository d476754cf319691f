//! Tables of bars.

use maud::{Markup, html};

use crate::bars::Bars;

/// Least width of a bar that stands for something, in percent.
const LEAST: f64 = 0.3;

/// A table of bars, which scrolls where a page is too narrow for it.
pub(super) fn markup(Bars { title, note, heads, bars }: &Bars) -> Markup {
    let most = bars.iter().filter_map(|bar| bar.value).fold(0.0, f64::max);
    let width = |value: f64| {
        let least = if value > 0.0 { LEAST } else { 0.0 };
        if most > 0.0 { (value.max(0.0) / most * 100.0).max(least) } else { 0.0 }
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
