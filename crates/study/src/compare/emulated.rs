//! Recognizes records of emulated machines, whose times say nothing about real hardware.

use filemap_job::Record;
use serde_json::Value;

/// Whether `record` was made on an emulated machine.
pub(crate) fn is_emulated(record: &Record) -> bool {
    let emulator = record.environment.get("emulator").and_then(Value::as_str);
    emulator.is_some_and(|name| name.ends_with("tcg"))
}

/// Whether `record` contains times from an emulated machine.
pub(crate) fn has_emulated_times(record: &Record) -> bool {
    is_emulated(record) && record.runs.iter().any(|run| run.elapsed_ns.is_some())
}
