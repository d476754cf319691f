//! The record of the benchmark.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{FolioOps, FolioOpsSpec, Operation};
use crate::parts::EngineKind;
use crate::record::{RecordKind, SCHEMA};

/// The results of all repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FolioOpsRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Kind of the record.
    pub kind: RecordKind,
    /// The options, which repeat the measurement.
    pub benchmark: FolioOpsSpec,
    /// `model`: an mm implemented in this program, in real time.
    pub engine: String,
    /// The environment of the measurement.
    #[schemars(with = "crate::schema::Environment")]
    pub environment: Map<String, Value>,
    /// Every repeat, in order.
    pub runs: Vec<FolioOpsRun>,
    /// Owner counts, with `owners`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub counted: Vec<OwnerCount>,
    /// Warnings, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

impl FolioOpsRecord {
    /// The record of `runs`.
    pub fn new(job: &FolioOps, environment: Map<String, Value>, runs: Vec<FolioOpsRun>) -> Self {
        FolioOpsRecord {
            schema: SCHEMA,
            kind: RecordKind::FolioOps,
            benchmark: job.to_spec(),
            engine: EngineKind::Model.to_string(),
            environment,
            runs,
            counted: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// One repeat: every folio size, operation and scheme once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FolioOpsRun {
    /// Median time of a locked read-modify-write (L) in this repeat, in nanoseconds.
    pub locked_ns: Option<f64>,
    /// The samples, in order.
    pub cells: Vec<FolioOpsSample>,
}

/// One operation over all pages, in folios of one size, with one mapcount scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FolioOpsSample {
    /// Size of each folio in bytes.
    pub folio_bytes: u64,
    /// The operation.
    pub operation: Operation,
    /// Mapcount scheme: one of [`SCHEMES`](crate::folio_ops::SCHEMES).
    pub counters: String,
    /// Time per page, in nanoseconds.
    pub ns_per_page: f64,
    /// Write faults that copied their page.
    pub copied: Option<u64>,
    /// Write faults that reused their page.
    pub reused: Option<u64>,
    /// L measured along with the operation, in nanoseconds, if it was.
    pub locked_ns: Option<f64>,
}

/// One count of owners with one mapcount scheme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnerCount {
    /// The quantity.
    pub about: OwnerQuantity,
    /// The case that was counted.
    pub case: String,
    /// Mapcount scheme.
    pub counters: String,
    /// The count.
    pub count: u64,
    /// The total, if `count` is part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

/// What [`OwnerCount`] counts.
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
pub enum OwnerQuantity {
    /// Orders of unmapping a folio after which the last remaining owner is not recognized.
    LastOwnerLost,
    /// Maximum number of mappings for which sums in 126 bits are exact.
    ExactMappings,
    /// Read-modify-writes per batch.
    ReadModifyWrites,
    /// Pages of a prefork server's heap copied by write faults.
    PreforkCopies,
}
