//! What was timed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Counted, FolioOps, FolioOpsSpec, Operation};
use crate::record::SCHEMA;

/// All repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FolioOpsRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What was asked for; it repeats the same.
    pub benchmark: FolioOpsSpec,
    /// What did it: `model` or `kernel`.
    pub engine: String,
    /// Where it was measured.
    #[schemars(with = "crate::schema::Environment")]
    pub environment: Map<String, Value>,
    /// Every repeat, in order.
    pub runs: Vec<FolioOpsRun>,
    /// What was counted of owners, where nothing was timed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub counted: Vec<Counted>,
    /// What a reader of it should know, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

impl FolioOpsRecord {
    /// The record of these repeats.
    pub fn new(job: &FolioOps, environment: Map<String, Value>, runs: Vec<FolioOpsRun>) -> Self {
        FolioOpsRecord {
            schema: SCHEMA,
            benchmark: job.to_spec(),
            engine: job.engine.to_string(),
            environment,
            runs,
            counted: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// One repeat: every folio size, operation and configuration once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FolioOpsRun {
    /// L: how long one locked read-modify-write took in this repeat, in nanoseconds: the median of
    /// what was measured in it.
    pub locked_ns: Option<f64>,
    /// What was timed, in order.
    pub cells: Vec<FolioCell>,
    /// Threads that map and unmap one folio at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contended: Vec<Contended>,
}

/// One operation over all pages, in folios of one size, with one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FolioCell {
    /// Size of each folio in bytes.
    pub folio_bytes: u64,
    /// What was done.
    pub operation: Operation,
    /// How it is counted who maps a folio: one of
    /// [`CONFIGURATIONS`](crate::folio_ops::CONFIGURATIONS), or `kernel`.
    pub counters: String,
    /// Time of a page, in nanoseconds.
    pub ns_per_page: f64,
    /// Write faults that copied their page.
    pub copied: Option<u64>,
    /// Write faults that reused their page.
    pub reused: Option<u64>,
    /// L as it was measured beside this, in nanoseconds; `None` where it was not.
    pub locked_ns: Option<f64>,
}

/// Threads that each map and unmap all pages of the same folio, again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Contended {
    /// Size of the folio in bytes.
    pub folio_bytes: u64,
    /// How it is counted who maps it.
    pub counters: String,
    /// Times in a second that each thread mapped or unmapped it.
    pub batches_per_second: Vec<f64>,
    /// How many of these a thread does between two looks at the clock.
    pub wait_batches: u64,
    /// The longest time that so many of them took, in nanoseconds.
    pub longest_wait_ns: Option<u64>,
}
