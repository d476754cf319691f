//! `compare`: runs jobs in several variants on one or more engines, and reports the differences.

mod answer;
mod boot_images;
mod call_times;
pub(crate) mod emulated;
mod figures;
mod letter;
mod no_effect;
mod options;
mod parts;
mod plan;
mod regression;
mod rows;
#[cfg(test)]
mod tests;
mod trees;

use std::borrow::Cow;
use std::collections::BTreeMap;

use filemap_job::record::{RecordKind, SCHEMA};
use filemap_job::{Job, JobSpec, Record, Run, Summary};
use filemap_report::{Part, Report, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use letter::JobFile;
pub use options::{CompareOptions, variants};
pub use plan::{Plan, check_one_table, run};
pub use regression::Regression;

use crate::error::Error;
use crate::footer::Footer;
use crate::json::to_json;
use crate::measures::RecordMeasurements;

/// The record of a comparison, as stored in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Compare")]
pub struct Comparison {
    schema: u32,
    /// The kind of record.
    kind: RecordKind,
    #[serde(flatten)]
    footer: Footer,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    regressions: Vec<Regression>,
    /// Grouped by job; each cell is compared with the first cell of its job.
    cells: Vec<Cell>,
}

/// A variant with its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Cell {
    /// Path of the job file; absent when a single job is compared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    job_file: Option<String>,
    variant: String,
    engine: String,
    /// Key into `environments`, if there are several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    environment: Option<String>,
    job: JobSpec,
    /// Spread of each counter over all runs.
    figures: Summary,
    /// Spread of each figure over all runs; recomputed when a record lacks them.
    #[serde(default)]
    measures: RecordMeasurements,
    runs: Vec<Run>,
    #[serde(default)]
    used_pages: Option<u64>,
    /// Change of each counter's median against the first cell of the job, in percent.
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
    /// The variant as requested, such as `p1+p2`.
    pub variant: String,
    /// The job that was run, with its first seed.
    pub job: Job,
    /// The record of its runs.
    pub record: Record,
}

/// A job with the results of its variants.
#[derive(Clone, Debug, PartialEq)]
pub struct JobVariants {
    /// Path of the job file; absent when a single job is compared.
    pub job_file: Option<String>,
    /// The variants; the first is the baseline of the comparison.
    pub ran: Vec<RanVariant>,
    /// Warnings for the reader of the report.
    pub warnings: Vec<String>,
}

impl Comparison {
    /// The record of `jobs`, in order. `command` repeats the comparison.
    ///
    /// # Panics
    /// When `jobs` is empty or a job has no variants.
    pub fn from_jobs(jobs: Vec<JobVariants>, command: String) -> Self {
        let records = jobs.iter().flat_map(|job| job.ran.iter().map(|ran| &ran.record));
        let (footer, environments) = Footer::with_names(records, command);
        let mut environments = environments.into_iter();
        let (mut cells, mut regressions, mut all_warnings) = (Vec::new(), Vec::new(), Vec::new());
        for JobVariants { job_file, ran, warnings } in jobs {
            let records: Vec<&Record> = ran.iter().map(|ran| &ran.record).collect();
            for (worse, ran) in regression::find_regressions(&records).into_iter().zip(&ran) {
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
                measures: RecordMeasurements::from_record(&ran.record, Some(&ran.job)),
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

    /// Checks a record that was read from a file.
    ///
    /// # Errors
    /// When the comparison has no cells.
    pub(crate) fn check(self) -> Result<Self, Error> {
        if self.cells.is_empty() || self.cells.iter().any(|cell| cell.runs.is_empty()) {
            return Err(Error::NoRecord { reason: "it compares nothing".to_string() });
        }
        Ok(self)
    }

    /// The report; with `verbose`, it also lists every counter under its JSON name.
    pub fn report(&self, verbose: bool) -> Report {
        let mut parts: Vec<Part> = answer::jobs_table(self).map(Part::Table).into_iter().collect();
        let mut rows = Vec::new();
        for cells in self.jobs() {
            let variants = Variants::from_cells(self, cells);
            parts.extend(parts::parts(&variants, &self.warnings_of(cells), verbose));
            rows.extend(rows::all_rows(&variants));
        }
        // With a single job the job-file column is omitted.
        let skipped = usize::from(self.cells[0].job_file.is_none());
        rows.iter_mut().for_each(|row| drop(row.drain(..skipped)));
        Report {
            parts,
            rows: Table::from_parts(rows::HEADS.into_iter().skip(skipped), [""; 0], rows),
            footer: self.footer.footer(),
            record_json: to_json(self),
        }
    }

    /// The cells of each job.
    fn jobs(&self) -> impl Iterator<Item = &[Cell]> {
        self.cells.chunk_by(|one, next| one.job_file == next.job_file)
    }

    /// The warnings about the job that `cells` belong to.
    fn warnings_of(&self, cells: &[Cell]) -> Vec<String> {
        let Some(path) = &cells[0].job_file else { return self.warnings.clone() };
        let own = self.warnings.iter().filter_map(|warning| warning.strip_prefix(path.as_str()));
        own.filter_map(|warning| warning.strip_prefix(": ")).map(String::from).collect()
    }
}

/// The cells of one job, each expanded to a [`Record`] again.
struct Variants<'a> {
    cells: &'a [Cell],
    records: Vec<Record>,
    measures: Vec<Cow<'a, RecordMeasurements>>,
}

impl<'a> Variants<'a> {
    fn from_cells(comparison: &Comparison, cells: &'a [Cell]) -> Self {
        let record = |cell: &Cell| Record {
            schema: SCHEMA,
            kind: RecordKind::Run,
            job: cell.job.clone(),
            environment: comparison
                .footer
                .environment_named(cell.environment.as_ref().unwrap_or(&cell.engine))
                .clone(),
            engine: cell.engine.clone(),
            runs: cell.runs.clone(),
            summary: cell.figures.clone(),
            warnings: Vec::new(),
        };
        let records: Vec<Record> = cells.iter().map(record).collect();
        let measures =
            cells.iter().zip(&records).map(|(cell, record)| cell.measures.get_or_compute(record));
        Variants { measures: measures.collect(), cells, records }
    }

    /// The name of a variant in running text.
    fn name(&self, at: usize) -> String {
        let Cell { variant, engine, .. } = &self.cells[at];
        let is_alone = self.cells.iter().all(|cell| cell.engine == *engine);
        if is_alone { variant.clone() } else { format!("{variant} on the {engine}") }
    }

    /// The heading: the job, its variants and the baseline.
    fn heading(&self) -> Part {
        let job = crate::record::record_heading(&self.records[0]);
        let heading = format!("{job}: changes against {}", self.cells[0].variant);
        let path = self.cells[0].job_file.as_ref();
        Part::Heading(path.map_or(heading.clone(), |path| format!("{path}: {heading}")))
    }
}
