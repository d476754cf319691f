//! What was timed, and where.

use std::collections::BTreeSet;

use filemap_job::FolioOpsRecord;
use serde_json::Value;

use crate::setup;
use filemap_report::Part;
use filemap_report::units::bytes;

/// The lines before the figures. The machine is a real one, whatever the engine was.
pub(super) fn facts(record: &FolioOpsRecord) -> Part {
    let environment = |key: &str| record.environment.get(key);
    let text = |key: &str| environment(key).and_then(Value::as_str).unwrap_or_default().to_string();
    let cores = environment("cores").and_then(Value::as_u64);
    let cores = cores.map_or_else(String::new, |cores| match cores {
        1 => "1 CPU".to_string(),
        cores => format!("{cores} CPUs"),
    });
    let memory = record.benchmark.size.as_ref().and_then(|size| size.bytes().ok());
    let memory = memory.map_or_else(String::new, |size| bytes(size as f64));
    // Not all that is asked for may be had.
    let cells = record.runs.iter().flat_map(|run| &run.cells);
    let sizes: BTreeSet<u64> = cells.map(|cell| cell.folio_bytes).collect();
    let release = text("host_kernel");
    let kernel = match release.is_empty() {
        true => String::new(),
        false => format!("Linux {release}, the running one"),
    };
    setup::facts(vec![
        ("Memory", vec![memory, "anonymous".to_string()]),
        ("Folios", sizes.into_iter().map(|size| bytes(size as f64)).collect()),
        ("Machine", vec![text("cpu"), cores]),
        ("Kernel", vec![kernel]),
    ])
}
