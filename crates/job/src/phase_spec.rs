//! A `[[phase]]` table of a job with a single file.

use serde::{Deserialize, Serialize};

use crate::size::SizeText;

/// A `[[phase]]` table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PhaseSpec {
    /// Access pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Number of accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<u64>,
    /// Number of accesses as a fraction of the mapping's pages, or for reads of its bytes in blocks
    /// of `bs`. Default: 0.01.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Path of a file with page indexes, one per line, instead of a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses_file: Option<String>,
    /// Seed of random patterns. Default: the job's seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// `seed` in decimal digits, for JSON readers that round large numbers. Takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_text: Option<String>,
    /// Block size of each read. Default: `4k`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bs: Option<SizeText>,
    /// Contents of `accesses_file`, read by the caller.
    #[serde(skip)]
    pub accesses_text: Option<String>,
}
