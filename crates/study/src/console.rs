//! Kernel warnings from guest consoles, in the environment of records.

use filemap_kernel::engine::CONSOLE_KEY;
use filemap_kernel::image::Incident;
use serde_json::{Map, Value};

use crate::error::Error;

/// Records `incidents` in `environment`, with the name of their pattern or job if there are
/// several.
pub(crate) fn add_incidents(
    environment: &mut Map<String, Value>,
    incidents: &[Incident],
    unit: &str,
) {
    let named = incidents.iter().map(|incident| {
        let mut entry = incident.to_json();
        if !unit.is_empty() {
            entry["pattern"] = unit.into();
        }
        entry
    });
    add(environment, named.collect());
}

/// Adds the console warnings recorded in `other`.
pub(crate) fn add_noted(environment: &mut Map<String, Value>, other: &Map<String, Value>) {
    add(environment, recorded(other).cloned().collect());
}

fn add(environment: &mut Map<String, Value>, entries: Vec<Value>) {
    if entries.is_empty() {
        return;
    }
    let all = environment.entry(CONSOLE_KEY).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(all) = all {
        all.extend(entries);
    }
}

/// One line for each console warning recorded in `environment` or in an environment inside it.
pub(crate) fn lines(environment: &Map<String, Value>) -> Vec<String> {
    let several = environment.values().filter_map(Value::as_object).flat_map(recorded);
    let line = |entry: &Value| {
        let line = entry["line"].as_str().unwrap_or_default();
        entry["pattern"].as_str().map_or(line.to_string(), |pattern| format!("{pattern}: {line}"))
    };
    recorded(environment).chain(several).map(line).collect()
}

fn recorded(environment: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    environment.get(CONSOLE_KEY).and_then(Value::as_array).into_iter().flatten()
}

/// Fails if `environment` records a kernel warning: its figures are not to be trusted.
///
/// # Errors
/// The first warning.
pub fn check(environment: &Map<String, Value>) -> Result<(), Error> {
    let lines = lines(environment);
    match lines.split_first() {
        None => Ok(()),
        Some((first, others)) => {
            Err(Error::KernelWarned { first: first.clone(), others: others.len() })
        }
    }
}

#[cfg(test)]
mod tests {
    use filemap_kernel::image::IncidentKind;

    use super::*;

    fn incident(line: &str) -> Incident {
        let lines = vec![line.to_string()];
        Incident { kind: IncidentKind::Warning, job: None, lines }
    }

    #[test]
    fn any_noted_failure_fails() {
        let mut one = Map::new();
        assert!(check(&one).is_ok());
        add_incidents(&mut one, &[], "first");
        assert!(one.is_empty());
        add_incidents(&mut one, &[incident("WARNING: a")], "first");
        let mut other = Map::new();
        add_incidents(&mut other, &[incident("WARNING: b")], "");
        add_noted(&mut one, &other);
        assert_eq!(lines(&one), ["first: WARNING: a", "WARNING: b"]);
        let both = Map::from_iter([("kernel 2".to_string(), Value::Object(one))]);
        let error = check(&both).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        let text = error.to_string();
        assert!(text.starts_with("the kernel warned 2 times, first: first: WARNING: a;"), "{text}");
    }
}
