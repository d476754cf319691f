//! A phase as written.

use serde::{Deserialize, Serialize};

use crate::size::SizeText;

/// One `[[phase]]` of a job as written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PhaseSpec {
    /// Access pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Number of accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<u64>,
    /// Number of accesses as a fraction of the mapping: of its pages, of reads of its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Path of a list of page indexes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses_file: Option<String>,
    /// Seed of random patterns; the job's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// `seed` as text, which no reader of JSON rounds: where it is given, it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_text: Option<String>,
    /// Size of a read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bs: Option<SizeText>,
    /// Text of `accesses_file`, which the caller reads.
    #[serde(skip)]
    pub accesses_text: Option<String>,
}
