//! JSON schemas of job files and records.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde_json::{Map, Value};

use crate::flags::JobSpec;
use crate::size::SizeText;

/// The schema of a job file.
pub fn job() -> Schema {
    schema_for!(JobSpec)
}

/// The schema of what is written of a `T`: each key that is always there is required, and an
/// object that does not say otherwise has no other keys.
pub fn written<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(close));
    settings.into_generator().into_root_schema_for::<T>()
}

/// Allows an object no keys but its own. Where alternatives stand beside its keys, each of them
/// allows its own keys and these.
fn close(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let Some(Value::Object(properties)) = object.get("properties") else { return };
    let keys: Vec<String> = properties.keys().cloned().collect();
    let Some(Value::Array(alternatives)) = object.get_mut("oneOf") else {
        object.entry("additionalProperties").or_insert(false.into());
        return;
    };
    for alternative in alternatives.iter_mut().filter_map(Value::as_object_mut) {
        let own = alternative.entry("properties").or_insert_with(|| Map::new().into());
        if let Some(own) = own.as_object_mut() {
            for key in &keys {
                own.entry(key).or_insert(true.into());
            }
        }
        alternative.entry("additionalProperties").or_insert(false.into());
    }
}

/// Where something ran: what every record says, and what its engine adds.
#[derive(serde::Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct Environment {
    /// When the command began, in UTC (RFC 3339).
    date: String,
    /// Release of the kernel that the command ran on, whatever it ran.
    host_kernel: Option<String>,
    /// Version of this program.
    filemap: String,
    /// Its commit, with `-dirty` where files differed from it; null where it was built outside
    /// of a checkout.
    revision: Option<String>,
    /// What ran the job: `model`, `kernel`, or both.
    engine: String,
}

impl JsonSchema for SizeText {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size such as \"20g\", or a whole number of bytes.",
            "oneOf": [
                { "type": "string", "pattern": "^[0-9]" },
                { "type": "integer", "minimum": 0 },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::record::{Counters, Record};

    /// The keys of the object at `path`, references followed.
    fn keys(schema: &Schema, path: &[&str]) -> Vec<String> {
        let root = schema.as_value();
        let mut at = root;
        for key in path {
            at = resolved(root, &at["properties"][*key]);
        }
        at["properties"].as_object().unwrap().keys().cloned().collect()
    }

    /// What `at` stands for: of an array its items, of alternatives the first.
    fn resolved<'a>(root: &'a Value, mut at: &'a Value) -> &'a Value {
        loop {
            at = match (at["$ref"].as_str(), at["type"].as_str()) {
                (Some(name), _) => root.pointer(name.trim_start_matches('#')).unwrap(),
                (None, Some("array")) => &at["items"],
                (None, _) if at["anyOf"].is_array() => &at["anyOf"][0],
                _ => return at,
            };
        }
    }

    #[test]
    fn schemas_have_the_keys_of_the_contract() {
        let record = written::<Record>();
        for key in ["schema", "kind", "job", "engine", "environment", "runs", "summary"] {
            assert!(keys(&record, &[]).contains(&key.to_string()), "{key}");
        }
        for key in Counters::NAMES {
            assert!(keys(&record, &["runs", "counters"]).contains(&(*key).to_string()), "{key}");
            assert!(keys(&record, &["summary"]).contains(&(*key).to_string()), "{key}");
        }
        for key in ["elapsed_ns", "cached"] {
            assert!(keys(&record, &["summary"]).contains(&key.to_string()), "{key}");
        }
        for key in ["seed", "seed_text"] {
            assert!(keys(&record, &["runs"]).contains(&key.to_string()), "{key}");
            assert!(keys(&record, &["job"]).contains(&key.to_string()), "{key}");
        }
        for key in ["file", "open", "mapping", "thread"] {
            assert!(keys(&record, &["job"]).contains(&key.to_string()), "{key}");
        }
        assert!(keys(&job(), &["phase"]).contains(&"workload".to_string()));
        assert_eq!(job().as_value()["additionalProperties"], false);
    }
}
