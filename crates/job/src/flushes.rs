//! At which accesses of a run the kernel flushed the statistics of its memory cgroup. Reclaim
//! decisions depend on them, and the flushes depend on time.

use serde_json::{Map, Value, json};

/// Key in the environment of a record.
pub const KEY: &str = "accesses_begun_at_flushes";

/// Stores the number of accesses that had begun at each flush, for each run.
pub fn note(environment: &mut Map<String, Value>, runs: &[Vec<u64>]) {
    environment.insert(KEY.into(), json!(runs));
}

/// Reads what [`note`] stored, if anything.
pub fn read_flushes(environment: &Map<String, Value>) -> Option<Vec<Vec<u64>>> {
    let runs: Vec<Vec<u64>> = serde_json::from_value(environment.get(KEY)?.clone()).ok()?;
    (!runs.is_empty()).then_some(runs)
}
