//! What to write for a change.

use serde::{Deserialize, Serialize};

/// What to write for a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Written {
    /// The change.
    pub change: String,
    pub lines: Vec<WrittenLine>,
}

/// What to write in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WrittenLine {
    /// A language, or a setting.
    pub place: String,
    pub text: String,
}
