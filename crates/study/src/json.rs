//! Records as JSON.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// `object` as indented JSON.
///
/// # Panics
/// When `object` cannot be serialized, which never happens for records.
pub(crate) fn to_json(object: &impl Serialize) -> String {
    serde_json::to_string_pretty(object).expect("a record has text keys only")
}

/// Serializes `value` on one line: in long lists of numbers, indentation would dominate the size.
pub(crate) fn in_one_line<T: Serialize, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = serde_json::to_string(value).map_err(S::Error::custom)?;
    RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
}

/// Serializes a whole number without a decimal point.
pub(crate) fn serialize_shortest<S: Serializer>(
    value: &f64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = (1u64 << 53) as f64;
    if value.fract() == 0.0 && (0.0..EXACT).contains(value) {
        serializer.serialize_u64(*value as u64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// A value as a CSV field; empty if unknown.
pub(crate) fn raw(value: Option<&serde_json::Value>) -> String {
    match value {
        None | Some(serde_json::Value::Null) => String::new(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) => match value.as_f64().filter(|_| value.is_f64()) {
            Some(number) => number.to_string(),
            None => value.to_string(),
        },
    }
}
