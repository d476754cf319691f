//! What every report says of itself: its scope, how to repeat it, and where it ran.

use filemap_job::{EngineKind, Record};
use serde::Serialize;
use serde_json::{Map, Value};

/// The end of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Footer {
    /// By which rules, and what they leave out.
    pub scope: String,
    /// The command that repeats the report.
    pub command: String,
    /// Where it ran.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Environments"))]
    pub environment: Map<String, Value>,
}

impl Footer {
    /// The footer of a report on `records`, which `command` repeats.
    pub fn new(records: &[Record], command: String) -> Self {
        let mut scopes: Vec<String> = records.iter().map(scope).collect();
        scopes.dedup();
        Footer {
            scope: scopes.join("; "),
            command,
            environment: match records {
                [first, rest @ ..] if rest.iter().all(|r| r.environment == first.environment) => {
                    first.environment.clone()
                }
                _ => per_engine(records),
            },
        }
    }

    /// The environment in one line.
    pub fn environment_text(&self) -> String {
        let mut words = Vec::new();
        for (key, value) in self.environment.iter().filter(|(key, _)| *key != "scope") {
            push_words(key, value, &mut words);
        }
        words.join(", ")
    }
}

/// By which rules `record` came about; an engine on a real kernel says itself which that is.
fn scope(record: &Record) -> String {
    let own = record.environment.get("scope").and_then(Value::as_str);
    let rules = (record.engine == EngineKind::Model.name()).then(|| {
        let kernel = record.job.kernel.as_deref().unwrap_or("an unknown version");
        format!("rules of Linux {kernel}")
    });
    rules.as_deref().into_iter().chain(own).collect::<Vec<_>>().join(", ")
}

/// The environments under the names of the engines that they belong to.
fn per_engine(records: &[Record]) -> Map<String, Value> {
    let of = |record: &Record| (record.engine.clone(), Value::Object(record.environment.clone()));
    records.iter().map(of).collect()
}

fn push_words(key: &str, value: &Value, words: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (inner, value) in map.iter().filter(|(key, _)| *key != "scope") {
                push_words(&format!("{key}.{inner}"), value, words);
            }
        }
        Value::String(text) => words.push(format!("{key} {text}")),
        Value::Null => {}
        other => words.push(format!("{key} {other}")),
    }
}
