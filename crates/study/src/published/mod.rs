//! Published tables beside the model's.
//!
//! A study is one published patch series: the jobs whose records it needs, and what those say
//! beside the published figures. Adding a series is adding a module with a [`Study`], and its
//! name to `study` below.

mod data;
mod exec_order;
mod here;
mod mm_owner;
mod mmap_miss;
mod source;
mod study;
mod vma_bound;
mod vma_retry;

use filemap_job::Record;
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::footer::{Footer, Origin};
use crate::json::to_json;
use crate::spread::ENOUGH_SEEDS;
use filemap_report::Report;
use filemap_report::Table;
pub use here::{FIO_FILE_BYTES, FIO_RANGE_BYTES, FioRun, FioRuns, MeasuredHere, fio_jobs};
pub use mm_owner::{Atomics, Counting, FalselyShared};
pub use source::Source;
pub use study::{Findings, Ran, Study};
pub use vma_retry::{Change, PUBLISHED_CPUS, Simulation, Span, Trial, TrialRun, Trials};

/// Seeds of a random cell of mmap-miss where none are given.
pub const DEFAULT_SEEDS: u64 = ENOUGH_SEEDS;

/// Every published series.
pub const NAMES: [&str; 5] = ["mmap-miss", "vma-bound", "exec-order", "vma-retry", "mm-owner"];

/// What the published tables are made with.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Seeds of each random cell, 1 or more, where they are given.
    pub seeds: Option<u64>,
    /// In the published length, where that takes long.
    pub full: bool,
    /// What this machine adds, where a report in full was asked for.
    pub here: Option<MeasuredHere>,
    /// What runs threads that wait.
    pub simulation: Simulation,
    /// What was counted of mapcounts.
    pub counting: Counting,
}

/// The studies of the series named; for no name of all, of which those that take long are brief.
///
/// # Errors
/// For a name that is no series.
pub fn studies(names: &[String], options: &Options) -> Result<Vec<Box<dyn Study>>, Error> {
    if names.is_empty() {
        return Ok(NAMES.iter().filter_map(|name| study(name, false, options)).collect());
    }
    let mut chosen: Vec<&String> = Vec::new();
    for name in names {
        if !chosen.contains(&name) {
            chosen.push(name);
        }
    }
    let found = chosen.into_iter().map(|name| {
        study(name, true, options)
            .ok_or_else(|| Error::UnknownSeries { name: name.clone(), known: NAMES.join(", ") })
    });
    found.collect()
}

/// The study of a series, if it is one; brief where it takes long and is not asked for by name.
fn study(name: &str, is_named: bool, options: &Options) -> Option<Box<dyn Study>> {
    match name {
        "mmap-miss" => {
            Some(Box::new(mmap_miss::MmapMiss::new(options.seeds.unwrap_or(DEFAULT_SEEDS))))
        }
        "vma-bound" => Some(Box::new(vma_bound::VmaBound::new(options.here.clone()))),
        "exec-order" => Some(Box::new(exec_order::ExecOrder)),
        "vma-retry" => {
            let simulation = options.simulation.clone();
            let form = vma_retry::Form::of(options.full, is_named);
            Some(Box::new(vma_retry::VmaRetry::new(options.seeds, form, simulation)))
        }
        "mm-owner" => {
            let form = mm_owner::Form::of(options.full, is_named);
            Some(Box::new(mm_owner::MmOwner::new(form, options.counting.clone())))
        }
        _ => None,
    }
}

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    sources: Vec<&'a Source>,
    #[schemars(with = "Vec<crate::forms::PublishedCell>")]
    cells: Vec<&'a Value>,
}

/// One report on all `findings`; `records` are those of all studies, and `command` repeats it.
pub fn report(findings: Vec<Findings>, records: &[Record], command: String) -> Report {
    let own = findings.iter().filter_map(|findings| findings.origin.clone());
    let origins: Vec<Origin> = records.iter().map(Origin::of).chain(own).collect();
    let footer = Footer::of(&origins, command);
    let sources = findings.iter().map(|findings| findings.source).collect();
    let cells = findings.iter().flat_map(|findings| &findings.cells).collect();
    let schema = filemap_job::record::SCHEMA;
    let json = to_json(&Json { schema, footer: &footer, sources, cells });
    let mut rows = Table::default();
    let mut parts = Vec::new();
    for found in findings {
        parts.extend(found.parts);
        rows.join(found.rows);
    }
    Report { parts, rows, footer: footer.footer(), json }
}
