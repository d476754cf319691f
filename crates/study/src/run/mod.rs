//! `run`: runs one job and reports its figures.

mod by_table;
mod page_parts;
mod phases;
#[cfg(test)]
mod tests;

use filemap_job::{Job, Record, Run, Spread};
use filemap_report::units::number;
use filemap_report::{Part, Report, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use by_table::{CALLS, wait_tables as waits};
pub(crate) use page_parts::cards;

use crate::engine::{self, Engines};
use crate::error::Error;
use crate::explain::{self, RunHistory};
use crate::footer::{Footer, scope_text};
use crate::job_input::PlannedJob;
use crate::json::{in_one_line, to_json};
use crate::measures::RecordMeasurements;
use crate::record::{self, spreads, values};
use crate::seeds;
use crate::setup;
use crate::spread;
use crate::stats::{MAD, SampleStats};

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// Number of seeds; `None` runs one.
    pub seeds: Option<u64>,
    /// Whether settings of this machine may be changed (`--apply`).
    pub apply: bool,
    /// Whether to record the history of the first run.
    pub history: bool,
}

/// Runs the `planned` job on `engines`.
///
/// # Errors
/// Errors of the engines.
pub fn run(
    mut planned: PlannedJob,
    engines: &impl Engines,
    asked: RunOptions,
) -> Result<RunRecord, Error> {
    let (jobs, count) = (std::slice::from_ref(&planned.job), asked.seeds.unwrap_or(1));
    let profiles = std::slice::from_mut(&mut planned.profile);
    let begun = seeds::process_cpu_time();
    let mut records = engine::run_jobs(engines, jobs, profiles, count, asked.apply)?;
    let mut record = records.pop().expect("one job has one record");
    planned.warn(&mut record, asked.seeds, seeds::process_cpu_time() - begun)?;
    let PlannedJob { input, job, profile, .. } = planned;
    let history = if asked.history { explain::run_history(&job, &profile, &record)? } else { None };
    let command = input.command("run", &job, &seeds::words(asked.seeds));
    Ok(RunRecord::new(record, &job, history, command))
}

/// The record of a job, as stored in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct RunRecord {
    #[serde(flatten)]
    pub record: Record,
    /// Spread of each figure over all runs; recomputed when a record lacks them.
    #[serde(default)]
    measures: RecordMeasurements,
    #[serde(default)]
    used_pages: Option<u64>,
    /// The history of the first run in the model; null for runs on a kernel.
    #[serde(
        default,
        serialize_with = "in_one_line",
        deserialize_with = "RunHistory::deserialize_checked"
    )]
    #[schemars(with = "Option<RunHistory>")]
    history: Option<RunHistory>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    command: String,
}

impl RunRecord {
    /// The record of `job`, with the history of its first run. `command` repeats the run.
    pub fn new(record: Record, job: &Job, history: Option<RunHistory>, command: String) -> Self {
        RunRecord {
            measures: RecordMeasurements::from_record(&record, Some(job)),
            used_pages: job.used_pages(),
            history,
            scope: scope_text(&record),
            command,
            record,
        }
    }

    /// Checks a record that was read from a file.
    ///
    /// # Errors
    /// When the record has no runs.
    pub(crate) fn check(self) -> Result<Self, Error> {
        if self.record.runs.is_empty() {
            Err(Error::NoRecord { reason: "it has no runs".to_string() })
        } else {
            Ok(self)
        }
    }

    /// The report; with `verbose`, it also lists every counter under its JSON name.
    pub fn report(&self, verbose: bool) -> Report {
        let record = &self.record;
        let measures = self.measures.get_or_compute(record);
        let mut parts = vec![
            Part::Heading(record::title(record)),
            Part::Cards(cards(record, &measures)),
            setup::record_setup(record),
            Part::Table(figures_table(record, &measures)),
        ];
        parts.extend(by_table::parts(record));
        parts.extend(phases::part(record));
        if record.job.thread.iter().any(|thread| thread.count > Some(1)) {
            let text = "Of a table that stands for several threads, phases have the time of all \
                        of them together.";
            parts.push(Part::Paragraph(text.to_string()));
        }
        parts.extend(by_table::wait_tables(record));
        if spread::seeds(record) > 1 {
            let read = SampleStats::from_sorted(spread::bytes_read(record));
            let note = read.as_ref().and_then(|read| spread::note("The job", read));
            parts.extend(note.map(Part::Paragraph));
        }
        parts.extend(Part::warnings(&record.warnings));
        if verbose {
            parts.push(Part::Table(summary(record)));
            parts.extend((record.runs.len() > 1).then(|| Part::Paragraph(MAD.to_string())));
        }
        let notes = [
            record::outlier_note(record),
            record::reclaim_note(record),
            record::foreign_note(record),
            record::elapsed_note(record),
        ];
        parts.extend(notes.into_iter().flatten().map(Part::Paragraph));
        parts.extend(page_parts::parts(record, self.history.as_ref()));
        let is_program = !record.job.is_single_mapping();
        let footer = Footer {
            scope: self.scope.clone(),
            command: self.command.clone(),
            environment: record.environment.clone(),
        };
        Report {
            parts,
            rows: if is_program { phases::rows(record) } else { rows(record) },
            footer: footer.footer(),
            record_json: to_json(self),
        }
    }
}

/// A table of spreads over the runs of `record`; a single run has just its value.
fn table(
    record: &Record,
    title: &str,
    several: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) -> Table {
    let names = if record.runs.len() > 1 { several } else { &["value"] };
    let rows = rows.map(|mut row| {
        row.truncate(1 + names.len());
        row
    });
    Table::from_parts([title], names.iter().copied(), rows)
}

/// The headline figures.
fn figures_table(record: &Record, measures: &RecordMeasurements) -> Table {
    let counted = match (record.runs.len(), spread::seeds(record)) {
        (0 | 1, _) => "figure".to_string(),
        (runs, 1) => format!("{runs} runs"),
        (_, seeds) => format!("{seeds} seeds"),
    };
    let rows = measures.iter().filter_map(|(figure, measure)| {
        let own = measure.filter(|_| figure.is_shown([measure]))?;
        let own = [own.median, own.min, own.max].map(|value| figure.unit.text(value));
        let name = figure.row_name([record.engine.as_str()]);
        Some([name].into_iter().chain(own).collect())
    });
    table(record, &counted, &["median", "min", "max"], rows)
}

/// Every counter under its JSON name.
fn summary(record: &Record) -> Table {
    let row = |(name, spread): (&str, Option<Spread>)| {
        let spread = spread?;
        let own = [spread.median, spread.mad, spread.min as f64, spread.max as f64].map(number);
        Some([name.to_string()].into_iter().chain(own).collect())
    };
    let rows = spreads(record).into_iter().filter_map(row);
    table(record, "counter", &["median", "MAD", "min", "max"], rows)
}

/// One row per run.
fn rows(record: &Record) -> Table {
    let row = |run: &Run| {
        let cells = values(run).map(|(_, value)| value.map_or(String::new(), |v| v.to_string()));
        [record.engine.clone(), run.seed.to_string()].into_iter().chain(cells).collect()
    };
    let names = ["engine", "seed"].into_iter().chain(values(&Run::default()).map(|(name, _)| name));
    Table::from_parts(names, [""; 0], record.runs.iter().map(row))
}
