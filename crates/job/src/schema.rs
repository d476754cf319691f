//! JSON schemas of job files and records.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};

use crate::record::Record;
use crate::size::SizeText;
use crate::spec::JobSpec;

/// The schema of a job: of a job file, and of `job` in records.
pub fn job() -> Schema {
    schema_for!(JobSpec)
}

/// The schema of a record, as `run --json` prints it.
pub fn record() -> Schema {
    schema_for!(Record)
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
    use crate::record::Counters;

    /// The keys of the object at `path`, references followed.
    fn keys(schema: &Schema, path: &[&str]) -> Vec<String> {
        let root = schema.as_value();
        let mut at = root;
        for key in path {
            at = resolved(root, &at["properties"][*key]);
        }
        at["properties"].as_object().unwrap().keys().cloned().collect()
    }

    fn resolved<'a>(root: &'a Value, mut at: &'a Value) -> &'a Value {
        if at["type"] == "array" {
            at = &at["items"];
        }
        match at["$ref"].as_str() {
            Some(name) => root.pointer(name.trim_start_matches('#')).unwrap(),
            None => at,
        }
    }

    #[test]
    fn schemas_have_the_keys_of_the_contract() {
        let record = record();
        for key in ["schema", "job", "engine", "environment", "runs", "summary"] {
            assert!(keys(&record, &[]).contains(&key.to_string()), "{key}");
        }
        for key in Counters::NAMES {
            assert!(keys(&record, &["runs", "counters"]).contains(&(*key).to_string()), "{key}");
            assert!(keys(&record, &["summary"]).contains(&(*key).to_string()), "{key}");
        }
        assert_eq!(keys(&record, &["job"]), keys(&job(), &[]));
        assert!(keys(&job(), &["phase"]).contains(&"workload".to_string()));
        assert_eq!(job().as_value()["additionalProperties"], false);
    }
}
