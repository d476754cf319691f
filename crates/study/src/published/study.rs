//! What one published patch series asks for, and what is found.

use filemap_job::{FolioOps, FolioOpsRecord, Job, Record};
use serde_json::Value;

use super::source::Source;
use super::vma_retry::{Trial, Trials};
use crate::footer::Origin;
use filemap_report::Part;
use filemap_report::Table;

/// One published patch series.
pub trait Study {
    /// The jobs whose records it needs, in order.
    fn jobs(&self) -> Vec<Job>;

    /// Runs of threads that wait which it needs next, when `known` are run: none when these are
    /// all. Most studies need none.
    fn trials(&self, known: &Trials) -> Vec<Trial> {
        let _ = known;
        Vec::new()
    }

    /// Operations over folios that it needs the record of, in real time. Most studies need none.
    fn folio_ops(&self) -> Option<FolioOps> {
        None
    }

    /// What was run for it says beside what is published.
    fn findings(&self, ran: &Ran<'_>) -> Findings;
}

/// What was run for a study.
#[derive(Clone, Copy)]
pub struct Ran<'a> {
    /// One for each of [`Study::jobs`], in their order.
    pub records: &'a [Record],
    /// All of its trials.
    pub trials: &'a Trials,
    /// That of [`Study::folio_ops`].
    pub folio_ops: Option<&'a FolioOpsRecord>,
}

/// What a study found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Its part of the report.
    pub parts: Vec<Part>,
    /// Its cells, flat, for CSV.
    pub rows: Table,
    /// Where the series comes from.
    pub source: &'static Source,
    /// Its cells for JSON: each with `series`, `figures`, `published`, `error`, `ok` and
    /// `verdict`.
    pub cells: Vec<Value>,
    /// How many published cells the model misses, of those that decide whether the command fails.
    pub failed: usize,
    /// Where its trials ran, if it has any.
    pub origin: Option<Origin>,
}
