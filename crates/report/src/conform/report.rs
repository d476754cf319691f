//! The report on compared patterns.

use filemap_job::Shown;
use filemap_job::record::SCHEMA;
use serde::Serialize;

use super::comparison::{Comparison, Difference};
use crate::footer::Footer;
use crate::report::{Part, Report, to_json};
use crate::table::{Column, Table};

/// A pattern that was compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Its name.
    pub name: String,
    /// What was found.
    pub found: Comparison,
    /// The job as a job file.
    pub job: String,
}

/// The report on `patterns`.
pub fn report(patterns: &[Pattern], footer: Footer) -> Report {
    let json = to_json(&Json {
        schema: SCHEMA,
        patterns: patterns.iter().map(Entry::new).collect(),
        footer: &footer,
    });
    let total = total(patterns);
    let mut parts =
        vec![Part::Heading("Decisions of the running kernel and of the model".to_string())];
    parts.push(Part::Table(table(listed(patterns), Some(&total))));
    parts.push(Part::Paragraph(summary(patterns.len(), &total)));
    parts.extend(patterns.iter().filter_map(difference));
    Report { parts, rows: table(patterns.iter(), None), footer, json }
}

#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    patterns: Vec<Entry<'a>>,
    #[serde(flatten)]
    footer: &'a Footer,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    decisions: u64,
    readahead_calls: u64,
    excluded: u64,
    mismatches: u64,
    first_mismatch: Option<First>,
    ok: bool,
    job: &'a str,
}

#[derive(Serialize)]
struct First {
    line: u64,
    before: Vec<String>,
    model: Vec<String>,
    kernel: Vec<String>,
}

impl<'a> Entry<'a> {
    fn new(pattern: &'a Pattern) -> Self {
        let found = &pattern.found;
        Entry {
            name: &pattern.name,
            decisions: found.decisions,
            readahead_calls: found.readahead_calls,
            excluded: found.excluded,
            mismatches: found.mismatches,
            first_mismatch: found.first.as_ref().map(|first| First {
                line: first.line,
                before: texts(&first.before),
                model: texts(&first.model),
                kernel: texts(&first.kernel),
            }),
            ok: found.mismatches == 0,
            job: &pattern.job,
        }
    }
}

fn texts(lines: &[Shown]) -> Vec<String> {
    lines.iter().map(Shown::to_string).collect()
}

fn total(patterns: &[Pattern]) -> Comparison {
    let sum = |of: fn(&Comparison) -> u64| patterns.iter().map(|pattern| of(&pattern.found)).sum();
    Comparison {
        decisions: sum(|found| found.decisions),
        readahead_calls: sum(|found| found.readahead_calls),
        excluded: sum(|found| found.excluded),
        mismatches: sum(|found| found.mismatches),
        first: None,
    }
}

/// More patterns than these are not listed where they agree.
const MAX_LISTED: usize = 100;

fn listed(patterns: &[Pattern]) -> impl Iterator<Item = &Pattern> {
    let all = patterns.len() <= MAX_LISTED;
    patterns.iter().filter(move |pattern| all || pattern.found.mismatches > 0)
}

fn table<'a>(patterns: impl Iterator<Item = &'a Pattern>, total: Option<&Comparison>) -> Table {
    let row = |name: &str, found: &Comparison| {
        let numbers = [found.decisions, found.readahead_calls, found.excluded, found.mismatches];
        [name.to_string()].into_iter().chain(numbers.map(|number| number.to_string())).collect()
    };
    let mut rows: Vec<Vec<String>> =
        patterns.map(|pattern| row(&pattern.name, &pattern.found)).collect();
    rows.extend(total.map(|total| row("all", total)));
    let numbers = ["decisions", "readahead\ncalls", "excluded", "mismatches"];
    Table {
        title: String::new(),
        columns: [Column::left("pattern")].into_iter().chain(numbers.map(Column::right)).collect(),
        rows,
    }
}

fn summary(patterns: usize, total: &Comparison) -> String {
    let Comparison { decisions, readahead_calls, excluded, mismatches, .. } = total;
    format!(
        "{patterns} patterns, {decisions} decisions, {readahead_calls} readahead calls, \
         {mismatches} mismatches. Excluded: {excluded} lines of faults on pages that were still \
         on their way when an earlier fault mapped what was around them."
    )
}

/// The first difference of a pattern, and the job that repeats it.
fn difference(pattern: &Pattern) -> Option<Part> {
    let Difference { line, before, model, kernel } = pattern.found.first.as_ref()?;
    let mut text = format!("{}: differs behind line {line}\n\n", pattern.name);
    for (whose, lines) in [("both", before), ("model", model), ("kernel", kernel)] {
        if lines.is_empty() {
            text += &format!("  {whose:<6}  (the end)\n");
        }
        for line in lines {
            text += &format!("  {whose:<6}  {line}\n");
        }
    }
    text += "\nIts job file:\n\n";
    for line in pattern.job.lines() {
        text += &format!("  {line}\n");
    }
    Some(Part::Preformatted(text))
}

#[cfg(test)]
mod tests {
    use filemap_core::units::PageIndex;
    use serde_json::{Map, Value};

    use super::super::compare;
    use super::*;
    use crate::Format;

    fn pattern(name: &str, model: &[u64], kernel: &[u64]) -> Pattern {
        let log = |pages: &[u64]| -> Vec<Shown> {
            pages.iter().map(|&page| Shown::LookedUp { index: PageIndex(page) }).collect()
        };
        let (name, job) = (name.to_string(), "seed = 1\n".to_string());
        Pattern { name, found: compare(&log(model), &log(kernel)), job }
    }

    fn footer() -> Footer {
        Footer { scope: "s".into(), command: "c".into(), environment: Map::new() }
    }

    #[test]
    fn a_difference_is_shown_with_both_logs() {
        let patterns = [pattern("same", &[1], &[1]), pattern("other", &[1, 2, 3], &[1, 4])];
        let report = report(&patterns, footer());
        let text = report.render(Format::Table);
        for words in [
            "other: differs behind line 1",
            "  both    fault 1\n  model   fault 2\n  model   fault 3\n  kernel  fault 4\n",
            "2 patterns, 4 decisions, 0 readahead calls, 2 mismatches.",
            "  seed = 1\n",
        ] {
            assert!(text.contains(words), "{text}");
        }
        let json: Value = serde_json::from_str(&report.json).unwrap();
        assert_eq!(json["patterns"][0]["first_mismatch"], Value::Null);
        assert_eq!(json["patterns"][1]["first_mismatch"]["kernel"][0], "fault 4");
        assert_eq!(json["patterns"][1]["ok"], false);
    }

    #[test]
    fn of_many_patterns_only_those_that_differ_are_listed() {
        let mut patterns = vec![pattern("same", &[1], &[1]); MAX_LISTED];
        patterns.push(pattern("other", &[1], &[]));
        let report = report(&patterns, footer());
        let text = report.render(Format::Table);
        assert!(text.contains("\nother ") && !text.contains("\nsame"), "{text}");
        assert_eq!(report.rows.rows.len(), patterns.len());
    }
}
