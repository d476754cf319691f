//! What `--json` of a search prints.

use filemap_job::JobSpec;
use filemap_job::record::SCHEMA;
use serde::Serialize;

use super::{Case, Cost, Study};
use crate::footer::Footer;

#[derive(Serialize, schemars::JsonSchema)]
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
    /// Jobs drawn that are none, or cannot run.
    left_out: u64,
    /// Jobs drawn that are the same in both variants.
    alike: u64,
    /// What was found, the largest ratio first.
    groups: Vec<JsonGroup<'a>>,
    /// What else is to be said of it, a sentence each.
    notes: &'a [String],
}

#[derive(Serialize, schemars::JsonSchema)]
struct JsonGroup<'a> {
    /// By what they differ: the first decision that is another, or the wait of the threads of a
    /// thrash that changes most.
    mechanism: &'a str,
    /// How many such jobs were found.
    jobs: u64,
    cases: Vec<JsonCase<'a>>,
}

#[derive(Serialize, schemars::JsonSchema)]
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
    /// The command that repeats it; JOB.toml stands for a file of the job.
    command: &'a str,
}

impl<'a> JsonCase<'a> {
    fn of((name, case): (&'static str, &'a Case)) -> Self {
        JsonCase {
            case: name,
            accesses: case.accesses,
            first: case.first,
            second: case.second,
            job: &case.spec,
            command: &case.command,
        }
    }
}

/// The JSON of `study`.
pub(super) fn text(study: &Study, footer: &Footer) -> String {
    let groups = study.groups.iter().map(|group| JsonGroup {
        mechanism: &group.mechanism,
        jobs: group.jobs,
        cases: group.cases().map(JsonCase::of).into(),
    });
    let json = Json {
        schema: SCHEMA,
        footer,
        variants: &study.variants,
        goal: study.goal.to_string(),
        seed: study.seed,
        tried: study.tried,
        left_out: study.left_out,
        alike: study.alike,
        groups: groups.collect(),
        notes: &study.notes,
    };
    serde_json::to_string(&json).expect("it has keys that are texts")
}
