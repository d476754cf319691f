//! Compares a program's decisions file by file.

use filemap_job::{Job, JobSpec};

use super::compared_kernel::ComparedKernel;
use super::outcome::footer;
use super::record::{ConformRecord, Finding};
use super::verdict::{ComparedJob, conformance};
use crate::console;
use crate::engine::Engines;
use crate::error::Error;

/// Compares the decisions of a kernel and of the model in `program`. `path` is its name, `job` its
/// job file; `command` repeats the comparison.
///
/// # Errors
/// If the order of its decisions is undetermined, if it decides nothing, or if the kernel cannot be
/// traced.
pub fn conform_program(
    program: &Job,
    path: &str,
    job: &str,
    on: &ComparedKernel,
    engines: &impl Engines,
    command: String,
) -> Result<ConformRecord, Error> {
    check(program, path)?;
    let (journal, _undoing) = engines.journal()?;
    let mut bench = on.bench(&journal, engines)?;
    let findings = bench.compare(program)?;
    let compared =
        program.files.iter().zip(findings).enumerate().map(|(file, (named, finding))| {
            let (name, text) = (format!("file {}", named.name), job.to_string());
            ComparedJob { name, text, spec: None, job: program, file, finding }
        });
    // No decisions about a file that is not accessed.
    let untouched =
        |job: &ComparedJob| matches!(&job.finding, Finding::Compared(own) if own.decisions == 0);
    let (untouched, mut compared): (Vec<ComparedJob>, Vec<ComparedJob>) =
        compared.partition(untouched);
    if compared.is_empty() {
        compared = untouched;
    }
    let progress = engines.progress(None);
    let validate = |spec: &JobSpec| spec.validate(Some(&on.release));
    let found = conformance(&compared, on, &mut bench, &validate, &*progress)?;
    let mut footer = footer(Some(&program.rules), on, &bench, command);
    let complaints: Vec<_> = bench.take_complaints().into_iter().map(|(_, own)| own).collect();
    console::add_incidents(&mut footer.environment, &complaints, "");
    Ok(ConformRecord { footer, ..found })
}

fn check(program: &Job, path: &str) -> Result<(), Error> {
    if program.threads.len() > 1 {
        return Err(Error::CannotRun(format!(
            "{path} has {} threads, whose decisions come in another order each time; compare \
             counters with filemap compare --on model,kernel",
            program.threads.len()
        )));
    }
    if program.processes.len() > 1 {
        return Err(Error::CannotRun(format!(
            "{path} has a second process, whose decisions are not traced; leave out process, or \
             compare counters with filemap compare --on model,kernel"
        )));
    }
    if !program.steps().any(|step| step.decides() && !program.is_direct(step)) {
        return Err(Error::Usage(format!(
            "{path} makes no access, and no advice of it reads anything, so there is no decision \
             to compare; add a [[thread.phase]] with a workload"
        )));
    }
    Ok(())
}
