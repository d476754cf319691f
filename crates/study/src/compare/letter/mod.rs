//! A comparison as plain text for a mail to a kernel list: before and after, the spread of the
//! runs, the kernels, the machine and the command.

mod by_seed;
mod counters;
mod machine;
mod matrix;
#[cfg(test)]
mod tests;
mod trees;

use filemap_job::Record;
use filemap_report::{Letter, Part, is_plain};

use super::parts::{conditions, findings};
use super::{Comparison, Variants};
use crate::input;
use crate::setup;
use crate::spread;

/// Labels of the setup lines that describe the job. The others describe the machine.
const JOB: [&str; 5] = ["File", "Files", "Mapping", "Accesses", "Threads"];

/// Label of the setup line that a letter omits, since each variant names its own kernel.
const KERNEL: &str = "Kernel";

/// Maximum number of lines of a job file that are quoted.
const MAX_QUOTED_LINES: usize = 40;

/// A job file named by the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// Its path in the command.
    pub path: String,
    /// Its text, or the reason why it cannot be quoted.
    pub text: Result<String, String>,
}

impl JobFile {
    /// Reads the job file at `path`.
    pub fn read(path: &str) -> JobFile {
        let text = match std::fs::metadata(path) {
            // A pipe has been consumed already; reading it again would block.
            Ok(data) if data.is_file() => input::read("job file", path, input::MAX_JOB_BYTES),
            _ => return JobFile { path: path.to_string(), text: Err("it is no file".to_string()) },
        };
        JobFile { path: path.to_string(), text: text.map_err(|error| error.to_string()) }
    }
}

impl Comparison {
    /// The letter. Each variant is compared with the first one of its engine: one job has a single
    /// table of figures, several jobs have a table for each figure. `command` repeats the
    /// comparison; `job_files` are the files that it names.
    pub fn letter(&self, command: String, job_files: &[JobFile]) -> Letter {
        let jobs: Vec<Variants> =
            self.jobs().map(|cells| Variants::from_cells(self, cells)).collect();
        let records: Vec<&Record> = jobs.iter().flat_map(|job| &job.records).collect();
        let mut parts = match jobs.as_slice() {
            [only] => self.on_one(only),
            several => matrix::parts(self, several),
        };
        parts.extend(trees::parts(&records));
        let figures: Vec<_> = jobs.iter().flat_map(|job| job.figures().figures).collect();
        parts.extend(counters::parts(&jobs, &figures));
        let mut last = machine::facts(&records);
        last.push(("Scope".to_string(), self.footer.limits().to_string()));
        parts.push(Part::Facts(last));
        parts.extend(job_files.iter().flat_map(quoted_file));
        Letter { parts, command }
    }

    /// The sections about a single job.
    fn on_one(&self, variants: &Variants) -> Vec<Part> {
        let (job, settings) = facts(variants);
        let job = job.iter().map(|(label, text)| format!("{}: {text}", label.to_lowercase()));
        let job = job.collect::<Vec<_>>().join("; ");
        let mut facts =
            vec![("Job".to_string(), job), ("Runs".to_string(), runs_text(&variants.records[0]))];
        facts.extend(settings);
        let mut parts =
            vec![variants.heading(), Part::Facts(facts), Part::Comparison(variants.figures())];
        parts.extend(by_seed::parts(&[(String::new(), variants)]));
        parts.extend(findings(variants, &self.warnings));
        parts.extend(conditions(variants).into_iter().map(Part::Paragraph));
        parts
    }
}

/// A label and its text.
type Fact = (String, String);

/// Facts about the job, and facts about the machine other than its kernel.
fn facts(variants: &Variants) -> (Vec<Fact>, Vec<Fact>) {
    let setup = match setup::records_setup(&variants.records) {
        Part::Facts(facts) => facts,
        _ => Vec::new(),
    };
    let setup = setup.into_iter().filter(|(label, _)| label != KERNEL);
    setup.partition(|(label, _)| JOB.contains(&label.as_str()))
}

/// The number of runs behind each figure, as text.
fn runs_text(first: &Record) -> String {
    let seeds = spread::seeds(first);
    let below = "medians, with the least and the most where they differ";
    match (seeds, first.runs.len()) {
        (_, 0 | 1) => "one of each variant".to_string(),
        (1, runs) => format!("{runs} of each variant; {below}"),
        (seeds, _) => format!("{seeds} seeds of each variant; {below}"),
    }
}

/// Quotes a job file, or states why it is omitted.
fn quoted_file(file: &JobFile) -> Vec<Part> {
    let JobFile { path, text } = file;
    let not_quoted = |reason: &str| {
        vec![Part::Paragraph(format!("{path} is not shown here ({reason}); attach it."))]
    };
    match text.as_deref().map(without_indent) {
        Err(reason) => not_quoted(reason),
        Ok(text) if text.lines().count() > MAX_QUOTED_LINES => {
            not_quoted(&format!("it has {} lines", text.lines().count()))
        }
        Ok(text) if !is_plain(&text) => not_quoted("it is not plain ASCII in 75 columns"),
        Ok(text) => vec![Part::Paragraph(format!("{path} is:")), Part::Preformatted(text)],
    }
}

/// Removes common indentation and trailing blanks, which copying from a terminal adds.
fn without_indent(text: &str) -> String {
    let lines = || text.lines().map(str::trim_end);
    let blanks = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let indent = lines().filter(|line| !line.is_empty()).map(blanks).min().unwrap_or(0);
    let lines: Vec<&str> = lines().map(|line| line.get(indent..).unwrap_or_default()).collect();
    lines.join("\n").trim_matches('\n').to_string()
}
