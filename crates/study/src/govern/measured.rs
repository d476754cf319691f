//! One run of a program that is compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Its exit code; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Bytes that were read from disks.
    pub bytes_read: u64,
    /// Faults that waited for a disk.
    pub major_faults: u64,
    /// From its start to its end.
    pub elapsed_ns: u64,
    /// User and system time.
    pub cpu_ns: u64,
    /// Bytes of the governed files that were in the page cache before.
    pub cached_bytes: u64,
    /// What tells one output on stdout from another: a digest of it.
    pub stdout: String,
    /// The same of stderr, without the lines that filemap itself writes there.
    pub stderr: String,
}
