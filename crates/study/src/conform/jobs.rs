//! Compares single-file jobs in the model and on a kernel.

use filemap_job::{Job, JobSpec};

use super::bench::ConformBench;
use super::compared_kernel::{ComparedKernel, job_file};
use super::difference_text::first_difference_message;
use super::outcome::{check_any_compared, footer};
use super::record::{ConformRecord, Finding};
use super::verdict::{ComparedJob, conformance};
use crate::console;
use crate::engine::Engines;
use crate::error::Error;

/// Maximum number of guests that may die before a comparison is given up.
const MAX_ENDED_GUESTS: u32 = 3;

/// Maximum number of logs of differing jobs that are kept, to try other series on them.
const MAX_KEPT_LOGS: usize = 100;

/// Compares the decisions of a kernel with the model's in each of the `named` jobs; with
/// `stops_at_first`, only up to the first that differs. `command` returns the command that repeats
/// the comparison, given the first job.
///
/// # Errors
/// The kernel cannot be traced, or none of the jobs can run here.
pub fn conform_jobs(
    named: &[(String, JobSpec)],
    on: &ComparedKernel,
    stops_at_first: bool,
    engines: &impl Engines,
    command: impl FnOnce(&Job) -> String,
) -> Result<ConformRecord, Error> {
    // An invalid job is an error on every machine, whether or not this one can run conform.
    let first = named.first().map(|(_, job)| validate(job, on)).transpose()?;
    let (journal, _undoing) = engines.journal()?;
    let mut bench = on.bench(&journal, engines)?;
    let mut found = on_bench(named, on, stops_at_first, &mut bench, engines)?;
    let command = first.as_ref().map_or(String::new(), command);
    let mut footer = footer(first.as_ref().map(|job| &job.rules), on, &bench, command);
    console::add_noted(&mut footer.environment, &found.footer.environment);
    found.footer = footer;
    check_any_compared(&found)?;
    Ok(found)
}

/// Likewise on `bench`. The footer contains only kernel warnings.
pub(super) fn on_bench(
    named: &[(String, JobSpec)],
    on: &ComparedKernel,
    stops_at_first: bool,
    bench: &mut ConformBench,
    engines: &impl Engines,
) -> Result<ConformRecord, Error> {
    let jobs = named.iter().map(|(_, job)| validate(job, on)).collect::<Result<Vec<_>, _>>()?;
    let findings = findings(bench, named, &jobs, stops_at_first, engines)?;
    let complaints = bench.take_complaints();
    if findings.len() > jobs.iter().zip(&findings).filter(|(_, found)| found.is_some()).count() {
        // Otherwise jobs already sent to a booted kernel would run first.
        bench.discard_pending(engines.message_sink());
    }
    let with_findings = named.iter().zip(&jobs).zip(findings);
    let compared = with_findings.filter_map(|(((name, spec), job), finding)| {
        let text = job_file(if spec.is_single_mapping() { &job.spec } else { spec });
        let spec = Some(spec);
        Some(ComparedJob { name: name.clone(), text, spec, job, file: 0, finding: finding? })
    });
    let compared: Vec<ComparedJob> = compared.collect();
    let progress = engines.progress(None);
    let mut found = conformance(&compared, on, bench, &|job| validate(job, on), &*progress)?;
    let noted = &mut found.footer.environment;
    for (number, complaint) in complaints {
        console::add_incidents(noted, &[complaint], &named[number].0);
    }
    for (_, complaint) in bench.take_complaints() {
        console::add_incidents(noted, &[complaint], "a smaller job");
    }
    Ok(found)
}

/// The validated job for the compared kernel.
fn validate(spec: &JobSpec, on: &ComparedKernel) -> Result<Job, filemap_job::Error> {
    on.on_kernel(spec).validate(Some(&on.release))
}

/// The finding of each of `jobs`; `None` for those that were not reached. If there are several
/// jobs, a missing requirement of one does not prevent the others.
fn findings(
    bench: &mut ConformBench,
    named: &[(String, JobSpec)],
    jobs: &[Job],
    stops_at_first: bool,
    engines: &impl Engines,
) -> Result<Vec<Option<Finding>>, Error> {
    let progress = engines.progress(Some(jobs.len() as u64));
    let mut findings: Vec<Option<Finding>> = vec![None; jobs.len()];
    let (mut ended, mut differing) = (0, 0);
    bench.compare_all(&jobs.iter().collect::<Vec<_>>(), |number, found| {
        let mut finding = match found {
            Ok(mut of_files) => of_files.remove(0),
            // Without tracing no job can be compared, so that error ends the comparison.
            Err(error) if jobs.len() > 1 && error.cannot_run_here() && !error.lacks_tracing() => {
                Finding::LeftOut { reason: error.root_cause().to_string() }
            }
            // Results of a kernel that crashed or warned are unusable.
            Err(error) if error.is_kernel_failure() => {
                let pattern = named[number].0.clone();
                return Err(Error::InPattern { pattern, error: Box::new(error.into()) });
            }
            // The guest died; another one runs the remaining jobs.
            Err(error)
                if error.is_in_batch() && !error.lacks_tracing() && ended < MAX_ENDED_GUESTS =>
            {
                ended += 1;
                Finding::NotCompared { reason: error.without_image().to_string() }
            }
            Err(error) => return Err(error.into()),
        };
        let mut goes_on = true;
        if let Finding::Compared(found) = &mut finding
            && let Some(first) = &found.first
        {
            if differing == 0 && jobs.len() > 1 {
                engines.message_sink()(&first_difference_message(&named[number].0, first));
            }
            differing += 1;
            found.kernel = found.kernel.take().filter(|_| differing <= MAX_KEPT_LOGS);
            goes_on = !stops_at_first;
        }
        findings[number] = Some(finding);
        progress.advance();
        Ok(goes_on)
    })?;
    Ok(findings)
}
