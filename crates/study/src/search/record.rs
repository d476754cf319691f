//! Record and report of a search.

use filemap_job::record::RecordKind;
use filemap_job::{Job, JobSpec, Run};
use serde::{Deserialize, Serialize};

use super::goal::{Goal, RunCost};
use super::rounds::JOB_FILE;
use crate::footer::Footer;
use filemap_report::units::number;
use filemap_report::{Column, Head, Part, Report, Table, csv_column, csv_table};

/// Maximum number of mechanisms in a report; JSON and CSV have all.
const MAX_SHOWN_MECHANISMS: usize = 10;

/// Maximum size of a job file in a report; JSON and `--output` have all.
const MAX_SHOWN_JOB_BYTES: usize = 4000;

/// Record of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct SearchRecord {
    pub schema: u32,
    /// What the record is of.
    pub kind: RecordKind,
    #[serde(flatten)]
    pub footer: Footer,
    /// The two variants.
    pub variants: [String; 2],
    /// The goal, as on the command line.
    pub goal: Goal,
    /// The seed of the jobs.
    pub seed: u64,
    /// Number of jobs that ran in both variants.
    pub tried: u64,
    /// Number of drawn jobs that are invalid or cannot run.
    pub left_out: u64,
    /// Number of drawn jobs that are equal in both variants.
    pub alike: u64,
    /// Findings by mechanism, the largest ratio first.
    pub groups: Vec<MechanismGroup>,
    /// Notes, one sentence each.
    pub notes: Vec<String>,
}

/// Jobs of one mechanism.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MechanismGroup {
    /// The first decision that differs, or that only times differ.
    pub mechanism: String,
    /// Number of jobs found.
    pub jobs: u64,
    /// One for each of [`CASES`].
    pub cases: [SearchCase; 3],
}

/// The smallest job of a mechanism, and the simplest ones with the largest ratio and difference.
pub(super) const CASES: [&str; 3] = ["smallest", "largest-ratio", "largest-difference"];

/// A finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SearchCase {
    /// `smallest`, `largest-ratio` or `largest-difference`.
    pub case: String,
    /// Number of accesses of all phases.
    pub accesses: u64,
    /// Its cost in the first variant.
    pub first: RunCost,
    /// Its cost in the second variant.
    pub second: RunCost,
    /// The job, with the tables of a job file.
    pub job: JobSpec,
    /// Command that repeats it; JOB.toml stands for a file with the job.
    pub command: String,
}

impl SearchCase {
    /// The job of `spec`, which is `job`, with its `runs` in both variants.
    pub(super) fn new(spec: JobSpec, job: &Job, runs: [&Run; 2]) -> Self {
        let [first, second] = runs.map(RunCost::from_run);
        let accesses = job.accesses().map(|phase| phase.accesses).sum();
        SearchCase { accesses, first, second, job: spec, ..SearchCase::default() }
    }

    /// How far it meets `goal`: ratio and difference.
    pub(super) fn gain(&self, goal: Goal) -> (f64, u64) {
        goal.gain(&self.first, &self.second).unwrap_or((0.0, 0))
    }
}

/// A case and its group.
type CaseRow<'a> = (&'a MechanismGroup, &'a SearchCase);

/// Columns of a case.
const fn columns<'a>() -> [Column<CaseRow<'a>>; 10] {
    [
        csv_column("mechanism", |row| row.0.mechanism.as_str().into()),
        csv_column("jobs", |row| row.0.jobs.into()),
        csv_column("case", |row| row.1.case.as_str().into()),
        csv_column("accesses", |row| row.1.accesses.into()),
        csv_column("bytes_first", |row| row.1.first.bytes_read.into()),
        csv_column("bytes_second", |row| row.1.second.bytes_read.into()),
        csv_column("majors_first", |row| row.1.first.major_faults.into()),
        csv_column("majors_second", |row| row.1.second.major_faults.into()),
        csv_column("elapsed_ns_first", |row| row.1.first.elapsed_ns.into()),
        csv_column("elapsed_ns_second", |row| row.1.second.elapsed_ns.into()),
    ]
}

impl SearchRecord {
    /// Number of drawn jobs.
    pub fn drawn_jobs(&self) -> u64 {
        self.tried + self.left_out + self.alike
    }

    /// The report.
    pub fn report(&self) -> Report {
        let mut parts = vec![Part::Heading(self.heading()), Part::Lead(self.jobs_found_line())];
        if !self.groups.is_empty() {
            parts.push(Part::Table(self.overview()));
        }
        for (number, group) in self.groups.iter().take(MAX_SHOWN_MECHANISMS).enumerate() {
            parts.push(Part::Paragraph(format!("{}. {}:", number + 1, group.mechanism)));
            let [smallest, by_ratio, _] = &group.cases;
            parts.extend(self.case_parts(smallest));
            if by_ratio.job != smallest.job {
                parts.extend(self.case_parts(by_ratio));
            }
        }
        if !self.groups.is_empty() {
            parts.push(Part::Paragraph(NEXT_STEPS.to_string()));
        }
        parts.extend(self.notes.iter().cloned().map(Part::Paragraph));
        let rows = self.groups.iter();
        let rows: Vec<CaseRow> =
            rows.flat_map(|group| group.cases.iter().map(move |case| (group, case))).collect();
        let json = serde_json::to_string(self).expect("it has keys that are texts");
        Report {
            parts,
            rows: csv_table(&columns(), &rows),
            footer: self.footer.footer(),
            record_json: json,
        }
    }

    fn heading(&self) -> String {
        let [first, second] = &self.variants;
        match self.goal {
            Goal::Worse(metric) => {
                format!("Jobs that {second} makes worse than {first}: {}", metric.words())
            }
            Goal::Over(metric) => {
                format!("Jobs where {second} gains most over {first}: {}", metric.words())
            }
            Goal::Differ => format!("Jobs that distinguish {second} from {first}"),
        }
    }

    fn change(&self, case: &SearchCase) -> String {
        let metric = self.goal.metric();
        format!("{} -> {}", metric.format_cost(&case.first), metric.format_cost(&case.second))
    }

    /// A case with its command and job file.
    fn case_parts(&self, case: &SearchCase) -> [Part; 2] {
        let text = format!(
            "{}: {} in {}.",
            case.case.replace('-', " "),
            self.change(case),
            count_text(case.accesses, "access", "accesses"),
        );
        let has_file = case.command.split(' ').any(|word| word == JOB_FILE);
        let file = has_file.then(|| case.job.to_short_toml()).map(|file| match file.trim_end() {
            file if file.len() <= MAX_SHOWN_JOB_BYTES => format!("\n\n# {JOB_FILE}\n{file}"),
            _ => format!("\n\n# {JOB_FILE} is long: --output writes it to a directory"),
        });
        let repeated = format!("{}{}", case.command, file.unwrap_or_default());
        [Part::Paragraph(text), Part::Preformatted(repeated)]
    }

    /// Number of jobs found and tried.
    fn jobs_found_line(&self) -> String {
        let jobs = |number: u64| count_text(number, "job", "jobs");
        let tried = format!("{} that ran in both variants", jobs(self.tried));
        let first = match self.groups.len() {
            0 => format!(
                "None was found among {tried}. That proves nothing: give --jobs more of them, or \
                 another --seed."
            ),
            kinds => format!(
                "{} of {tried}, by {}. A mechanism is the first decision that differs.",
                number(self.groups.iter().map(|group| group.jobs).sum::<u64>() as f64),
                count_text(kinds as u64, "mechanism", "mechanisms"),
            ),
        };
        let reasons = [
            (self.alike, "that are the same in both variants"),
            (self.left_out, "that cannot run"),
        ];
        let some = reasons.into_iter().filter(|(jobs, _)| *jobs > 0);
        let some = some.map(|(jobs, which)| format!("{} {which}", number(jobs as f64)));
        let some = some.collect::<Vec<String>>().join(" and ");
        if some.is_empty() {
            return first;
        }
        let drawn = jobs(self.drawn_jobs());
        format!("{first} Of {drawn} drawn, {some} are not counted.")
    }

    fn overview(&self) -> Table {
        let rows = self.groups.iter().take(MAX_SHOWN_MECHANISMS).enumerate().map(|(at, group)| {
            let row = [format!("{}.", at + 1), number(group.jobs as f64)];
            row.into_iter().chain(group.cases.iter().map(|case| self.change(case))).collect()
        });
        let columns = ["", "jobs", "smallest job", "largest ratio", "largest difference"];
        let columns = columns.map(Head::number).to_vec();
        Table { title: String::new(), columns, rows: rows.collect() }
    }
}

/// `1 job`, `2 jobs`.
fn count_text(things: u64, one: &str, several: &str) -> String {
    format!("{} {}", number(things as f64), if things == 1 { one } else { several })
}

/// Suggested next steps.
const NEXT_STEPS: &str = "The largest difference of each mechanism, and mechanisms beyond the tenth, are in --json and \
    --output. To repeat a case on two booted kernels as well, add to its command: --on \
    model,kernel --image FIRST --image SECOND. Give --kernel to the search where theirs is \
    another. No kernel limits the page cache alone, so a case with cache_limit is of the model \
    only.";
