//! Derives the record from the findings of jobs.

use filemap_job::JobSpec;
use filemap_job::program::Job;

use super::bench::ConformBench;
use super::case::ConformCase;
use super::compared_kernel::ComparedKernel;
use super::differences::group_differences;
use super::evidence::{find_matching_series, measure_series_coverage};
use super::record::{ConformRecord, Finding};
use super::shrink::ShrinkContext;
use crate::engine::Progress;
use crate::error::Error;

/// A job to be compared, restricted to one of its files.
pub(super) struct ComparedJob<'a> {
    /// Name in the report.
    pub(super) name: String,
    /// The job as a job file.
    pub(super) text: String,
    /// The job as written, if it can be shrunk.
    pub(super) spec: Option<&'a JobSpec>,
    pub(super) job: &'a Job,
    pub(super) file: usize,
    pub(super) finding: Finding,
}

/// The record of `compared`, without a footer: each difference with a shrunk job, for which further
/// jobs run on `bench`, and the series that explain the kernel. `validate` makes jobs for the
/// compared kernel.
///
/// # Errors
/// Errors of the bench.
pub(super) fn conformance(
    compared: &[ComparedJob],
    on: &ComparedKernel,
    bench: &mut ConformBench,
    validate: &dyn Fn(&JobSpec) -> Result<Job, filemap_job::Error>,
    progress: &dyn Progress,
) -> Result<ConformRecord, Error> {
    let cases: Vec<ConformCase> = compared.iter().filter_map(case).collect();
    let kernel = bench.compared_kernel();
    let switched = measure_series_coverage(&cases, on.with.as_deref(), kernel.seen)?;
    let (likeness, like) = find_matching_series(&cases, kernel.seen)?.unzip();
    let trying = ShrinkContext { validate, like: like.flatten(), progress };
    let differences = group_differences(bench, &cases, trying)?;
    let patterns = compared.iter().map(|compared| {
        kernel.pattern(compared.name.clone(), compared.finding.clone(), compared.text.clone())
    });
    let rules = compared.first().map(|compared| compared.job.rules);
    let commands = rules.filter(|_| !differences.is_empty());
    Ok(ConformRecord {
        rules: rules.map(|rules| rules.kernel.name().to_string()),
        with: rules.map(|rules| on.with.clone().unwrap_or(rules.series.to_string())),
        switched,
        likeness,
        differences,
        commands: commands.map_or(Vec::new(), |rules| on.commands(&rules)),
        ..kernel.conformance(patterns.collect())
    })
}

fn case<'a>(compared_job: &'a ComparedJob<'a>) -> Option<ConformCase<'a>> {
    let ComparedJob { name, text, spec, job, file, finding } = compared_job;
    let Finding::Compared(found) = finding else { return None };
    Some(ConformCase { name, text, spec: *spec, job, file: *file, found })
}
