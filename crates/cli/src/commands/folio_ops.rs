//! `filemap run` of operations over folios, and what other commands say of that workload.

use filemap_job::{EngineKind, FolioOps, JobSpec, Record, Run};
use filemap_kernel::folio_ops::{Measured, measure, samples};
use filemap_report::record;

use super::GivenJob;
use crate::Outcome;
use crate::args::RunArgs;
use crate::error::Error;
use crate::folio_ops::{self, Asked};
use crate::interrupt;
use crate::progress::Progress;
use crate::provenance;

/// Runs the operations and prints their record.
pub fn run((asked, spec): (GivenJob, JobSpec), args: &RunArgs) -> Result<Outcome, Error> {
    check(args)?;
    let output = args.output.open(&asked.inputs, &[])?;
    let job = spec.validate_folio_ops()?;
    let record = recorded(&job, args.apply)?;
    let apply = if args.apply { " --apply" } else { "" };
    let command = format!("{}{apply}", job.command());
    output.write(&record::report(&record, None, None, args.verbose, command))?;
    Ok(Outcome::Done)
}

fn recorded(job: &FolioOps, apply: bool) -> Result<Record, Error> {
    match job.engine {
        EngineKind::Model if apply => Err(Error::Usage(
            "--apply is for the running kernel; give --on kernel, or remove it".to_string(),
        )),
        EngineKind::Model => folio_ops::record(job, Asked::FileSize),
        EngineKind::Kernel => on_kernel(job, apply),
    }
}

fn on_kernel(job: &FolioOps, apply: bool) -> Result<Record, Error> {
    let (journal, _undoing) = interrupt::journal()?;
    let progress = Progress::new(usize::try_from(samples(job)).unwrap_or(usize::MAX));
    let Measured { runs, missing, environment } =
        measure(job, &journal, apply, || progress.advance())?;
    let run = |run| Run { seed: job.seed, folio_ops: Some(run), ..Run::default() };
    let runs = runs.into_iter().map(run).collect();
    let mut record = Record::of_folio_ops(job, job.engine.name(), environment, runs);
    record.warnings.extend(missing);
    provenance::stamp_record(&mut record);
    Ok(record)
}

/// Refuses flags of the command that say nothing of these operations.
fn check(args: &RunArgs) -> Result<(), Error> {
    let refused = |flag: &str, why: &str| {
        Err(Error::Usage(format!("{flag} does not go with --workload folio-ops, {why}")))
    };
    if args.log.is_some() {
        return refused("--log", "which makes no decisions; give --format csv for every figure");
    }
    if args.svg.is_some() {
        return refused("--svg", "which has no picture; give --format csv for every figure");
    }
    if args.seeds.is_some() {
        return refused("--seeds", "which draws no accesses; give --runs for more repeats");
    }
    Ok(())
}

/// Refuses the workload where `command` has nothing to say of it, and `instead` says what has.
pub fn refuse(spec: &JobSpec, command: &str, instead: &str) -> Result<(), Error> {
    match spec.is_folio_ops() {
        true => Err(Error::Usage(format!(
            "--workload folio-ops does not go with filemap {command}; {instead}"
        ))),
        false => Ok(()),
    }
}
