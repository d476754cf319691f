//! The forms of what is put together key by key, for the JSON schemas.

use std::collections::BTreeMap;

use filemap_job::schema::Environment;
use schemars::JsonSchema;
use serde::Serialize;

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
