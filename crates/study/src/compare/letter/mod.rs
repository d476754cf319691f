//! A comparison for a mail to a kernel list: before and after, how far the runs spread, the machine
//! and the command.

mod columns;
mod machine;
mod tables;
#[cfg(test)]
mod tests;

use filemap_job::Record;

use self::columns::Columns;
use super::cell::Cell;
use super::{conditions, findings, title, worse};
use crate::footer::Footer;
use crate::setup;
use crate::spread;
use filemap_report::Part;
use filemap_report::{Letter, is_plain};

/// The lines of a setup that say what was run. The others say where.
const JOB: [&str; 5] = ["File", "Files", "Mapping", "Accesses", "Threads"];

/// The line of a setup in whose place each variant has its own.
const KERNEL: &str = "Kernel";

/// Most lines of a job file that are shown.
const MOST_LINES: usize = 40;

/// A job file that the command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// Its path in the command.
    pub path: String,
    /// What is in it, or why that cannot be shown.
    pub text: Result<String, String>,
}

/// The letter on `cells`, each against the first one of its engine, with `warnings`. `command`
/// repeats it, with `job_file`, if it names one.
///
/// # Panics
/// Without any cell.
pub fn letter(
    cells: &[Cell],
    warnings: &[String],
    command: String,
    job_file: Option<&JobFile>,
) -> Letter {
    let (job, settings): (Vec<_>, Vec<_>) =
        setup_of(cells).into_iter().partition(|(label, _)| JOB.contains(&label.as_str()));
    let job = job.iter().map(|(label, text)| format!("{}: {text}", label.to_lowercase()));
    let job = job.collect::<Vec<_>>().join("; ");
    let records: Vec<Record> = cells.iter().map(|cell| cell.record.clone()).collect();
    let columns = Columns::of(cells);
    let mut facts = vec![("Job".to_string(), job), ("Runs".to_string(), runs(&records[0]))];
    facts.extend(settings.into_iter().filter(|(label, _)| label != KERNEL));
    let mut parts = vec![Part::Heading(title(cells)), Part::Facts(facts)];
    parts.extend([Part::Paragraph("Variants:".to_string()), Part::List(columns.legend(cells))]);
    parts.extend(tables::tables(cells, &columns));
    parts.extend(findings(cells, &worse(cells), warnings));
    parts.extend(conditions(&records));
    if records.iter().any(machine::has_emulated_times) {
        let note = "A time with (e) behind it is of an emulated guest: it says nothing, and is \
                    not compared.";
        parts.push(Part::Paragraph(note.to_string()));
    }
    let mut last = machine::facts(&records);
    last.push(("Scope".to_string(), Footer::new(&records, String::new()).limits().to_string()));
    parts.push(Part::Facts(last));
    parts.extend(job_file.into_iter().flat_map(shown));
    Letter { parts, command }
}

/// The lines on what was run and where.
fn setup_of(cells: &[Cell]) -> Vec<(String, String)> {
    let records: Vec<Record> = cells.iter().map(|cell| cell.record.clone()).collect();
    match setup::of_records(&records) {
        Part::Facts(facts) => facts,
        _ => Vec::new(),
    }
}

/// Of how many runs the figures are.
fn runs(first: &Record) -> String {
    let seeds = spread::seeds(first);
    let below = "medians, with the least and the most where they differ";
    match (seeds, first.runs.len()) {
        (_, 0 | 1) => "one of each variant".to_string(),
        (1, runs) => format!("{runs} of each variant; {below}"),
        (seeds, _) => format!("{seeds} seeds of each variant; {below}"),
    }
}

/// A job file, where a letter can hold it.
fn shown(file: &JobFile) -> Vec<Part> {
    let JobFile { path, text } = file;
    let said = |reason: &str| {
        vec![Part::Paragraph(format!("{path} is not shown here ({reason}); attach it."))]
    };
    match text.as_deref().map(str::trim_end) {
        Err(reason) => said(reason),
        Ok(text) if text.lines().count() > MOST_LINES => {
            said(&format!("it has {} lines", text.lines().count()))
        }
        Ok(text) if !is_plain(text) => said("it is not plain ASCII in 75 columns"),
        Ok(text) => {
            vec![Part::Paragraph(format!("{path} is:")), Part::Preformatted(text.to_string())]
        }
    }
}
