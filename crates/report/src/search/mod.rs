//! The report on jobs that tell two variants apart, or that the second makes worse.

use std::fmt;
use std::str::FromStr;

use filemap_job::{Job, JobSpec};
use serde::Serialize;

use crate::footer::Footer;
use crate::report::{Part, Report};
use crate::table::{Column, Table};
use crate::units;
use filemap_job::record::SCHEMA;

/// Mechanisms that a report shows; JSON and CSV have all.
const MOST_SHOWN: usize = 10;

/// What a search compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Bytes of the file that enter the page cache.
    Bytes,
    /// Major faults.
    Majors,
    /// Predicted time.
    Elapsed,
}

impl Metric {
    /// All of them.
    pub const ALL: [Metric; 3] = [Metric::Bytes, Metric::Majors, Metric::Elapsed];

    /// The name in flags and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Bytes => "bytes",
            Metric::Majors => "majors",
            Metric::Elapsed => "elapsed",
        }
    }

    /// The value of `cost`, as a reader reads it.
    fn shown(self, cost: &Cost) -> String {
        match self {
            Metric::Bytes => units::bytes(cost.bytes_read as f64),
            Metric::Majors => units::number(cost.major_faults as f64),
            Metric::Elapsed => units::time(cost.elapsed_ns as f64),
        }
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Metric::ALL.into_iter().find(|metric| metric.name() == text);
        let names = Metric::ALL.map(Metric::name).join(", ");
        known.ok_or(format!("give one of {names}"))
    }
}

/// What a search looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Jobs that the second variant makes worse.
    Worse(Metric),
    /// Jobs where it gains most.
    Over(Metric),
    /// Any difference.
    Differ,
}

impl Goal {
    /// The figures that jobs are ordered by.
    pub const fn metric(self) -> Metric {
        match self {
            Goal::Worse(metric) | Goal::Over(metric) => metric,
            Goal::Differ => Metric::Bytes,
        }
    }

    /// By how much the goal is met: the ratio, and the difference. What is 0 counts as 1 in the
    /// ratio. Nothing where it is not met.
    pub fn gain(self, first: &Cost, second: &Cost) -> Option<(f64, u64)> {
        let [one, two] = [first, second].map(|cost| cost.of(self.metric()));
        let (low, high) = match self {
            Goal::Worse(_) => (one, two),
            Goal::Over(_) => (two, one),
            Goal::Differ => (one.min(two), one.max(two)),
        };
        let is_met = high > low || self == Goal::Differ;
        is_met.then(|| (high.max(1) as f64 / low.max(1) as f64, high - low))
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Worse(metric) => write!(f, "--worse {}", metric.name()),
            Goal::Over(metric) => write!(f, "--over {}", metric.name()),
            Goal::Differ => f.write_str("--differ"),
        }
    }
}

/// What a run of a job costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Bytes of the file that enter the page cache.
    pub bytes_read: u64,
    /// Major faults.
    pub major_faults: u64,
    /// Predicted time in nanoseconds.
    pub elapsed_ns: u64,
}

impl Cost {
    /// One of its figures.
    pub const fn of(&self, metric: Metric) -> u64 {
        match metric {
            Metric::Bytes => self.bytes_read,
            Metric::Majors => self.major_faults,
            Metric::Elapsed => self.elapsed_ns,
        }
    }
}

/// A job that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The job without its variants, as it was drawn.
    pub spec: JobSpec,
    /// The same, made ready.
    pub job: Job,
    /// What it costs in the first variant.
    pub first: Cost,
    /// What it costs in the second variant.
    pub second: Cost,
}

impl Case {
    /// Accesses of all its phases.
    pub fn accesses(&self) -> u64 {
        self.job.phases.iter().map(|phase| phase.accesses).sum()
    }
}

/// Jobs of one mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Which decision differs first, in words.
    pub mechanism: String,
    /// How many such jobs were found.
    pub jobs: u64,
    /// The one with the largest ratio.
    pub by_ratio: Case,
    /// The one with the largest difference.
    pub by_cost: Case,
    /// The smallest job file that still shows it.
    pub smallest: Case,
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
    /// What was found, the largest ratio first.
    pub groups: Vec<Group>,
}

impl Study {
    fn heading(&self) -> String {
        let [first, second] = &self.variants;
        match self.goal {
            Goal::Worse(metric) => {
                format!("Jobs that {second} makes worse than {first}: {}", metric.name())
            }
            Goal::Over(metric) => {
                format!("Jobs where {second} gains most over {first}: {}", metric.name())
            }
            Goal::Differ => format!("Jobs that tell {second} from {first}"),
        }
    }

    fn change(&self, case: &Case) -> String {
        let metric = self.goal.metric();
        format!("{} -> {}", metric.shown(&case.first), metric.shown(&case.second))
    }

    /// What repeats `case` in the model: a command, or a job file for it.
    fn repeated(&self, case: &Case) -> String {
        let variants = format!("--variants {}", self.variants.join(","));
        if case.spec.phase.len() > 1 {
            return format!("# filemap compare JOB.toml {variants}\n{}", case.spec.to_toml());
        }
        let command = case.job.command().replacen("filemap run", "filemap compare", 1);
        format!("{command} {variants}")
    }
}

/// The report on `study`, which the command in `footer` repeats.
pub fn report(study: &Study, footer: Footer) -> Report {
    let mut parts = vec![Part::Heading(study.heading())];
    let found: u64 = study.groups.iter().map(|group| group.jobs).sum();
    parts.push(Part::Paragraph(match study.groups.len() {
        0 => format!(
            "None was found among {} jobs. That proves nothing; give --jobs more of them, or \
             another --seed.",
            units::number(study.tried as f64)
        ),
        kinds => format!(
            "{} of {} jobs, by {kinds} mechanism{}. A mechanism is the first decision that \
             differs.",
            units::number(found as f64),
            units::number(study.tried as f64),
            if kinds == 1 { "" } else { "s" },
        ),
    }));
    if !study.groups.is_empty() {
        parts.push(Part::Table(overview(study)));
    }
    for (number, group) in study.groups.iter().take(MOST_SHOWN).enumerate() {
        let case = &group.smallest;
        parts.push(Part::Paragraph(format!(
            "{}. {}: {} in {} accesses.",
            number + 1,
            group.mechanism,
            study.change(case),
            units::number(case.accesses() as f64)
        )));
        parts.push(Part::Preformatted(study.repeated(case)));
    }
    if !study.groups.is_empty() {
        parts.push(Part::Paragraph(
            "These are the smallest jobs. --json has all jobs, with those of the largest ratio and \
             the largest difference."
                .to_string(),
        ));
    }
    let json = json(study, &footer);
    Report { parts, rows: rows(study), footer, json }
}

fn overview(study: &Study) -> Table {
    let rows = study.groups.iter().take(MOST_SHOWN).enumerate().map(|(number, group)| {
        vec![
            format!("{}.", number + 1),
            units::number(group.jobs as f64),
            study.change(&group.smallest),
            study.change(&group.by_ratio),
            study.change(&group.by_cost),
        ]
    });
    let columns = ["", "jobs", "smallest job", "largest ratio", "largest difference"];
    Table {
        title: String::new(),
        columns: columns.map(Column::right).to_vec(),
        rows: rows.collect(),
    }
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
        for (name, case) in named(group) {
            let mut row = vec![group.mechanism.clone(), group.jobs.to_string(), name.to_string()];
            row.push(case.accesses().to_string());
            for metric in Metric::ALL {
                row.extend([case.first, case.second].map(|cost| cost.of(metric).to_string()));
            }
            rows.push(row);
        }
    }
    Table { title: String::new(), columns: names.map(Column::left).to_vec(), rows }
}

fn named(group: &Group) -> [(&'static str, &Case); 3] {
    [
        ("smallest", &group.smallest),
        ("largest-ratio", &group.by_ratio),
        ("largest-difference", &group.by_cost),
    ]
}

/// What `--json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    /// The two variants.
    variants: &'a [String; 2],
    /// What was looked for, as on the command line.
    goal: String,
    /// The seed of the jobs.
    seed: u64,
    /// Jobs that were run in both variants.
    tried: u64,
    /// Jobs drawn that are none.
    left_out: u64,
    /// What was found, the largest ratio first.
    groups: Vec<JsonGroup<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonGroup<'a> {
    /// Which decision differs first.
    mechanism: &'a str,
    /// How many such jobs were found.
    jobs: u64,
    cases: Vec<JsonCase<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonCase<'a> {
    /// `smallest`, `largest-ratio` or `largest-difference`.
    case: &'static str,
    /// Accesses of all phases.
    accesses: u64,
    /// What it costs in the first variant.
    first: Cost,
    /// What it costs in the second variant.
    second: Cost,
    /// The job, with the keys of a job file.
    job: &'a JobSpec,
}

impl<'a> JsonCase<'a> {
    fn of((name, case): (&'static str, &'a Case)) -> Self {
        JsonCase {
            case: name,
            accesses: case.accesses(),
            first: case.first,
            second: case.second,
            job: &case.spec,
        }
    }
}

fn json(study: &Study, footer: &Footer) -> String {
    let groups = study.groups.iter().map(|group| JsonGroup {
        mechanism: &group.mechanism,
        jobs: group.jobs,
        cases: named(group).map(JsonCase::of).into(),
    });
    let json = Json {
        schema: SCHEMA,
        footer,
        variants: &study.variants,
        goal: study.goal.to_string(),
        seed: study.seed,
        tried: study.tried,
        left_out: study.left_out,
        groups: groups.collect(),
    };
    serde_json::to_string(&json).expect("it has keys that are texts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_by_what_it_says() {
        let cost = |major_faults| Cost { major_faults, ..Cost::default() };
        let (one, many) = (cost(1), cost(4096));
        let gain = |goal: Goal| goal.gain(&one, &many);
        assert_eq!(gain(Goal::Worse(Metric::Majors)), Some((4096.0, 4095)));
        assert_eq!(gain(Goal::Over(Metric::Majors)), None);
        assert_eq!(gain(Goal::Worse(Metric::Bytes)), None);
        assert_eq!(gain(Goal::Differ), Some((1.0, 0)));
        let gain = Goal::Over(Metric::Majors).gain(&many, &cost(0));
        assert_eq!(gain, Some((4096.0, 4096)), "nothing counts as one");
    }
}
