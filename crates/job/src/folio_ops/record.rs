//! The record of the benchmark.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{FolioOps, FolioOpsSpec, Operation};
use crate::record::{RecordKind, SCHEMA};

/// All repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FolioOpsRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What the record is of.
    pub kind: RecordKind,
    /// The options; they repeat the measurement.
    pub benchmark: FolioOpsSpec,
    /// The engine: `model` or `kernel`.
    pub engine: String,
    /// Where it was measured.
    #[schemars(with = "crate::schema::Environment")]
    pub environment: Map<String, Value>,
    /// Every repeat, in order.
    pub runs: Vec<FolioOpsRun>,
    /// Counts about owners, if nothing was timed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub counted: Vec<OwnerCount>,
    /// Warnings, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

impl FolioOpsRecord {
    /// The record of these repeats.
    pub fn new(job: &FolioOps, environment: Map<String, Value>, runs: Vec<FolioOpsRun>) -> Self {
        FolioOpsRecord {
            schema: SCHEMA,
            kind: RecordKind::FolioOps,
            benchmark: job.to_spec(),
            engine: job.engine.to_string(),
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
    /// L: the time of one locked read-modify-write, in nanoseconds: the median of this repeat's.
    pub locked_ns: Option<f64>,
    /// The samples, in order.
    pub cells: Vec<FolioOpsSample>,
    /// Threads that map and unmap one folio at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contended: Vec<ContendedFolio>,
}

/// One operation over all pages, in folios of one size, with one counting scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FolioOpsSample {
    /// Size of each folio in bytes.
    pub folio_bytes: u64,
    /// The operation.
    pub operation: Operation,
    /// The counting scheme: one of [`SCHEMES`](crate::folio_ops::SCHEMES), or `kernel`.
    pub counters: String,
    /// Time of a page, in nanoseconds.
    pub ns_per_page: f64,
    /// Write faults that copied their page.
    pub copied: Option<u64>,
    /// Write faults that reused their page.
    pub reused: Option<u64>,
    /// L as measured together with it, in nanoseconds; `None` if it was not.
    pub locked_ns: Option<f64>,
}

/// Threads that each map and unmap all pages of the same folio repeatedly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ContendedFolio {
    /// Size of the folio in bytes.
    pub folio_bytes: u64,
    /// The counting scheme.
    pub counters: String,
    /// Maps and unmaps of each thread per second.
    pub batches_per_second: Vec<f64>,
    /// Batches between two reads of the clock.
    pub wait_batches: u64,
    /// Longest time of that many batches, in nanoseconds.
    pub longest_wait_ns: Option<u64>,
}

/// One count about owners, of one counting scheme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnerCount {
    /// The quantity.
    pub about: OwnerQuantity,
    /// The case.
    pub case: String,
    /// The counting scheme.
    pub counters: String,
    /// The count.
    pub count: u64,
    /// The total that it is a part of, if it is one.
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
    /// Orders in which mms unmap a folio, after which the last one is not known to own it.
    LastOwnerLost,
    /// Maximum number of mappings for which sums in 126 bits are exact.
    ExactMappings,
    /// Read-modify-writes of a batch.
    ReadModifyWrites,
    /// Pages of a prefork server's heap that write faults copied.
    PreforkCopies,
}
