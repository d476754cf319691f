//! What an engine returns.

use serde_json::{Map, Value};

use super::run::Run;
use crate::parts::EngineKind;

/// What came of the runs of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// What ran it.
    pub engine: EngineKind,
    /// Where and how.
    pub environment: Map<String, Value>,
    /// All of them, in order.
    pub runs: Vec<Run>,
}
