//! Times of a machine that is emulated say nothing of a real one.

use filemap_job::Record;
use serde_json::Value;

/// Whether `record` is of a machine whose times say nothing.
pub(crate) fn is_emulated(record: &Record) -> bool {
    let emulator = record.environment.get("emulator").and_then(Value::as_str);
    emulator.is_some_and(|name| name.ends_with("tcg"))
}

/// Whether `record` has such times.
pub(crate) fn has_emulated_times(record: &Record) -> bool {
    is_emulated(record) && record.runs.iter().any(|run| run.elapsed_ns.is_some())
}
