//! The footer of every report: its scope, the command that repeats it, and where it ran.

use std::collections::BTreeMap;

use filemap_core::rules::{Family, Kernel};
use filemap_job::schema::Environment;
use filemap_job::{EngineKind, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::console;

/// Scope, command and environment of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Footer {
    /// The rules that were applied, and what they do not model.
    pub scope: String,
    /// The command that repeats the report.
    pub command: String,
    /// Environment of the run, or one for each engine.
    #[schemars(with = "Environments")]
    pub environment: Map<String, Value>,
}

/// One environment, or one for each engine.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it only describes what is written")]
enum Environments {
    One(Environment),
    PerEngine(BTreeMap<String, Environment>),
}

/// Source of a set of figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The name of the engine.
    pub engine: String,
    /// Kernel whose rules the model applied; `None` for a real kernel.
    pub kernel: Option<String>,
    /// Architecture of the job, if given.
    pub arch: Option<String>,
    /// Environment reported by the engine.
    pub environment: Map<String, Value>,
}

impl Origin {
    /// Origin of the figures of `record`.
    pub fn from_record(record: &Record) -> Self {
        Origin {
            engine: record.engine.clone(),
            kernel: record.job.kernel.clone(),
            arch: record.job.arch.clone(),
            environment: record.environment.clone(),
        }
    }
}

impl Footer {
    /// The footer of a report on `records`, which `command` repeats.
    pub fn new(records: &[Record], command: String) -> Self {
        Footer::from_origins(&records.iter().map(Origin::from_record).collect::<Vec<_>>(), command)
    }

    /// Like [`Footer::new`], and the name of each record's environment where these differ.
    pub(crate) fn with_names<'a>(
        records: impl Iterator<Item = &'a Record>,
        command: String,
    ) -> (Self, Vec<Option<String>>) {
        let origins: Vec<Origin> = records.map(Origin::from_record).collect();
        let footer = Footer::from_origins(&origins, command);
        let names = if is_one(&origins) { Vec::new() } else { per_engine(&origins).1 };
        (footer, names.into_iter().map(Some).collect())
    }

    /// The environment called `name`, or the only one.
    pub(crate) fn environment_named(&self, name: &str) -> &Map<String, Value> {
        let own = self.environment.get(name).and_then(Value::as_object);
        own.unwrap_or(&self.environment)
    }

    /// The footer of a report on figures from `origins`, which `command` repeats.
    pub fn from_origins(origins: &[Origin], command: String) -> Self {
        Footer {
            scope: scope(origins),
            command,
            environment: match origins {
                [first, ..] if is_one(origins) => first.environment.clone(),
                _ => per_engine(origins).0,
            },
        }
    }

    /// The footer as rendered by reports.
    pub fn footer(&self) -> filemap_report::Footer {
        let facts = [("Scope", self.limits().to_string()), ("Engine", self.engine())];
        let warned = console::lines(&self.environment).into_iter().map(|line| ("Warned", line));
        let facts = facts.into_iter().chain(warned);
        filemap_report::Footer {
            facts: facts.map(|(label, text)| (label.to_string(), text)).collect(),
            command: self.command.clone(),
            origin: self.origin(),
            environment: self.environment.clone(),
        }
    }

    /// Version and date.
    fn origin(&self) -> String {
        let several = self.environment.values().filter_map(Value::as_object);
        let mut all = [&self.environment].into_iter().chain(several);
        let own = all.find(|map| map.get(VERSION).is_some_and(Value::is_string));
        let text = |key: &str| own.and_then(|map| map.get(key)?.as_str()).unwrap_or("unknown");
        format!("filemap {}, {}", text(VERSION), text("date"))
    }

    /// The scope without the rules, which `Footer::engine` names.
    pub fn limits(&self) -> &str {
        self.rules_and_limits().map_or(&self.scope, |(_, limits)| limits)
    }

    /// The rules of the model and what they do not model, if the scope is the model's.
    fn rules_and_limits(&self) -> Option<(&str, &str)> {
        self.scope.split_once(", ").filter(|(rules, _)| rules.starts_with(RULES))
    }

    /// Engine and kernel in a few words; JSON has the whole environment.
    fn engine(&self) -> String {
        let several = || self.environment.values().filter_map(Value::as_object);
        let of_engines =
            several().next().is_some() && several().all(|map| map.contains_key(VERSION));
        let engines: Vec<&Map<String, Value>> =
            if of_engines { several().collect() } else { vec![&self.environment] };
        let name = |environment: &&Map<String, Value>| match release(environment) {
            Some(release) => format!("Linux {release}"),
            None => self
                .rules_and_limits()
                .map_or_else(|| "model".to_string(), |(rules, _)| format!("model by {rules}")),
        };
        let mut names: Vec<String> = engines.iter().map(name).collect();
        names.dedup();
        let version = engines[0].get(VERSION).and_then(Value::as_str).unwrap_or("unknown");
        format!("{}; filemap {version}", names.join(", "))
    }
}

/// Key of filemap's version in an environment.
const VERSION: &str = "filemap";

/// Prefix of a scope that names the model's rules.
const RULES: &str = "rules of Linux";

/// Release of the kernel, if one ran.
fn release(environment: &Map<String, Value>) -> Option<&str> {
    environment.get("kernel").and_then(Value::as_str)
}

/// The rules that produced `record`, and what they do not model.
pub fn scope_text(record: &Record) -> String {
    scope(&[Origin::from_record(record)])
}

/// The rules that produced the figures of `origins`, and what they do not model. A real kernel
/// names itself.
fn scope(origins: &[Origin]) -> String {
    let uncompared = uncompared_text(origins);
    let mut kernels: Vec<&str> = Vec::new();
    let mut scopes: Vec<&str> = Vec::new();
    for origin in origins {
        if origin.engine == EngineKind::Model.name()
            && let Some(kernel) = origin.kernel.as_deref().filter(|own| !kernels.contains(own))
        {
            kernels.push(kernel);
        }
        let own = origin.environment.get("scope").and_then(Value::as_str).unwrap_or_default();
        for part in own.split("; ").filter(|part| !part.is_empty()) {
            if !scopes.contains(&part) {
                scopes.push(part);
            }
        }
    }
    if !uncompared.is_empty() {
        scopes.push(&uncompared);
    }
    let rules = if kernels.is_empty() {
        String::new()
    } else {
        format!("{RULES} {}, ", kernels.join(" and "))
    };
    format!("{rules}{}", scopes.join("; "))
}

/// Kernels and architectures of the model's `origins` whose rules were derived from sources alone
/// and never compared with a running kernel.
fn uncompared_text(origins: &[Origin]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for origin in origins.iter().filter(|origin| origin.engine == EngineKind::Model.name()) {
        let kernel =
            Kernel::ALL.into_iter().find(|own| origin.kernel.as_deref() == Some(own.name()));
        let kernel = kernel.filter(|kernel| !kernel.is_compared()).map(Kernel::name);
        let arch = origin.arch.as_deref().filter(|arch| *arch != Family::X86_64.name());
        names.extend(kernel.into_iter().chain(arch));
    }
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return String::new();
    }
    format!("no running kernel was compared with the rules of {}", names.join(" and "))
}

/// Whether all `origins` share one environment.
fn is_one(origins: &[Origin]) -> bool {
    origins.windows(2).all(|two| two[0].environment == two[1].environment)
}

/// Environments by engine name, and the name of each. Further environments of an engine, such as
/// with another machine profile, are numbered.
fn per_engine(origins: &[Origin]) -> (Map<String, Value>, Vec<String>) {
    let (mut map, mut names) = (Map::new(), Vec::new());
    for origin in origins {
        let own = Value::Object(origin.environment.clone());
        let number = |number: u32| match number {
            1 => origin.engine.clone(),
            more => format!("{} {more}", origin.engine),
        };
        let free = (1..).map(number).find(|name| map.get(name).is_none_or(|known| *known == own));
        let name = free.expect("numbers do not end");
        map.insert(name.clone(), own);
        names.push(name);
    }
    (map, names)
}

#[cfg(test)]
mod tests {
    use filemap_job::JobFlags;
    use serde_json::json;

    use super::*;

    fn record(engine: &str, kernel: &str, environment: Value) -> Record {
        let toml = format!("workload = 'first'\nfile_size = '1m'\nkernel = '{kernel}'");
        let job = JobFlags::from_toml(&toml).unwrap().validate(None).unwrap();
        let Value::Object(environment) = environment else { panic!("an object") };
        Record::new(&job, engine, environment, Vec::new())
    }

    #[test]
    fn rules_are_named_with_their_engine() {
        let model = |kernel| record("model", kernel, json!({ "filemap": "1", "scope": "no swap" }));
        let footer = Footer::new(&[model("6.18")], String::new());
        assert_eq!(footer.scope, "rules of Linux 6.18, no swap");
        assert_eq!(footer.limits(), "no swap");
        assert_eq!(footer.engine(), "model by rules of Linux 6.18; filemap 1");
        let footer = Footer::new(&[model("6.18"), model("6.12"), model("6.18")], String::new());
        assert_eq!(footer.scope, "rules of Linux 6.18 and 6.12, no swap");
    }

    #[test]
    fn rules_that_no_kernel_was_compared_with_are_named() {
        let model = |kernel| record("model", kernel, json!({ "filemap": "1", "scope": "no swap" }));
        let footer = Footer::new(&[model("7.3"), model("mm-0b2777a511b7")], String::new());
        assert_eq!(
            footer.limits(),
            "no swap; no running kernel was compared with the rules of mm-0b2777a511b7"
        );
        let kernel = record("kernel", "6.18", json!({ "filemap": "1", "kernel": "6.18.3" }));
        assert_eq!(Footer::new(&[kernel], String::new()).limits(), "");
    }

    #[test]
    fn each_engine_is_named_once() {
        let own = json!({ "filemap": "1", "scope": "no swap", "profile": { "device": {} } });
        let model = record("model", "6.18", own);
        let host = json!({ "filemap": "1", "scope": "one process", "kernel": "6.18.3-x" });
        let kernel = record("kernel", "6.18", host);
        let footer = Footer::new(&[model.clone(), kernel.clone()], String::new());
        assert_eq!(footer.scope, "rules of Linux 6.18, no swap; one process");
        let threads = json!({ "filemap": "1", "scope": "no swap; base pages" });
        let footer_of_both =
            Footer::new(&[model.clone(), record("model", "6.18", threads)], String::new());
        assert_eq!(footer_of_both.scope, "rules of Linux 6.18, no swap; base pages");
        let engine = footer.engine();
        assert!(engine.contains("model by rules of Linux 6.18"), "{engine}");
        assert!(engine.contains("Linux 6.18.3-x") && engine.ends_with("; filemap 1"), "{engine}");
        let other = json!({ "filemap": "1", "scope": "one process", "kernel": "6.18.9-y" });
        let several =
            Footer::new(&[kernel.clone(), record("kernel", "6.18", other)], String::new());
        assert_eq!(several.environment["kernel 2"]["kernel"], "6.18.9-y");
        assert_eq!(several.engine(), "Linux 6.18.3-x, Linux 6.18.9-y; filemap 1");
        let alone = Footer::new(&[kernel], String::new());
        assert_eq!(
            (alone.limits(), alone.engine().as_str()),
            ("one process", "Linux 6.18.3-x; filemap 1")
        );
    }
}
