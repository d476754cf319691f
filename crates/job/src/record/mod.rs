//! Records of jobs.

mod by_table;
mod cached;
mod counters;
mod job_runs;
mod kind;
mod run;
mod summary;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::cached::Cached;
pub use self::counters::{Counters, PerCounter};
pub use self::job_runs::JobRuns;
pub use self::kind::RecordKind;
pub use self::run::{FileRun, MappingRun, PhaseRun, Run, ThreadRun};
pub use self::summary::{CachedSummary, FileSummary, Summary};
use crate::job::Job;
use crate::program::JobSpec;

/// Version of the record format.
pub const SCHEMA: u32 = 2;

/// The record of one job on one engine: every run, and their summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Record {
    /// Version of the record format: [`SCHEMA`].
    pub schema: u32,
    /// Kind of the record.
    pub kind: RecordKind,
    /// The job.
    pub job: JobSpec,
    /// Engine that ran the job: `model` or `kernel`.
    pub engine: String,
    /// The environment of the runs.
    #[schemars(with = "crate::schema::Environment")]
    pub environment: Map<String, Value>,
    /// Every run, in order.
    pub runs: Vec<Run>,
    /// Counters, times and cached pages, summarized over all runs.
    pub summary: Summary,
    /// Warnings about the result, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

impl Record {
    /// The record of `job`, given the result of its runs.
    pub fn from_job_runs(job: &Job, ran: JobRuns) -> Self {
        let runs = ran.runs.into_iter().map(|run| run.into_recorded(job)).collect();
        Record::new(job, ran.engine.name(), ran.environment, runs)
    }

    /// The record of `runs`, with their summary.
    pub fn new(job: &Job, engine: &str, environment: Map<String, Value>, runs: Vec<Run>) -> Self {
        Record {
            schema: SCHEMA,
            kind: RecordKind::Run,
            job: job.spec.clone(),
            engine: engine.to_string(),
            environment,
            summary: Summary::from_runs(&runs),
            runs,
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::JobFlags;

    #[test]
    fn record_matches_json_contract() {
        let spec = JobFlags::from_toml("workload = \"first\"\naccesses = 3\nfile_size = \"1m\"");
        let job = spec.unwrap().validate(None).unwrap();
        let counters = |pages| Counters { data_pages_read: Some(pages), ..Counters::default() };
        let cached = Cached { inside: Some(4), ..Cached::default() };
        let elapsed_ns = Some(7);
        let run = |pages| Run {
            seed: 5,
            counters: counters(pages),
            cached,
            elapsed_ns,
            ..Run::default()
        };
        let record = Record::new(&job, "model", Map::new(), vec![run(10), run(13)]);
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(json["schema"], 2);
        assert_eq!(json["kind"], "run");
        assert_eq!(json["job"]["thread"][0]["phase"][0]["workload"], "first");
        assert_eq!(json["runs"][0]["counters"]["data_pages_read"], 10);
        assert_eq!(json["runs"][0]["counters"]["evicted_pages"], Value::Null);
        assert_eq!(
            (&json["runs"][0]["seed"], &json["runs"][0]["seed_text"]),
            (&5.into(), &"5".into())
        );
        assert_eq!(json["runs"][0]["elapsed_ns"], 7);
        assert_eq!(json["runs"][0]["cached"]["before"], Value::Null);
        assert_eq!(json["summary"]["elapsed_ns"]["median"], 7);
        assert_eq!(json["summary"]["cached"]["inside"]["max"], 4);
        assert_eq!(json["summary"]["cached"]["after"], Value::Null);
        let summary = serde_json::json!({ "median": 11.5, "mad": 1.5, "min": 10, "max": 13 });
        assert_eq!(json["summary"]["data_pages_read"], summary);
        assert_eq!(json["summary"]["evicted_pages"], Value::Null);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
        let at = |name: &str| text.find(&format!("\"{name}\"")).unwrap();
        assert!(Counters::NAMES.is_sorted_by_key(|name| at(name)), "order of the contract");
    }

    #[test]
    fn a_seed_that_a_reader_rounded_is_read_from_its_text() {
        let seed = 88172645463325252;
        let text = serde_json::to_string(&Run { seed, ..Run::default() }).unwrap();
        assert!(text.starts_with(r#"{"seed":88172645463325252,"seed_text":"88172645463325252","#));
        let rounded = text.replacen("88172645463325252", "88172645463325250", 1);
        assert_eq!(serde_json::from_str::<Run>(&rounded).unwrap().seed, seed);
    }
}
