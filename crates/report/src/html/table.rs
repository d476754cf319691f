//! Tables on a page.

use maud::{Markup, html};

use crate::table::{Table, in_one_line};

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
