//! Files of measurements in `data`.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Contents of such a file besides `what`, `kernel` and `date`, which are for its readers.
pub fn measurements<T: DeserializeOwned>(text: &str) -> T {
    let mut file: Map<String, Value> = serde_json::from_str(text).expect("an object");
    for key in ["what", "kernel", "date"] {
        assert!(file.remove(key).is_some_and(|value| value.is_string()), "{key} is a text");
    }
    serde_json::from_value(Value::Object(file)).expect("these keys and no others")
}
