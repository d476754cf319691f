//! What was counted, and depends on no time.

use serde::{Deserialize, Serialize};

/// One count of one way to count who maps a folio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counted {
    /// What it is about.
    pub about: About,
    /// Of which case.
    pub case: String,
    /// The way to count.
    pub counters: String,
    /// How many.
    pub count: u64,
    /// Of how many, where these are a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

/// What a count is about.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema
)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// Orders in which mms leave a folio, after which the last is not known to be alone.
    LastOwnerLost,
    /// Mappings up to which sums in 126 bits are exact.
    ExactMappings,
    /// Read-modify-writes of a batch.
    ReadModifyWrites,
    /// Pages of a prefork server's heap that write faults copied.
    PreforkCopies,
}
