//! Runs on mock engines.

use filemap_job::JobFlags;
use serde_json::Value;

use super::*;
use crate::engine::mock::Mock;
use crate::job_input::{JobInput, JobSource};

fn json(mock: &Mock, keys: &str, seeds: Option<u64>) -> Result<Value, Error> {
    let text = format!("workload = 'random'\nfile_size = '1m'\naccesses = 4\nseed = 7\n{keys}");
    let flags = JobFlags::from_toml(&text).unwrap();
    let input = JobInput::new(None, JobSource::default(), flags)?;
    let asked = RunOptions { seeds, apply: false, history: false };
    let record = run(input.plan()?, mock, asked)?;
    Ok(serde_json::from_str(&record.report(false).record_json).unwrap())
}

#[test]
fn a_record_is_reported_as_the_engine_made_it() {
    let mock = Mock::default();
    let report = json(&mock, "on = 'kernel'\nruns = 3", Some(2)).unwrap();
    assert_eq!(mock.turns().len(), 6);
    let read = |run: &Value| run["counters"]["data_pages_read"].as_u64().unwrap();
    let runs: Vec<u64> = report["runs"].as_array().unwrap().iter().map(read).collect();
    assert_eq!(runs, [1, 2, 3, 4, 5, 6]);
    assert_eq!(report["engine"], "kernel");
    let command = report["command"].as_str().unwrap();
    assert!(command.contains("--runs 3") && command.ends_with("--seeds 2"), "{command}");
}

#[test]
fn engine_errors_are_passed_on() {
    let mock = Mock::failing("host: run normal 7");
    let error = json(&mock, "on = 'kernel'\nruns = 3", None).unwrap_err();
    assert_eq!(error.one_line(), "host: run normal 7 failed");
    assert_eq!((error.exit_code(), mock.turns().len()), (4, 1));
}
