//! Kinds of records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a record is of: the command that wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// One job.
    #[default]
    Run,
    /// Variants of jobs.
    Compare,
    /// Causes of what a job read.
    Explain,
    /// Settings that help a program.
    Advise,
    /// Jobs that two variants differ in.
    Search,
    /// Decisions of a kernel beside those of the model.
    Conform,
    /// Published tables beside the model's.
    Published,
    /// Operations over folios.
    FolioOps,
    /// A program that was governed.
    Govern,
    /// A program with the governor and without.
    GovernCompare,
    /// Costs of a machine.
    Calibrate,
    /// What a machine allows.
    Doctor,
}
