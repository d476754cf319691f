//! JSON schemas of job files and records.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde_json::{Map, Value};

use crate::flags::JobFlags;
use crate::size::SizeText;

/// The JSON schema of job files.
pub fn job() -> Schema {
    schema_for!(JobFlags)
}

/// The JSON schema of serialized values of `T`: keys that are always written are required, and
/// objects have no additional keys unless they say so.
pub fn serialized_schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(close));
    settings.into_generator().into_root_schema_for::<T>()
}

/// Forbids additional keys in an object. With `oneOf`, each alternative allows its own keys and the
/// common ones.
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

/// The environment of a record: keys common to all records. Engines add theirs.
#[derive(serde::Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct Environment {
    /// Start time of the command, in UTC (RFC 3339).
    date: String,
    /// Release of the running kernel, which is not necessarily the kernel that ran the job.
    host_kernel: Option<String>,
    /// Version of filemap.
    filemap: String,
    /// Git commit of filemap, with `-dirty` if files were modified; null if built outside of a
    /// checkout.
    revision: Option<String>,
    /// Engine that ran the job: `model`, `kernel`, or both.
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

    /// The keys of the object at `path`, following references.
    fn keys(schema: &Schema, path: &[&str]) -> Vec<String> {
        let root = schema.as_value();
        let mut at = root;
        for key in path {
            at = resolved(root, &at["properties"][*key]);
        }
        at["properties"].as_object().unwrap().keys().cloned().collect()
    }

    /// Follows references, array items and the first of alternatives.
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
        let record = serialized_schema::<Record>();
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
