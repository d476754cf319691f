//! When a kernel summed up the statistics of the memory cgroup that a run was in: at which of its
//! accesses. What reclaim evicts depends on it, and it depends on time.

use serde_json::{Map, Value, json};

/// Where the environment of a record says it.
pub const KEY: &str = "accesses_begun_at_flushes";

/// Notes in `environment` how many accesses each of `runs` had begun at each flush.
pub fn note(environment: &mut Map<String, Value>, runs: &[Vec<u64>]) {
    environment.insert(KEY.into(), json!(runs));
}

/// What is noted in `environment`, if anything.
pub fn noted(environment: &Map<String, Value>) -> Option<Vec<Vec<u64>>> {
    let runs: Vec<Vec<u64>> = serde_json::from_value(environment.get(KEY)?.clone()).ok()?;
    (!runs.is_empty()).then_some(runs)
}
