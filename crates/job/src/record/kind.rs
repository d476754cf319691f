//! Kinds of records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The command that wrote the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// `filemap run`: one job.
    #[default]
    Run,
    /// `filemap compare`: variants of jobs.
    Compare,
    /// `filemap explain`: causes of a job's reads.
    Explain,
    /// `filemap advise`: settings that help a program.
    Advise,
    /// `filemap search`: jobs in which two variants differ.
    Search,
    /// `filemap conform`: decisions of a kernel and the model.
    Conform,
    /// `filemap published`: published tables and the model's.
    Published,
    /// `filemap folio-ops`: operations over folios.
    FolioOps,
    /// `filemap govern`: a governed program.
    Govern,
    /// `filemap govern --compare`: a program with and without the governor.
    GovernCompare,
    /// `filemap calibrate`: costs of a machine.
    Calibrate,
    /// `filemap doctor`: capabilities of a machine.
    Doctor,
}
