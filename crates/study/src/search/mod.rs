//! The report on jobs that tell two variants apart, or that the second makes worse.

mod goal;
mod json;

use filemap_job::JobSpec;

use crate::footer::Footer;
use filemap_report::units;
use filemap_report::{Head, Table};
use filemap_report::{Part, Report};

pub use goal::{Cost, Goal, Metric};
pub(crate) use json::Json;

/// Mechanisms that a report shows; JSON and CSV have all.
const MOST_SHOWN: usize = 10;

/// A job that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The job without its variants.
    pub spec: JobSpec,
    /// How many accesses it makes.
    pub accesses: u64,
    /// What it costs in the first variant.
    pub first: Cost,
    /// What it costs in the second variant.
    pub second: Cost,
    /// The command that repeats it in the model, in both variants.
    pub command: String,
    /// The job file that this command reads, where none was written.
    pub job_file: Option<String>,
}

/// Jobs of one mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// By what they differ, in words.
    pub mechanism: String,
    /// How many such jobs were found.
    pub jobs: u64,
    /// The smallest job that still shows it.
    pub smallest: Case,
    /// The simplest job with the largest ratio.
    pub by_ratio: Case,
    /// The simplest job with the largest difference.
    pub by_cost: Case,
}

impl Group {
    /// Its jobs, each with what it is in JSON and in names of files.
    pub fn cases(&self) -> [(&'static str, &Case); 3] {
        [
            ("smallest", &self.smallest),
            ("largest-ratio", &self.by_ratio),
            ("largest-difference", &self.by_cost),
        ]
    }
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The two variants.
    pub variants: [String; 2],
    /// What was looked for.
    pub goal: Goal,
    /// The seed of the jobs.
    pub seed: u64,
    /// Jobs that were run in both variants.
    pub tried: u64,
    /// Jobs drawn that are none, such as a split of a mapping that is too small.
    pub left_out: u64,
    /// Jobs drawn that are the same in both variants.
    pub alike: u64,
    /// What was found, the largest ratio first.
    pub groups: Vec<Group>,
    /// What else is to be said of it, a sentence each.
    pub notes: Vec<String>,
}

impl Study {
    fn heading(&self) -> String {
        let [first, second] = &self.variants;
        match self.goal {
            Goal::Worse(metric) => {
                format!("Jobs that {second} makes worse than {first}: {}", metric.words())
            }
            Goal::Over(metric) => {
                format!("Jobs where {second} gains most over {first}: {}", metric.words())
            }
            Goal::Differ => format!("Jobs that tell {second} from {first}"),
        }
    }

    fn change(&self, case: &Case) -> String {
        let metric = self.goal.metric();
        format!("{} -> {}", metric.shown(&case.first), metric.shown(&case.second))
    }
}

/// The report on `study`, which the command in `footer` repeats.
pub fn report(study: &Study, footer: Footer) -> Report {
    let mut parts = vec![Part::Heading(study.heading()), Part::Paragraph(found(study))];
    if !study.groups.is_empty() {
        parts.push(Part::Table(overview(study)));
    }
    for (number, group) in study.groups.iter().take(MOST_SHOWN).enumerate() {
        parts.push(Part::Paragraph(format!("{}. {}:", number + 1, group.mechanism)));
        let mut shown: Vec<&Case> = Vec::new();
        for (name, case) in group.cases().into_iter().take(2) {
            if shown.iter().any(|other| other.spec == case.spec) {
                continue;
            }
            parts.push(Part::Paragraph(format!(
                "{}: {} in {} {}.",
                name.replace('-', " "),
                study.change(case),
                units::number(case.accesses as f64),
                if case.accesses == 1 { "access" } else { "accesses" },
            )));
            parts.push(Part::Preformatted(repeated(case)));
            shown.push(case);
        }
    }
    parts.extend(after(study).into_iter().map(Part::Paragraph));
    let json = json::text(study, &footer);
    Report { parts, rows: rows(study), footer: footer.footer(), json }
}

/// How many jobs were found, and of how many.
fn found(study: &Study) -> String {
    let of = |jobs: u64| units::number(jobs as f64);
    let found: u64 = study.groups.iter().map(|group| group.jobs).sum();
    let tried = format!("{} that ran in both variants", counted(study.tried));
    let first = match study.groups.len() {
        0 => format!(
            "None was found among {tried}. That proves nothing: give --jobs more of them, or \
             another --seed."
        ),
        kinds => format!(
            "{} of {tried}, by {kinds} mechanism{}. A mechanism is the first decision that differs.",
            of(found),
            if kinds == 1 { "" } else { "s" },
        ),
    };
    let drawn = counted(study.tried + study.left_out + study.alike);
    let reasons =
        [(study.alike, "that are the same in both variants"), (study.left_out, "that cannot run")];
    let some = reasons.into_iter().filter(|(jobs, _)| *jobs > 0);
    let some: Vec<String> = some.map(|(jobs, which)| format!("{} {which}", of(jobs))).collect();
    match some.is_empty() {
        true => first,
        false => format!("{first} Of {drawn} drawn, {} are not counted.", some.join(" and ")),
    }
}

/// `1 job`, `2 jobs`.
fn counted(jobs: u64) -> String {
    format!("{} job{}", units::number(jobs as f64), if jobs == 1 { "" } else { "s" })
}

/// What a reader may do next.
fn after(study: &Study) -> Vec<String> {
    let mut notes = Vec::new();
    if !study.groups.is_empty() {
        notes.push(
            "The largest difference of each mechanism, and mechanisms beyond the tenth, are in \
             --json and --out. To repeat a case on two booted kernels as well, add to its command: \
             --on model,kernel --image FIRST --image SECOND. Give --kernel to the search where \
             theirs is another. No kernel limits the page cache alone, so a case with cache_limit \
             is of the model only."
                .to_string(),
        );
    }
    notes.extend(study.notes.iter().cloned());
    notes
}

/// What repeats `case`: a command, and the job file for it.
fn repeated(case: &Case) -> String {
    match &case.job_file {
        None => case.command.clone(),
        Some(file) => format!("{}\n\n# JOB.toml\n{}", case.command, file.trim_end()),
    }
}

fn overview(study: &Study) -> Table {
    let rows = study.groups.iter().take(MOST_SHOWN).enumerate().map(|(number, group)| {
        let mut row = vec![format!("{}.", number + 1), units::number(group.jobs as f64)];
        row.extend(group.cases().map(|(_, case)| study.change(case)));
        row
    });
    let columns = ["", "jobs", "smallest job", "largest ratio", "largest difference"];
    Table { title: String::new(), columns: columns.map(Head::right).to_vec(), rows: rows.collect() }
}

/// A row for each case.
fn rows(study: &Study) -> Table {
    let names = [
        "mechanism",
        "jobs",
        "case",
        "accesses",
        "bytes_first",
        "bytes_second",
        "majors_first",
        "majors_second",
        "elapsed_ns_first",
        "elapsed_ns_second",
    ];
    let mut rows = Vec::new();
    for group in &study.groups {
        for (name, case) in group.cases() {
            let mut row = vec![group.mechanism.clone(), group.jobs.to_string(), name.to_string()];
            row.push(case.accesses.to_string());
            for metric in Metric::ALL {
                row.extend([case.first, case.second].map(|cost| cost.of(metric).to_string()));
            }
            rows.push(row);
        }
    }
    Table { title: String::new(), columns: names.map(Head::left).to_vec(), rows }
}
