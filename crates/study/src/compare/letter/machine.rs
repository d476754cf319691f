//! The machine that the runs of a letter were made on.

use std::collections::BTreeSet;

use filemap_job::{EngineKind, Record};
use serde_json::Value;

use crate::compare::emulated::is_emulated;
use filemap_report::units::bytes;

/// Extracts the text for one label from a record.
type FactText = fn(&Record) -> Option<String>;

/// Digits to which the tool's own commit is abbreviated.
const REVISION_DIGITS: usize = 12;

/// Machine, system, disk and tool version of `records`.
pub(super) fn facts(records: &[&Record]) -> Vec<(String, String)> {
    let lines: [(&str, FactText); 4] =
        [("Machine", machine), ("System", system), ("Disk", disk), ("Tool", tool)];
    let fact = |(label, line): (&str, FactText)| {
        let mut seen = BTreeSet::new();
        let mut facts: Vec<String> = records.iter().copied().filter_map(line).collect();
        facts.retain(|line| seen.insert(line.clone()));
        (!facts.is_empty()).then(|| (label.to_string(), facts.join(" / ")))
    };
    lines.into_iter().filter_map(fact).collect()
}

/// The string under `key` in the environment of `record`.
pub(super) fn text<'a>(record: &'a Record, key: &str) -> Option<&'a str> {
    record.environment.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn joined(parts: [Option<String>; 4]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn number(record: &Record, key: &str) -> Option<u64> {
    record.environment.get(key).and_then(Value::as_u64)
}

fn is_model(record: &Record) -> bool {
    record.engine == EngineKind::Model.name()
}

fn machine(record: &Record) -> Option<String> {
    if is_model(record) {
        return Some("none: the model of filemap ran".to_string());
    }
    let cores = number(record, "cores").map(|cores| match cores {
        1 => "1 CPU".to_string(),
        cores => format!("{cores} CPUs"),
    });
    let ram = number(record, "ram_kib").map(|kib| format!("{} RAM", bytes(kib as f64 * 1024.0)));
    let emulated = if is_emulated(record) { " (emulated)" } else { "" };
    let guest = text(record, "emulator").map(|emulator| {
        let host = text(record, "host_cpu").map_or(String::new(), |cpu| format!(" on {cpu}"));
        format!("guest of {emulator}{emulated}{host}")
    });
    Some(joined([text(record, "cpu").map(String::from), cores, ram, guest]))
}

/// The kernel of `record`, and its settings that affect readahead and reclaim.
fn system(record: &Record) -> Option<String> {
    if is_model(record) {
        return None;
    }
    let release = text(record, "kernel").map(|release| format!("Linux {release}"));
    let thp = text(record, "thp").map(|thp| format!("THP {thp}"));
    let lru = text(record, "lru_gen").map(|lru| format!("multi-generational LRU {lru}"));
    Some(joined([release, thp, lru, None]))
}

fn disk(record: &Record) -> Option<String> {
    if is_model(record) {
        return None;
    }
    let read_ahead = number(record, "read_ahead_kb").map(|kib| format!("read_ahead_kb {kib}"));
    let mount = text(record, "mount").map(|options| format!("mounted {options}"));
    let own = |key: &str| text(record, key).map(String::from);
    let facts = joined([own("device"), own("filesystem"), mount, read_ahead]);
    (!facts.is_empty()).then_some(facts)
}

fn tool(record: &Record) -> Option<String> {
    let version = text(record, "filemap")?;
    let revision = text(record, "revision").map_or_else(String::new, |revision| {
        let digits: String = revision.chars().take(REVISION_DIGITS).collect();
        format!(", revision {digits}")
    });
    Some(format!("filemap {version}{revision}"))
}
