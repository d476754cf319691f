//! The forms of what is put together key by key, for the JSON schemas.

use std::collections::BTreeMap;

use filemap_job::JobSpec;
use filemap_job::schema::Environment;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::explain::{Moves, Point};

/// Where a report's figures come from: one environment, or one for each engine.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it only describes what is written")]
pub(crate) enum Environments {
    One(Environment),
    PerEngine(BTreeMap<String, Environment>),
}

/// Pages by what they were read for.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CauseEntry {
    cause: String,
    pages: u64,
    bytes: u64,
    /// Of these pages, those that had been in before.
    again: u64,
}

/// Pages by what brought them in.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BroughtEntry {
    by: String,
    calls: u64,
    pages: u64,
    accessed: u64,
}

/// Pages that one mapping or open file of a program brought in.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AddedEntry {
    by: String,
    calls: u64,
    pages: u64,
}

/// The course of `mmap_miss`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MissCounter {
    /// Whether the log shows each change.
    complete: bool,
    /// Null where no tracepoint shows it.
    last: Option<u16>,
    /// Null where no tracepoint shows it.
    max: Option<u16>,
    moves: Option<Moves>,
    misses: u64,
    misses_above_threshold: u64,
    retries: u64,
    first_above_threshold: Option<u64>,
    rises_above_threshold: u64,
    course: Vec<Point>,
}

/// Settings that were tried in the model.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Remedies {
    /// The job as it is.
    now: RemedyFigures,
    tried: Vec<Remedy>,
}

/// A setting that was tried.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Remedy {
    /// As a variant of `compare`.
    setting: String,
    /// From 1 for the best; null where it does not help.
    rank: Option<u64>,
    figures: RemedyFigures,
}

/// What a job costs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemedyFigures {
    data_pages_read: Option<u64>,
    bytes_read: Option<u64>,
    major_faults: Option<u64>,
    elapsed_ns: Option<u64>,
}

/// A cell of a published table, or one of the model beside it. Which keys it has follows its
/// series.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PublishedCell {
    /// `mmap-miss`, `vma-bound`, `exec-order`, `vma-retry` or `mm-owner`.
    series: String,
    /// The published figure in `unit`; null where none was published.
    published: Option<f64>,
    /// What came out here.
    figures: BTreeMap<String, Value>,
    /// Of the figure against the published one, in `error_unit`.
    error: Option<f64>,
    /// Whether it holds; null where nothing is judged.
    ok: Option<bool>,
    /// `ok`, `fail`, `misses` (a time that decides nothing), `fitted`, `model only`,
    /// `needs more seeds`, `not compared` or `measured here`.
    verdict: String,
    #[serde(flatten)]
    more: PublishedMore,
}

/// Keys of a published cell that not every series has.
#[derive(Serialize, JsonSchema)]
struct PublishedMore {
    #[serde(skip_serializing_if = "Option::is_none")]
    file_gib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ram_gib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_ahead_kb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    folio_kib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_elapsed_s: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_rerun: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_ms: Option<BTreeMap<String, f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    touched_gib: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    touched_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed: Option<BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    below_mib: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JobSpec>,
}
