//! One run of a program that is compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::trial::Ran;

/// How a program was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// As it is.
    #[default]
    Plain,
    /// With its file mappings governed.
    Governed,
}

/// One run of a program, and of all that it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// How it was run.
    pub variant: Variant,
    /// Bytes that were read from disks.
    pub bytes_read: u64,
    /// What else it came to.
    #[serde(flatten)]
    pub ran: Ran,
}
