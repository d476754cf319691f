//! What every report says of itself: its scope, how to repeat it, and where it ran.

use filemap_job::{EngineKind, Record};
use serde::Serialize;
use serde_json::{Map, Value};

/// The end of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Footer {
    /// By which rules, and what they leave out.
    pub scope: String,
    /// The command that repeats the report.
    pub command: String,
    /// Where it ran.
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

    /// What ran, in a few words; all of the environment is in JSON.
    pub fn engine(&self) -> String {
        let several = || self.environment.values().filter_map(Value::as_object);
        let engines: Vec<String> = match several().all(|map| map.contains_key(VERSION)) {
            true if several().next().is_some() => several().map(engine).collect(),
            _ => vec![engine(&self.environment)],
        };
        let version = std::iter::once(&self.environment).chain(several());
        let version = version.filter_map(|map| map.get(VERSION)?.as_str()).next();
        format!("{}; filemap {}", engines.join(" and "), version.unwrap_or("of unknown version"))
    }
}

/// The key of the version of filemap in an environment.
const VERSION: &str = "filemap";

/// What ran where an environment is `environment`.
fn engine(environment: &Map<String, Value>) -> String {
    let text = |key: &str| environment.get(key).and_then(Value::as_str);
    let Some(release) = text("kernel") else { return "the model".to_string() };
    let on = [text("filesystem"), text("device")].into_iter().flatten().collect::<Vec<_>>();
    match on.is_empty() {
        true => format!("Linux {release}"),
        false => format!("Linux {release} on {}", on.join(", ")),
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
