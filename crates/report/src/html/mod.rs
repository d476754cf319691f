//! Reports as pages to look at: one HTML file each, which needs nothing beside it.
//!
//! Texts are escaped where they are written: `maud` does that with every value.

mod bars;
mod dots;
mod frame;
mod parts;
mod plot;
mod table;

use maud::{Markup, html};

use crate::report::{Part, Report};

impl Report {
    /// The page of it.
    pub fn html(&self) -> String {
        let parts = match self.parts.as_slice() {
            [Part::Heading(_), rest @ ..] => rest,
            all => all,
        };
        let parts: Vec<Part> = parts.iter().flat_map(with_drawn).collect();
        let body = html! {
            @for section in sections(&parts) { (shown(section)) }
        };
        frame::page(self.title(), &self.footer, &body)
    }
}

/// A part, and the pictures of what it says.
fn with_drawn(part: &Part) -> Vec<Part> {
    let mut parts = vec![part.clone()];
    if let Part::Comparison(comparison) = part {
        parts.extend(comparison.drawn());
    }
    parts
}

/// Each heading with what is below it.
fn sections(parts: &[Part]) -> Vec<&[Part]> {
    let is_heading = |part: &Part| matches!(part, Part::Heading(_));
    let mut sections = Vec::new();
    let mut rest = parts;
    while !rest.is_empty() {
        let next = rest.iter().skip(1).position(is_heading).map(|at| at + 1);
        let (section, others) = rest.split_at(next.unwrap_or(rest.len()));
        sections.push(section);
        rest = others;
    }
    sections
}

/// Where a part stands in its section: what answers first, then what is to be looked at.
fn rank(part: &Part) -> usize {
    match part {
        Part::Heading(_) => 0,
        Part::Lead(_) => 1,
        Part::Cards(_) => 2,
        Part::Warning(_) => 3,
        Part::Facts(_) => 4,
        Part::Bars(_) | Part::Dots(_) | Part::Plot(_) | Part::Drawn(_) | Part::Details(_) => 5,
        Part::List(_)
        | Part::Paragraph(_)
        | Part::Table(_)
        | Part::Comparison(_)
        | Part::Preformatted(_) => 6,
    }
}

/// A section. Where something was drawn, a heading stands over the figures.
fn shown(section: &[Part]) -> Markup {
    let mut parts: Vec<&Part> = section.iter().collect();
    parts.sort_by_key(|part| rank(part));
    let (drawn, rest) = parts.split_at(parts.partition_point(|part| rank(part) < 6));
    let is_drawn = drawn.iter().any(|part| rank(part) == 5);
    html! {
        @for part in drawn { (parts::one(part)) }
        @if is_drawn && !rest.is_empty() {
            @if let Some(Part::Heading(_)) = section.first() {
                h3 { "Figures" }
            } @else {
                h2 { "Figures" }
            }
        }
        @for part in rest { (parts::one(part)) }
    }
}
