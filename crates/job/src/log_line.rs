//! Decision log lines: one JSON object per decision.

use std::fmt;

use filemap_core::decision::Decision;
use schemars::{JsonSchema, Schema};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::schema;
use crate::trace_kinds::ShownKinds;

/// A line of the model's decision log: a decision and the access that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
pub struct LogLine {
    /// Number of the access, from 0, counted over all phases of the job.
    pub access: u64,
    /// Index of the thread that made the decision.
    #[serde(default)]
    pub thread: usize,
    /// Its time, in nanoseconds from the start of the run.
    #[serde(default)]
    pub at_ns: u64,
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
}

/// Decisions that tracepoints show. They do not show the access.
const TRACED: [&str; 10] = [
    "entered",
    "readahead",
    "base-pages",
    "no-readahead",
    "added",
    "map-pages",
    "lookup",
    "served",
    "evicted",
    "file",
];

/// Keys that tracepoints do not show, except in the readahead state.
const UNTRACED_KEYS: [&str; 7] =
    ["mmap_miss", "marked", "mapped", "credit", "tried", "major", "tries"];

/// A decision of a kernel, with the keys that its tracepoints show.
#[derive(Clone, Debug, PartialEq)]
pub struct TracedLine(Vec<(String, Value)>);

impl TracedLine {
    /// The line for `decision` on a kernel that shows the kinds in `seen`; `None` if no tracepoint
    /// shows it.
    pub fn new(decision: Decision, seen: ShownKinds) -> Option<Self> {
        let text = serde_json::to_string(&decision).expect("it has text keys only");
        let TracedLine(mut keys) = serde_json::from_str(&text).expect("it was just written");
        let kind = keys.first()?.1.as_str().filter(|kind| TRACED.contains(kind))?.to_string();
        if kind != "entered" {
            keys.retain(|(key, _)| !UNTRACED_KEYS.contains(&key.as_str()));
        }
        if kind == "readahead" && !seen.has_readahead() {
            // Windows are only visible by the folios that they add.
            let size = keys.iter_mut().find(|(key, _)| key == "async_size");
            size.into_iter().for_each(|(_, value)| *value = Value::Null);
        }
        Some(TracedLine(keys))
    }

    /// JSON schema of the lines: the schema of all decisions without the keys that are not shown.
    pub fn schema() -> Schema {
        let mut schema = schema::serialized_schema::<Decision>();
        let kinds = schema.get_mut("oneOf").and_then(Value::as_array_mut);
        let kinds = kinds.expect("each kind of decision is one of several");
        let kind =
            |value: &Value| value["properties"]["decision"]["const"].as_str().map(str::to_string);
        kinds.retain(|variant| kind(variant).is_some_and(|kind| TRACED.contains(&kind.as_str())));
        for variant in kinds {
            let kind = kind(variant);
            if kind.as_deref() == Some("entered") {
                continue;
            }
            if let Some(properties) = variant["properties"].as_object_mut() {
                properties.retain(|key, _| !UNTRACED_KEYS.contains(&key.as_str()));
            }
            if let Some(required) = variant["required"].as_array_mut() {
                required.retain(|key| !UNTRACED_KEYS.iter().any(|untold| key == untold));
            }
            if kind.as_deref() == Some("readahead") {
                variant["properties"]["async_size"] = json!({
                    "description": "Null on a kernel that shows windows only by what they add.",
                    "type": ["integer", "null"],
                    "minimum": 0,
                });
            }
        }
        schema
    }
}

impl Serialize for TracedLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Preserves the order of keys.
impl<'de> Deserialize<'de> for TracedLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Vec<(String, Value)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a line of a log")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut keys = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    keys.push(entry);
                }
                Ok(keys)
            }
        }
        deserializer.deserialize_map(Keys).map(TracedLine)
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::{Cause, Lock, ReadaheadSnapshot};
    use filemap_core::units::{FileId, Order, PageCount, PageIndex};

    use super::*;
    use crate::ShownKind;

    const WINDOW: Decision = Decision::Readahead {
        cause: Cause::ReadAround,
        index: PageIndex(40),
        order: Order(0),
        start: PageIndex(24),
        size: PageCount(32),
        async_size: PageCount(8),
        mmap_miss: 1,
    };

    #[test]
    fn lines() {
        let found = ReadaheadSnapshot {
            index: PageIndex(7),
            previous_end: Some(9),
            ..ReadaheadSnapshot::default()
        };
        for (decision, expected) in [
            (
                WINDOW,
                concat!(
                    r#"{"decision":"readahead","cause":"read-around","index":40,"order":0,"#,
                    r#""start":24,"size":32,"async_size":8,"mmap_miss":1}"#
                ),
            ),
            (
                Decision::Entered { cause: Cause::ReadStream, found },
                concat!(
                    r#"{"decision":"entered","cause":"read-stream","index":7,"req":0,"order":0,"#,
                    r#""size":0,"async_size":0,"mmap_miss":0,"previous_end":9}"#
                ),
            ),
            (Decision::Locked { lock: Lock::Mmap }, r#"{"decision":"locked","lock":"mmap"}"#),
            (Decision::File { file: FileId::new(2) }, r#"{"decision":"file","file":2}"#),
            (
                Decision::Added { start: PageIndex(0), order: Order(2), folios: 3, marked: None },
                r#"{"decision":"added","start":0,"order":2,"folios":3,"marked":null}"#,
            ),
            (
                Decision::NothingAbsent { index: PageIndex(5) },
                r#"{"decision":"nothing-absent","index":5}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&decision).unwrap(), expected);
            let line = LogLine { access: 7, thread: 1, at_ns: 9, decision };
            let numbered = serde_json::to_string(&line).unwrap();
            assert_eq!(
                numbered,
                expected.replacen('{', "{\"access\":7,\"thread\":1,\"at_ns\":9,", 1)
            );
            assert_eq!(serde_json::from_str::<LogLine>(&numbered).unwrap(), line);
        }
    }

    #[test]
    fn causes_and_locks_have_their_names_in_json() {
        for cause in [Cause::HugePage, Cause::SequentialForced, Cause::WillNeed, Cause::AsyncRead] {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
        }
        for lock in [Lock::Vma, Lock::Mmap] {
            assert_eq!(serde_json::to_value(lock).unwrap(), lock.name());
        }
    }

    #[test]
    fn traced_lines_have_only_tracepoint_keys() {
        let text = |decision, seen| {
            TracedLine::new(decision, seen).map(|line| serde_json::to_string(&line).unwrap())
        };
        let keys = r#""cause":"read-around","index":40,"order":0,"start":24,"size":32"#;
        let known = format!(r#"{{"decision":"readahead",{keys},"async_size":8}}"#);
        assert_eq!(text(WINDOW, ShownKinds::ALL), Some(known.clone()));
        let additions = ShownKinds::from_fn(|kind| kind == ShownKind::Added);
        let unknown = format!(r#"{{"decision":"readahead",{keys},"async_size":null}}"#);
        assert_eq!(text(WINDOW, additions), Some(unknown));
        assert_eq!(text(Decision::Locked { lock: Lock::Vma }, ShownKinds::ALL), None);
        let served = Decision::Served { index: PageIndex(5), major: false, tries: 1 };
        let expected = r#"{"decision":"served","index":5}"#.to_string();
        assert_eq!(text(served, ShownKinds::ALL), Some(expected));
        // Parsed like the others.
        let Ok(Decision::Readahead { size, mmap_miss, .. }) = serde_json::from_str(&known) else {
            panic!("a window");
        };
        assert_eq!((size, mmap_miss), (PageCount(32), 0));
    }
}
