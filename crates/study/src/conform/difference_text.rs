//! Renders a difference.

use filemap_report::Part;

use super::comparison::FirstDifference;
use super::differences::Difference;
use super::reason::AccessDescription;

/// Maximum number of patterns named.
const MAX_NAMED_PATTERNS: usize = 6;

/// Message about the first difference of pattern `name`, printed as soon as it is found.
pub(super) fn first_difference_message(name: &str, first: &FirstDifference) -> String {
    format!("'{name}' {}\n\n{}", first_difference_place(first), logs(first).trim_end())
}

/// Parts of the report on `difference`. The job file is not indented, so that it can be copied.
pub(super) fn difference_parts(difference: &Difference) -> Vec<Part> {
    let Difference { patterns, job, is_smallest, first } = difference;
    let name = patterns.first().map_or("", String::as_str);
    let mut parts = vec![
        Part::Paragraph(format!(
            "'{name}', as the job file below, {}",
            first_difference_place(first)
        )),
        Part::Preformatted(logs(first).trim_end().to_string()),
    ];
    if !first.reason.is_empty() {
        parts.push(Part::Paragraph("What the model decided in that access:".to_string()));
        parts.push(Part::List(first.reason.clone()));
    }
    let cut =
        if *is_smallest { "" } else { ", for which there was no time to try all smaller ones" };
    let sentences =
        [rule(first), other_differences(difference), Some(format!("Its job file{cut}:"))];
    parts.extend(sentences.into_iter().flatten().map(Part::Paragraph));
    parts.push(Part::Preformatted(job.trim_end().to_string()));
    parts
}

/// Sentence on the rule of `first`.
fn rule(first: &FirstDifference) -> Option<String> {
    let named = first.rule.as_ref()?;
    let kernel = named.kernel.join(", ");
    Some(format!("The rule there: {} ({}, which mirrors {kernel}).", named.what, named.ours))
}

/// Sentence on the other patterns of `difference`.
fn other_differences(difference: &Difference) -> Option<String> {
    let others = difference.patterns.get(1..).filter(|others| !others.is_empty())?;
    let named = others.iter().take(MAX_NAMED_PATTERNS).map(|name| format!("'{name}'"));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match others.len().saturating_sub(MAX_NAMED_PATTERNS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("Others that differ alike: {named}{more}."))
}

/// Where the logs diverge.
fn first_difference_place(first: &FirstDifference) -> String {
    let Some(number) = first.access else { return "differs:".to_string() };
    let accessed = first.accessed.as_ref().map_or(String::new(), |accessed| {
        let AccessDescription { page, pages, step, does } = accessed;
        let pages = match pages {
            1 => format!("page {page}"),
            pages => format!("pages {page}-{}", page + pages - 1),
        };
        format!(", to {pages} (phase {step}, {does})")
    });
    format!("differs in access {number}{accessed}:")
}

/// The lines of both logs.
fn logs(first: &FirstDifference) -> String {
    let mut text = String::new();
    for line in &first.before {
        text += &format!("  both    {line}\n");
    }
    for (whose, lines) in [("model", &first.model), ("kernel", &first.kernel)] {
        if lines.is_empty() {
            text += &format!("  {whose:<6}  (the end)\n");
        }
        lines.iter().for_each(|line| text += &format!("  {whose:<6}  {line}\n"));
    }
    text
}
