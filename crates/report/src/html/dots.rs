//! Tables with drawn columns.

use maud::{Markup, html};

use crate::axis::text_width;
use crate::dots::{DotCell, DotColumn, DotTable, MARGIN, Mark, Scale, WIDTH};
use crate::plot::{legend, round};

/// Height of a row.
const ROW_HEIGHT: f64 = 22.0;

/// Font size of a scale's labels, in pixels.
const LABEL_SIZE: f64 = 11.0;

/// A table with drawn columns, which scrolls on narrow pages.
pub(super) fn markup(
    DotTable { title, note, legend: entries, columns, rows }: &DotTable,
) -> Markup {
    html! {
        @if !note.is_empty() { p { (note) } }
        @if !entries.is_empty() { (legend(entries)) }
        div.scroll tabindex="0" role="group" aria-label=(title) {
            table.dots {
                @if !title.is_empty() { caption { (title) } }
                thead { tr { @for column in columns { (head(column)) } } }
                tbody {
                    @for row in rows {
                        tr { @for (own, column) in row.iter().zip(columns) { (cell(own, column)) } }
                    }
                }
            }
        }
    }
}

fn head(column: &DotColumn) -> Markup {
    let scale = match column {
        DotColumn::Text(head) => {
            return html! { th scope="col" class=[head.right.then_some("n")] { (head.one_line()) } };
        }
        DotColumn::Drawn(scale) => scale,
    };
    html! {
        th.plot scope="col" {
            @match scale.name.as_str() {
                "" => span.unseen { "as a picture" },
                name => (name),
            }
            svg viewBox=(view()) aria-hidden="true" {
                @for (x, text) in scale.marks() {
                    @let half = (text_width(&text, LABEL_SIZE) / 2.0 + 3.0).min(WIDTH / 2.0);
                    text.tick.middle x=(round(x.clamp(half, WIDTH - half))) y="16" { (text) }
                }
            }
        }
    }
}

fn cell(cell: &DotCell, column: &DotColumn) -> Markup {
    let is_right = matches!(column, DotColumn::Text(head) if head.right);
    html! {
        @match (cell, column) {
            (DotCell::Name(text), _) => th scope="row" { (text) },
            (DotCell::Text(text), _) => td class=[is_right.then_some("n")] { (text) },
            (DotCell::Verdict { text, class, more }, _) => td class=[class] title=[more] { (text) },
            (DotCell::Drawn { marks, description }, DotColumn::Drawn(scale)) => {
                td.plot { (picture(marks, description, scale)) }
            },
            (DotCell::Drawn { description, .. }, DotColumn::Text(_)) => td { (description) },
        }
    }
}

fn view() -> String {
    format!("0 0 {WIDTH} {ROW_HEIGHT}")
}

fn picture(marks: &[Mark], description: &str, scale: &Scale) -> Markup {
    let upright = |x: f64| format!("M{} 0v{ROW_HEIGHT}", round(x));
    html! {
        svg viewBox=(view()) role="img" aria-label=(description) {
            @for (x, _) in scale.marks() { path.grid d=(upright(x)) {} }
            @for own in marks { (mark(*own, scale)) }
            @if let Some(value) = scale.threshold {
                path.threshold d=(upright(scale.at(value))) {}
            }
            rect.hit width=(WIDTH) height=(ROW_HEIGHT) data-t=(description) {}
        }
    }
}

fn mark(mark: Mark, scale: &Scale) -> Markup {
    let middle = ROW_HEIGHT / 2.0;
    let place = |value: f64| round(scale.at(value));
    html! {
        @match mark {
            Mark::Ring(value) => circle.ring cx=(place(value)) cy=(middle) r="6" {},
            Mark::Dot(value, class) => circle class=(class) cx=(place(value)) cy=(middle) r="4" {},
            Mark::Range(least, most, class) => {
                path.span.(class) d=(format!("M{} {middle}H{}", place(least), place(most))) {}
            },
            Mark::Bar(value, class) => path class=(class) d=(bar(value, scale)) {},
        }
    }
}

/// The outline of a bar from 0, with a tip if it exceeds the scale.
fn bar(value: f64, scale: &Scale) -> String {
    let end = WIDTH - MARGIN;
    let least = MARGIN + if value > 0.0 { 1.0 } else { 0.0 };
    let tip = if scale.at(value) > end + 0.1 { MARGIN - 2.0 } else { 0.0 };
    let at = scale.at(value).min(end).max(least);
    let (top, middle, bottom) = (5.0, ROW_HEIGHT / 2.0, ROW_HEIGHT - 5.0);
    format!(
        "M{MARGIN} {top}H{}L{} {middle}L{} {bottom}H{MARGIN}z",
        round(at),
        round(at + tip),
        round(at)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Unit;
    use crate::table::Head;

    #[test]
    fn draws_marks_on_the_scale_of_their_column() {
        let mut scale = Scale::from_values("read", Unit::Bytes, [4096.0].into_iter());
        scale.threshold = Some(4096.0);
        let marks = vec![
            Mark::Bar(9999.0, "u4"),
            Mark::Range(0.0, 2048.0, "u4"),
            Mark::Ring(2048.0),
            Mark::Dot(1024.0, "u4"),
        ];
        let description = "2 to 4 <KiB>".to_string();
        let dots = DotTable {
            title: "Rows".to_string(),
            note: String::new(),
            legend: Vec::new(),
            columns: vec![DotColumn::Text(Head::text("row")), DotColumn::Drawn(scale)],
            rows: vec![vec![DotCell::Name("a".to_string()), DotCell::Drawn { marks, description }]],
        };
        let page = markup(&dots).into_string();
        assert!(page.contains("read (KiB)") && page.contains("2 to 4 &lt;KiB&gt;"), "{page}");
        assert!(page.contains("M10 5H230L238 11L230 17H10z"), "a bar with its tip: {page}");
        assert!(page.contains(r#"class="ring" cx="120""#) && page.contains("M10 11H120"), "{page}");
        assert!(page.contains(r#"class="threshold" d="M230 0v22""#), "{page}");
    }
}
