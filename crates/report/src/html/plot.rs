//! Plots as figures of a page.

use maud::{Markup, html};

use crate::plot::{Plot, WIDTH, legend, round};

use super::table::table;

/// A plot as a figure of a page.
pub(super) fn markup(plot: &Plot) -> Markup {
    let view = format!("0 0 {WIDTH} {}", round(plot.height));
    html! {
        figure {
            figcaption {
                h3 { (plot.title) }
                p { (plot.note) }
                @for entries in &plot.legend { (legend(entries)) }
            }
            div.scroll tabindex="0" role="group" aria-label=(plot.title) {
                svg viewBox=(view) role="img" aria-label=(plot.described) { (plot.body) }
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
