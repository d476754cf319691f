//! Reports as pages: one self-contained HTML file each. `maud` escapes every value.

mod dots;
mod frame;
mod parts;

use maud::{Markup, html};

use crate::report::{Part, Report};

impl Report {
    /// The page.
    pub fn html(&self) -> String {
        let parts = match self.parts.as_slice() {
            [Part::Heading(_), rest @ ..] => rest,
            all => all,
        };
        let parts: Vec<Part> = parts.iter().flat_map(with_pictures).collect();
        let body = html! {
            @for section in sections(&parts) { (markup(section)) }
        };
        frame::page(self.title(), &self.footer, &body)
    }
}

/// A part, followed by its pictures if it is a comparison.
fn with_pictures(part: &Part) -> Vec<Part> {
    let mut parts = vec![part.clone()];
    if let Part::Comparison(comparison) = part {
        parts.extend(comparison.pictures());
    }
    parts
}

/// Splits at headings.
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

/// The position of a part in its section: answers first, then pictures, then figures.
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

/// A section, with a heading between pictures and figures.
fn markup(section: &[Part]) -> Markup {
    let mut parts: Vec<&Part> = section.iter().collect();
    parts.sort_by_key(|part| rank(part));
    let (pictures, rest) = parts.split_at(parts.partition_point(|part| rank(part) < 6));
    let has_pictures = pictures.iter().any(|part| rank(part) == 5);
    html! {
        @for part in pictures { (parts::part(part)) }
        @if has_pictures && !rest.is_empty() {
            @if let Some(Part::Heading(_)) = section.first() {
                h3 { "Figures" }
            } @else {
                h2 { "Figures" }
            }
        }
        @for part in rest { (parts::part(part)) }
    }
}
