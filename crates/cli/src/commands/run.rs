//! `filemap run`.

use filemap_job::{EngineKind, Job, JobSpec, Record};
use filemap_model::{Profile, trace};
use filemap_report::explain::{Explainer, History, Sight};
use filemap_report::{Report, record};

use super::program::GivenProgram;
use super::{GivenJob, program, show_job, with_seeds};
use crate::Outcome;
use crate::args::RunArgs;
use crate::decided;
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::host;
use crate::input;
use crate::judged::{self, Judged};
use crate::log::LineLog;
use crate::machine_profile;
use crate::output::Output;
use crate::seeds::{self, Cell};

/// Runs one job on `engines` and prints its record.
pub fn run(args: RunArgs, engines: &impl Engines) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    if let Some(path) = &args.job_file
        && let Some(given) = input::program(path)?
    {
        let asked = GivenProgram::new(given, path, args.job.clone())?;
        return of_program(asked, args, engines);
    }
    let given = GivenJob::new(args.job_file.clone(), args.job.clone())?;
    if given.1.is_thrash() {
        return of_program(GivenProgram::of_thrash(given)?, args, engines);
    }
    if args.show_job {
        return show_job::of_flags(given);
    }
    let (output, report) = reported(given, args, engines)?;
    output.write(&report)?;
    Ok(Outcome::Done)
}

fn of_program(
    asked: GivenProgram,
    args: RunArgs,
    engines: &impl Engines,
) -> Result<Outcome, Error> {
    if args.show_job {
        return show_job::of_program(&asked);
    }
    let path = asked.path.clone();
    program::run(asked, args, engines).map_err(|error| program::in_file(&path, error))
}

/// What comes out of one job, and where it goes.
fn reported(
    (asked, mut spec): (GivenJob, JobSpec),
    args: RunArgs,
    engines: &impl Engines,
) -> Result<(Output, Report), Error> {
    let log = ("--log", args.log.as_deref());
    let mut output = args.output.open(&asked.inputs, &[log])?;
    let found = host::resolve(&mut spec)?;
    let mut profile = found.on_device(machine_profile::of(&mut spec)?);
    let job = spec.validate(input::host_release().as_deref())?;
    judged::check(&Judged::from(&job))?;
    if args.seeds.is_some_and(|seeds| seeds > 1) && args.log.is_some() {
        let message = "--log is of one seed; give that with --seed, and leave out --seeds";
        return Err(Error::Usage(message.to_string()));
    }
    if let Some(target) = output.take("--log") {
        let mut log = LineLog::new(target);
        match job.engine {
            EngineKind::Model => {
                // Its runs decide all the same.
                trace(&job, &profile, &mut log)?;
                log.finish()?;
            }
            // A run of its own: a trace takes time.
            EngineKind::Kernel => log.write_observed(&decided::observe(&job.program())?)?,
        }
    }
    let (jobs, seeds) = (std::slice::from_ref(&job), args.seeds.unwrap_or(1));
    let profiles = std::slice::from_mut(&mut profile);
    let mut record = one(engine::run_jobs(engines, jobs, profiles, seeds, args.apply)?);
    record.warnings = found.warnings;
    record.warnings.extend(job.without_effect());
    record.warnings.extend(judged::warnings(asked.kernel.as_deref(), &[Judged::from(&job)])?);
    if args.seeds.is_none() {
        let cell = Cell { name: "this job", job: &job, profile: &profile, record: &record };
        let warnings = seeds::warnings(&[cell])?;
        record.warnings.extend(warnings);
    }
    let history = if output.has_record() { history(&job, &profile)? } else { None };
    let command = with_seeds(asked.command("run", &job), args.seeds);
    let report = record::report(&record, Some(&job), history.as_ref(), args.verbose, command);
    Ok((output, report))
}

/// What was read in the course of the run of a job, where it runs in the model.
fn history(job: &Job, profile: &Profile) -> Result<Option<History>, Error> {
    if job.engine != EngineKind::Model {
        return Ok(None);
    }
    let mut explainer = Explainer::new(job, Sight::Every);
    trace(job, profile, &mut explainer)?;
    Ok(Some(explainer.finish().whole_history()))
}

fn one(records: Vec<Record>) -> Record {
    records.into_iter().next().expect("one job has one record")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;

    use super::*;
    use crate::args::{Cli, Command};
    use crate::engine::mock::Mock;

    fn json(mock: &Mock, flags: &str) -> Result<Value, Error> {
        let words = "filemap run --workload random --file-size 1m --accesses 4 --seed 7";
        let cli = Cli::try_parse_from(words.split(' ').chain(flags.split(' '))).unwrap();
        let Command::Run(args) = cli.command else { unreachable!("the words name it") };
        let given = GivenJob::new(args.job_file.clone(), args.job.clone())?;
        let (_, report) = reported(given, args, mock)?;
        Ok(serde_json::from_str(&report.json).unwrap())
    }

    #[test]
    fn a_record_is_reported_as_the_engine_made_it() {
        let mock = Mock::default();
        let report = json(&mock, "--on kernel --runs 3 --seeds 2").unwrap();
        assert_eq!(mock.turns().len(), 6);
        let read = |run: &Value| run["counters"]["data_pages_read"].as_u64().unwrap();
        let runs: Vec<u64> = report["runs"].as_array().unwrap().iter().map(read).collect();
        assert_eq!(runs, [1, 2, 3, 4, 5, 6]);
        assert_eq!(report["engine"], "kernel");
        let command = report["command"].as_str().unwrap();
        assert!(command.contains("--runs 3") && command.ends_with("--seeds 2"), "{command}");
    }

    #[test]
    fn what_fails_is_told_as_the_engine_said_it() {
        let mock = Mock::failing("host: run normal 7");
        let error = json(&mock, "--on kernel --runs 3").unwrap_err();
        assert_eq!(error.one_line(), "host: run normal 7 failed");
        assert_eq!((error.exit_code(), mock.turns().len()), (4, 1));
    }
}
