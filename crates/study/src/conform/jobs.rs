//! Jobs of one file in the model and on a kernel.

use filemap_job::{Job, JobSpec};

use super::asked::{ComparedKernel, job_file};
use super::bench::ConformBench;
use super::difference_text::first_difference_message;
use super::outcome::{check_any_compared, footer};
use super::record::{ConformRecord, Finding};
use super::verdict::{ComparedJob, conformance};
use crate::console;
use crate::engine::Engines;
use crate::error::Error;

/// So many machines may end over a job before a comparison is given up.
const MAX_ENDED_GUESTS: u32 = 3;

/// The logs of so many jobs that differ are kept at most, to try other series on them.
const MAX_KEPT_LOGS: usize = 100;

/// Compares what a kernel decides in jobs, each with its name, with what the model decides; with
/// `stops_at_first` up to the first that differs. `command` says what repeats it, by the first of
/// the jobs.
///
/// # Errors
/// A kernel that cannot be watched; jobs none of which can be run here.
pub fn of_jobs(
    named: &[(String, JobSpec)],
    on: &ComparedKernel,
    stops_at_first: bool,
    engines: &impl Engines,
    command: impl FnOnce(&Job) -> String,
) -> Result<ConformRecord, Error> {
    // An invalid job is an error on every machine, whether or not this one can run conform.
    let first = named.first().map(|(_, job)| validated(job, on)).transpose()?;
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

/// The same on `bench`, with a footer that has only what the kernel warned of.
pub(super) fn on_bench(
    named: &[(String, JobSpec)],
    on: &ComparedKernel,
    stops_at_first: bool,
    bench: &mut ConformBench,
    engines: &impl Engines,
) -> Result<ConformRecord, Error> {
    let jobs = named.iter().map(|(_, job)| validated(job, on)).collect::<Result<Vec<_>, _>>()?;
    let findings = findings(bench, named, &jobs, stops_at_first, engines)?;
    let complaints = bench.take_complaints();
    if findings.len() > jobs.iter().zip(&findings).filter(|(_, found)| found.is_some()).count() {
        // What was sent to a kernel that is booted would run there first.
        bench.discard_pending(engines.message_sink());
    }
    let of = named.iter().zip(&jobs).zip(findings);
    let compared = of.filter_map(|(((name, spec), job), finding)| {
        let text = job_file(if spec.is_single_mapping() { &job.spec } else { spec });
        let spec = Some(spec);
        Some(ComparedJob { name: name.clone(), text, spec, job, file: 0, finding: finding? })
    });
    let compared: Vec<ComparedJob> = compared.collect();
    let progress = engines.progress(None);
    let mut found = conformance(&compared, on, bench, &|job| validated(job, on), &*progress)?;
    let noted = &mut found.footer.environment;
    for (number, complaint) in complaints {
        console::add_incidents(noted, &[complaint], &named[number].0);
    }
    for (_, complaint) in bench.take_complaints() {
        console::add_incidents(noted, &[complaint], "a smaller job");
    }
    Ok(found)
}

/// A job for the kernel in question.
fn validated(spec: &JobSpec, on: &ComparedKernel) -> Result<Job, filemap_job::Error> {
    on.on_kernel(spec).validate(Some(&on.release))
}

/// What is found of each of `jobs`; `None` of those that were not reached. Where they are several,
/// what one needs and is not there keeps the others from nothing.
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
            // A kernel that shows nothing shows nothing of any job.
            Err(error) if jobs.len() > 1 && error.cannot_run_here() && !error.lacks_tracing() => {
                Finding::LeftOut { reason: error.root_cause().to_string() }
            }
            // What a kernel does that broke down once is of no use.
            Err(error) if error.is_kernel_failure() => {
                let pattern = named[number].0.clone();
                return Err(Error::InPattern { pattern, error: Box::new(error.into()) });
            }
            // The machine that ran it is over, and another one runs the rest.
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
