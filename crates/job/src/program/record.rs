//! What came out of a program.

use serde::Serialize;
use serde_json::{Map, Value};

use super::ProgramSpec;
use crate::record::{Counters, SCHEMA};

/// One program on one engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program as its job file said it.
    pub program: ProgramSpec,
    /// What ran it.
    pub engine: String,
    /// Where it ran.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Environment"))]
    pub environment: Map<String, Value>,
    /// The run.
    pub run: ProgramRun,
}

impl ProgramRecord {
    /// The record of `run`.
    pub fn new(
        program: ProgramSpec,
        engine: &str,
        environment: Map<String, Value>,
        run: ProgramRun,
    ) -> Self {
        ProgramRecord { schema: SCHEMA, program, engine: engine.to_string(), environment, run }
    }
}

/// One run of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramRun {
    /// Time for all of it, in nanoseconds; `null` where it is not known.
    pub elapsed_ns: Option<u64>,
    /// What it counted in all.
    pub counters: Counters,
    /// Each file, in the order of the job file.
    pub files: Vec<FileRun>,
    /// Each mapping, in the order of the job file.
    pub mappings: Vec<MappingRun>,
    /// Each thread, in the order of the job file.
    pub threads: Vec<ThreadRun>,
    /// Each phase, in order, one thread behind the other.
    pub phases: Vec<PhaseRun>,
}

/// What became of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileRun {
    /// Its name.
    pub name: String,
    /// Pages of it that were read.
    pub data_pages_read: u64,
    /// Faults on it that missed the cache.
    pub major_faults: u64,
    /// Pages of it that left the cache.
    pub evicted_pages: u64,
    /// Pages of it that are cached at the end.
    pub cached: u64,
}

/// What was done through one mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MappingRun {
    /// Its name.
    pub name: String,
    /// What it counted.
    pub counters: Counters,
}

/// What one thread did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadRun {
    /// Its name.
    pub name: String,
    /// Time until it had done its last phase, in nanoseconds; `null` where it is not known.
    pub elapsed_ns: Option<u64>,
    /// What it counted.
    pub counters: Counters,
}

/// What one phase did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseRun {
    /// The name of its thread.
    pub thread: String,
    /// What it did, in words: `map left`.
    pub does: String,
    /// Time for it, in nanoseconds; `null` where it is not known.
    pub elapsed_ns: Option<u64>,
    /// What it counted.
    pub counters: Counters,
}
