//! The result that an engine returns.

use serde_json::{Map, Value};

use super::run::Run;
use crate::parts::EngineKind;

/// The result of all runs of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRuns {
    /// The engine that ran it.
    pub engine: EngineKind,
    /// The environment of the runs.
    pub environment: Map<String, Value>,
    /// All runs, in order.
    pub runs: Vec<Run>,
}
