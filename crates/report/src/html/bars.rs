//! Tables of which one column is drawn as bars.

use maud::{Markup, html};

/// A row of a table of bars.
pub(super) struct Bar {
    pub name: String,
    /// How long it is.
    pub value: Option<f64>,
    pub class: &'static str,
    /// The value and what is said of it, in columns.
    pub texts: Vec<String>,
}

/// Bars of one unit, the longest of which takes the whole width. `heads` name the first column and
/// those behind the bars.
pub(super) fn bars(title: &str, heads: &[&str], bars: &[Bar]) -> Markup {
    let most = bars.iter().filter_map(|bar| bar.value).fold(0.0, f64::max);
    let width = |value: f64| match most > 0.0 {
        true => (value.max(0.0) / most * 100.0).max(if value > 0.0 { 0.3 } else { 0.0 }),
        false => 0.0,
    };
    let (first, rest) = heads.split_first().expect("there is a first column");
    html! {
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
