//! What came out of a program.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Program, ProgramSpec, TableOf};
use crate::engine::Ran;
use crate::record::{Cached, Counters, PerCounter, SCHEMA};
use crate::spread::Spread;
use crate::waits::Wait;

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
    /// The record of what came of `program`, with its summary.
    ///
    /// # Panics
    /// Without any run.
    pub fn of(program: &Program, Ran { engine, environment, runs }: Ran) -> Self {
        let runs: Vec<ProgramRun> = runs.into_iter().map(|run| run.by_table(program)).collect();
        let summary = ProgramSummary::of(&runs);
        let run = runs.first().expect("a record has a run").clone();
        let runs = if runs.len() > 1 { runs } else { Vec::new() };
        let (program, engine) = (program.spec.clone(), engine.name().to_string());
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
    /// The seed of its random patterns; in JSON also as text.
    #[serde(flatten, with = "crate::seed")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::seed::SeedTwice"))]
    pub seed: u64,
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
    /// Where the time of several threads went, by [`crate::waits::Cause`]; those that took none, or
    /// of which nothing is known, are left out. A kernel tells waits for `mmap_lock` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// For how long a kernel told that, in nanoseconds, where it is not all of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced_ns: Option<u64>,
    /// By how much each counter of `/proc/vmstat` changed meanwhile, whoever did it: counters of
    /// the whole machine that changed. For a real kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmstat: Option<BTreeMap<String, i64>>,
}

impl ProgramRun {
    /// The same, where the files, mappings and threads of one table of the job file are one.
    fn by_table(self, program: &Program) -> ProgramRun {
        let TableOf { files, mappings, threads, .. } = &program.tables;
        if !program.is_counted() {
            return self;
        }
        let steps = threads
            .iter()
            .zip(&program.threads)
            .flat_map(|(table, thread)| (0..thread.steps.len()).map(move |step| (*table, step)));
        let steps: Vec<(usize, usize)> = steps.collect();
        let name = |table: usize| program.spec.thread[table].called(table);
        ProgramRun {
            files: together(files, self.files, |table, all: &[FileRun]| FileRun {
                name: program.spec.file[*table].name.clone(),
                data_pages_read: all.iter().map(|file| file.data_pages_read).sum(),
                major_faults: all.iter().map(|file| file.major_faults).sum(),
                evicted_pages: all.iter().map(|file| file.evicted_pages).sum(),
                cached: all.iter().map(|file| file.cached).sum(),
                cached_parts: all[0].cached_parts.filter(|_| all.len() == 1),
            }),
            mappings: together(mappings, self.mappings, |table, all: &[MappingRun]| MappingRun {
                name: program.spec.mapping[*table].name.clone(),
                counters: sum(all.iter().map(|mapping| &mapping.counters)),
            }),
            threads: together(threads, self.threads, |table, all: &[ThreadRun]| ThreadRun {
                name: name(*table),
                elapsed_ns: all.iter().map(|thread| thread.elapsed_ns).max().flatten(),
                counters: sum(all.iter().map(|thread| &thread.counters)),
            }),
            phases: together(&steps, self.phases, |(table, _), all: &[PhaseRun]| PhaseRun {
                thread: name(*table),
                does: all[0].does.clone(),
                elapsed_ns: all.iter().map(|phase| phase.elapsed_ns).sum(),
                counters: sum(all.iter().map(|phase| &phase.counters)),
            }),
            ..self
        }
    }
}

/// What `make` makes of all of one key, in the order in which keys come first.
fn together<K: Ord, T>(keys: &[K], all: Vec<T>, make: impl Fn(&K, &[T]) -> T) -> Vec<T> {
    let mut by_key: BTreeMap<&K, Vec<T>> = BTreeMap::new();
    keys.iter().zip(all).for_each(|(key, one)| by_key.entry(key).or_default().push(one));
    by_key.iter().map(|(key, all)| make(key, all)).collect()
}

fn sum<'a>(counters: impl Iterator<Item = &'a Counters>) -> Counters {
    counters.copied().reduce(|sum, other| sum.and(&other)).unwrap_or_default()
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
    /// Where in the file these are; not told of several files of one table together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_parts: Option<Cached>,
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
