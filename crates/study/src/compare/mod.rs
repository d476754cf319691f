//! One job or several, each in several variants, on one engine or several.

mod asked;
mod booted;
mod calls;
pub(crate) mod emulated;
mod figures;
mod letter;
mod parts;
mod plan;
mod regression;
mod rows;
#[cfg(test)]
mod tests;
mod trees;
mod unseen;

use std::borrow::Cow;
use std::collections::BTreeMap;

use filemap_job::record::{RecordKind, SCHEMA};
use filemap_job::{Job, ProgramSpec, Record, Run, Summary};
use filemap_report::{Part, Report, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use asked::{Asked, variants};
pub use letter::JobFile;
pub use plan::{Plan, check_one_table, run};
pub use regression::Regression;

use crate::error::Error;
use crate::footer::Footer;
use crate::json::to_json;
use crate::measures::Measures;

/// The record of a comparison, as it is written and read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Compare")]
pub struct Comparison {
    schema: u32,
    /// What the record is of.
    kind: RecordKind,
    #[serde(flatten)]
    footer: Footer,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    regressions: Vec<Regression>,
    /// All cells of a job stand together, and are held against the first of them.
    cells: Vec<Cell>,
}

/// A variant, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Cell {
    /// The path of its job file, where several are compared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    job_file: Option<String>,
    variant: String,
    engine: String,
    /// The name of its environment, where there are several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    environment: Option<String>,
    job: ProgramSpec,
    /// Counters over all runs.
    figures: Summary,
    /// Figures over all runs; those of records without them are counted again.
    #[serde(default)]
    measures: Measures,
    runs: Vec<Run>,
    #[serde(default)]
    used_pages: Option<u64>,
    /// Of the median of each counter, in percent against the first cell.
    #[serde(default)]
    change: BTreeMap<String, Option<f64>>,
    #[serde(default)]
    error: Option<f64>,
    #[serde(default)]
    ok: Option<bool>,
}

/// A variant that was run.
#[derive(Clone, Debug, PartialEq)]
pub struct RanVariant {
    /// The variant as it was asked for, such as `p1+p2`.
    pub variant: String,
    /// The job that was run, with the first of its seeds.
    pub job: Job,
    /// What came out.
    pub record: Record,
}

/// A job with its variants.
#[derive(Clone, Debug, PartialEq)]
pub struct OfJob {
    /// The path of its job file, where several are compared.
    pub job_file: Option<String>,
    /// Its variants, all against the first.
    pub ran: Vec<RanVariant>,
    /// What is to be said of it.
    pub warnings: Vec<String>,
}

impl Comparison {
    /// What came of `jobs`, one after the other, which `command` repeats.
    ///
    /// # Panics
    /// Without any job, or any variant of one.
    pub fn of(jobs: Vec<OfJob>, command: String) -> Self {
        let records = jobs.iter().flat_map(|of| of.ran.iter().map(|ran| &ran.record));
        let (footer, environments) = Footer::with_names(records, command);
        let mut environments = environments.into_iter();
        let (mut cells, mut regressions, mut all_warnings) = (Vec::new(), Vec::new(), Vec::new());
        for OfJob { job_file, ran, warnings } in jobs {
            let records: Vec<&Record> = ran.iter().map(|ran| &ran.record).collect();
            for (worse, ran) in regression::all(&records).into_iter().zip(&ran) {
                let named = worse.into_iter().map(|worse| Regression {
                    job_file: job_file.clone(),
                    variant: ran.variant.clone(),
                    ..worse
                });
                regressions.extend(named);
            }
            let first = ran[0].record.clone();
            cells.extend(ran.into_iter().map(|ran| Cell {
                job_file: job_file.clone(),
                environment: environments.next().flatten(),
                measures: Measures::of(&ran.record, Some(&ran.job)),
                used_pages: ran.job.used_pages(),
                change: rows::changes(&ran.record, &first),
                variant: ran.variant,
                engine: ran.record.engine,
                job: ran.record.job,
                figures: ran.record.summary,
                runs: ran.record.runs,
                error: None,
                ok: None,
            }));
            all_warnings.extend(warnings.into_iter().map(|warning| match &job_file {
                None => warning,
                Some(path) => format!("{path}: {warning}"),
            }));
        }
        Comparison {
            schema: SCHEMA,
            kind: RecordKind::Compare,
            footer,
            warnings: all_warnings,
            regressions,
            cells,
        }
    }

    /// Refuses what another program wrote that cannot be shown.
    ///
    /// # Errors
    /// A comparison of nothing.
    pub(crate) fn check(self) -> Result<Self, Error> {
        if self.cells.is_empty() || self.cells.iter().any(|cell| cell.runs.is_empty()) {
            return Err(Error::NoRecord { reason: "it compares nothing".to_string() });
        }
        Ok(self)
    }

    /// The report on it; with `verbose`, every counter under its own name too.
    pub fn report(&self, verbose: bool) -> Report {
        let mut parts = Vec::new();
        let mut rows = Vec::new();
        for cells in self.jobs() {
            let of = Variants::of(self, cells);
            parts.extend(parts::parts(&of, &self.warnings_of(cells), verbose));
            rows.extend(rows::all(&of));
        }
        // Of one job there is none.
        let skipped = usize::from(self.cells[0].job_file.is_none());
        rows.iter_mut().for_each(|row| drop(row.drain(..skipped)));
        Report {
            parts,
            rows: Table::of(rows::HEADS.into_iter().skip(skipped), [""; 0], rows),
            footer: self.footer.footer(),
            record_json: to_json(self),
        }
    }

    /// The cells of each job.
    fn jobs(&self) -> impl Iterator<Item = &[Cell]> {
        self.cells.chunk_by(|one, next| one.job_file == next.job_file)
    }

    /// What is to be said of the job of `cells`.
    fn warnings_of(&self, cells: &[Cell]) -> Vec<String> {
        let Some(path) = &cells[0].job_file else { return self.warnings.clone() };
        let own = self.warnings.iter().filter_map(|said| said.strip_prefix(path.as_str()));
        own.filter_map(|said| said.strip_prefix(": ")).map(String::from).collect()
    }
}

/// The cells of one job, each as a record of its own again.
struct Variants<'a> {
    cells: &'a [Cell],
    records: Vec<Record>,
    measures: Vec<Cow<'a, Measures>>,
}

impl<'a> Variants<'a> {
    fn of(comparison: &Comparison, cells: &'a [Cell]) -> Self {
        let record = |cell: &Cell| Record {
            schema: SCHEMA,
            kind: RecordKind::Run,
            job: cell.job.clone(),
            environment: comparison
                .footer
                .environment_of(cell.environment.as_ref().unwrap_or(&cell.engine))
                .clone(),
            engine: cell.engine.clone(),
            runs: cell.runs.clone(),
            summary: cell.figures.clone(),
            warnings: Vec::new(),
        };
        let records: Vec<Record> = cells.iter().map(record).collect();
        let measures = cells.iter().zip(&records).map(|(cell, record)| cell.measures.or_of(record));
        Variants { measures: measures.collect(), cells, records }
    }

    /// What a variant is called in a sentence.
    fn name(&self, at: usize) -> String {
        let Cell { variant, engine, .. } = &self.cells[at];
        let is_alone = self.cells.iter().all(|cell| cell.engine == *engine);
        if is_alone { variant.clone() } else { format!("{variant} on the {engine}") }
    }

    /// What was compared, and against what.
    fn heading(&self) -> Part {
        let job = crate::record::heading(&self.records[0]);
        let heading = format!("{job}: changes against {}", self.cells[0].variant);
        let path = self.cells[0].job_file.as_ref();
        Part::Heading(path.map_or(heading.clone(), |path| format!("{path}: {heading}")))
    }
}
