//! Jobs of one file in the model and on a kernel.

use filemap_job::{Job, JobSpec};

use super::asked::{Asked, without_image};
use super::bench::Bench;
use super::comparison::Comparison;
use super::outcome::{check_left_out, footer};
use super::record::{Conformance, Finding};
use crate::engine::Engines;
use crate::error::Error;
use crate::random_jobs::shrink;

/// Most jobs that are tried to shrink one.
const MAX_ATTEMPTS: usize = 150;

/// Of these, so many are sent to a booted kernel together.
const SENT_AT_ONCE: usize = 4;

/// So many machines may end over a job before a comparison is given up.
const MOST_ENDED: u32 = 3;

/// Compares what a kernel decides in jobs, each with its name, with what the model decides. Those
/// that differ are made smaller where it `shrinks` them. `command` says what repeats it, by the
/// first of the jobs.
///
/// # Errors
/// A kernel that cannot be watched; jobs none of which can be run here.
pub fn of_jobs(
    named: &[(String, JobSpec)],
    on: &Asked,
    shrinks: bool,
    engines: &impl Engines,
    command: impl FnOnce(&Job) -> String,
) -> Result<Conformance, Error> {
    let validate = |spec: &JobSpec| on.on_kernel(spec).validate(Some(&on.release));
    let jobs = named.iter().map(|(_, spec)| validate(spec)).collect::<Result<Vec<_>, _>>()?;
    let (journal, _undoing) = engines.journal()?;
    let mut bench = on.bench(&journal, engines)?;
    let findings = findings(&mut bench, &jobs, engines)?;
    let mut patterns = Vec::new();
    let mut shrunk = 0;
    for (((name, spec), job), mut finding) in named.iter().zip(&jobs).zip(findings) {
        let mut job = job.clone();
        if let (Finding::Compared(found), true) = (&finding, shrinks)
            && found.mismatches > 0
            && shrunk < on.most_shrunk()
        {
            let last = |(_, found): &Differing| found.first.as_ref()?.access;
            let begun = (job, found.clone());
            let (_, smallest) = shrink(spec, begun, MAX_ATTEMPTS, last, |specs| {
                differing(&mut bench, specs, validate)
            })?;
            (job, finding) = (smallest.0, Finding::Compared(smallest.1));
            shrunk += 1;
        }
        let job = without_image(&job).to_toml();
        patterns.push(bench.compared().pattern(name.clone(), finding, job));
    }
    let command = jobs.first().map_or(String::new(), command);
    let footer = footer(jobs.first().map(|job| &job.rules), on, &bench, command);
    let found = bench.compared().conformance(patterns, footer);
    check_left_out(&found)?;
    Ok(found)
}

/// A job in which kernel and model differ, and how.
type Differing = (Job, Comparison);

/// What is found of each of `jobs`. Where they are several, what one needs and is not there keeps
/// the others from nothing.
fn findings(
    bench: &mut Bench,
    jobs: &[Job],
    engines: &impl Engines,
) -> Result<Vec<Finding>, Error> {
    let progress = engines.progress(Some(jobs.len() as u64));
    let mut findings: Vec<Option<Finding>> = vec![None; jobs.len()];
    let mut ended = 0;
    bench.compare_all(&jobs.iter().collect::<Vec<_>>(), |number, found| {
        findings[number] = Some(match found {
            Ok(mut of_files) => of_files.remove(0),
            // A kernel that shows nothing shows nothing of any job.
            Err(error) if jobs.len() > 1 && error.cannot_run_here() && !error.is_of_tracing() => {
                Finding::LeftOut { reason: error.cause().to_string() }
            }
            // The machine that ran it is over, and another one runs the rest.
            Err(error) if error.is_in_list() && !error.is_of_tracing() && ended < MOST_ENDED => {
                ended += 1;
                Finding::NotCompared { reason: error.without_image().to_string() }
            }
            Err(error) => return Err(error.into()),
        });
        progress.advance();
        Ok(true)
    })?;
    Ok(findings.into_iter().map(|found| found.expect("each job is told of")).collect())
}

/// The first of `specs` of which kernel and model differ, and how. Those that are no jobs, or that
/// cannot be run, do not differ.
fn differing(
    bench: &mut Bench,
    specs: &[JobSpec],
    validate: impl Fn(&JobSpec) -> Result<Job, filemap_job::Error>,
) -> Result<Option<(usize, Differing)>, Error> {
    let valid = specs.iter().enumerate().filter_map(|(at, spec)| Some((at, validate(spec).ok()?)));
    let valid: Vec<(usize, Job)> = valid.collect();
    // Few at once: what is sent to a booted kernel runs there, also after the one that differs.
    for few in valid.chunks(SENT_AT_ONCE) {
        let mut differing = None;
        let jobs: Vec<&Job> = few.iter().map(|(_, job)| job).collect();
        bench.compare_all(&jobs, |number, found| {
            if let Ok(Some(Finding::Compared(found))) = found.map(|found| found.into_iter().next())
                && found.mismatches > 0
            {
                let (at, job) = few[number].clone();
                differing = Some((at, (job, found)));
            }
            Ok(differing.is_none())
        })?;
        if differing.is_some() {
            return Ok(differing);
        }
    }
    Ok(None)
}
