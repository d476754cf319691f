//! What came out of a program.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Program, ProgramSpec};
use crate::record::{Counters, PerCounter, SCHEMA};
use crate::spread::Spread;
use crate::thrash::Wait;

/// One program on one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The run: the first, where there are several.
    pub run: ProgramRun,
    /// Every run, in order, of a program that ran more than once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ProgramRun>,
    /// Each counter over all runs.
    pub summary: ProgramSummary,
    /// What a reader of it should know, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl ProgramRecord {
    /// The record of `runs`, with their summary.
    ///
    /// # Panics
    /// Without any run.
    pub fn new(
        program: &Program,
        engine: &str,
        environment: Map<String, Value>,
        runs: Vec<ProgramRun>,
    ) -> Self {
        let summary = ProgramSummary::of(&runs);
        let run = runs.first().expect("a record has a run").clone();
        let runs = if runs.len() > 1 { runs } else { Vec::new() };
        let (program, engine) = (program.spec.clone(), engine.to_string());
        ProgramRecord {
            schema: SCHEMA,
            program,
            engine,
            environment,
            run,
            runs,
            summary,
            warnings: Vec::new(),
        }
    }

    /// All runs.
    pub fn all_runs(&self) -> &[ProgramRun] {
        match self.runs.as_slice() {
            [] => std::slice::from_ref(&self.run),
            runs => runs,
        }
    }
}

/// What the runs of a program say, over all of them; `None` = no run saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramSummary {
    /// Each counter.
    #[serde(flatten)]
    pub counters: PerCounter<Option<Spread>>,
    /// Time for all of it, in nanoseconds.
    pub elapsed_ns: Option<Spread>,
    /// Each file, in the order of the job file.
    pub files: Vec<FileSummary>,
}

/// [`FileRun`] over all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSummary {
    /// Its name.
    pub name: String,
    /// Pages of it that were read.
    pub data_pages_read: Option<Spread>,
    /// Faults on it that missed the cache.
    pub major_faults: Option<Spread>,
    /// Pages of it that left the cache.
    pub evicted_pages: Option<Spread>,
    /// Pages of it that are cached at the end.
    pub cached: Option<Spread>,
}

impl ProgramSummary {
    /// The summary of `runs`, which are of one program.
    pub fn of(runs: &[ProgramRun]) -> ProgramSummary {
        let counters: Vec<_> = runs.iter().map(|run| run.counters).collect();
        let files = runs.first().map_or(&[][..], |run| &run.files);
        let file = |(number, file): (usize, &FileRun)| {
            let of = |count: fn(&FileRun) -> Option<u64>| {
                Spread::of(runs.iter().filter_map(|run| count(&run.files[number])))
            };
            FileSummary {
                name: file.name.clone(),
                data_pages_read: of(|file| file.data_pages_read),
                major_faults: of(|file| file.major_faults),
                evicted_pages: of(|file| file.evicted_pages),
                cached: of(|file| file.cached),
            }
        };
        ProgramSummary {
            counters: PerCounter::summary(&counters),
            elapsed_ns: Spread::of(runs.iter().filter_map(|run| run.elapsed_ns)),
            files: files.iter().enumerate().map(file).collect(),
        }
    }
}

/// One run of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Each phase, in order, one thread behind the other. Of a thread that repeats its phases it is
    /// what all rounds did together.
    pub phases: Vec<PhaseRun>,
    /// How long its threads waited for locks of their process, by lock: [`super::Awaited`]. Those
    /// that nobody waited for, or of which nothing is known, are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
}

/// What became of one file. What the engine cannot see is `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileRun {
    /// Its name.
    pub name: String,
    /// Pages of it that were read.
    pub data_pages_read: Option<u64>,
    /// Faults on it that missed the cache.
    pub major_faults: Option<u64>,
    /// Pages of it that left the cache.
    pub evicted_pages: Option<u64>,
    /// Pages of it that are cached at the end.
    pub cached: Option<u64>,
}

/// What was done through one mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MappingRun {
    /// Its name.
    pub name: String,
    /// What it counted.
    pub counters: Counters,
}

/// What one thread did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
