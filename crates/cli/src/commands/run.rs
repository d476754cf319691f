//! `filemap run`.

use filemap_job::program::Program;
use filemap_job::{EngineKind, Job, JobSpec, Record, Thrash};
use filemap_report::{Report, record, thrash};

use super::flag_job::FlagJob;
use super::{GivenJob, program, show_job, svg_of_thrash, with_seeds};
use crate::Outcome;
use crate::args::RunArgs;
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
pub fn run(
    args: RunArgs,
    engines: &(impl Engines<Job> + Engines<Thrash> + Engines<Program>),
) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    if let Some(path) = &args.job_file
        && let Some(given) = input::program(path)?
    {
        let path = path.clone();
        if args.show_job {
            return show_job::of_program(given, &path, args.job);
        }
        return program::run(given, &path, args, engines)
            .map_err(|error| program::in_file(&path, error));
    }
    let given = GivenJob::new(args.job_file.clone(), args.job.clone())?;
    if args.show_job {
        return show_job::of_flags(given);
    }
    let (output, report) = match given.1.is_thrash() {
        true => reported::<Thrash>(given, args, engines)?,
        false => reported::<Job>(given, args, engines)?,
    };
    output.write(&report)?;
    Ok(Outcome::Done)
}

/// What comes out of one job, and where it goes.
fn reported<J>(
    (asked, mut spec): (GivenJob, JobSpec),
    args: RunArgs,
    engines: &impl Engines<J>,
) -> Result<(Output, Report), Error>
where
    J: FlagJob,
{
    let log = ("--log", args.log.as_deref());
    let svg = ("--svg", svg_of_thrash(args.svg.as_deref(), &spec)?);
    let mut output = args.output.open(&asked.inputs, &[log, svg])?;
    let found = host::resolve(&mut spec)?;
    let mut profile = found.on_device(machine_profile::of(&mut spec)?);
    let job = J::of_spec(spec)?;
    judged::check(&Judged::from(&job))?;
    if args.seeds.is_some_and(|seeds| seeds > 1) && args.log.is_some() {
        let message = "--log is of one seed; give that with --seed, and leave out --seeds";
        return Err(Error::Usage(message.to_string()));
    }
    if let Some(target) = output.take("--log") {
        let mut log = LineLog::new(target);
        match job.engine() {
            EngineKind::Model => {
                // Its runs decide all the same.
                job.decide(&profile, &mut log)?;
                log.finish()?;
            }
            // A run of its own: a trace takes time.
            EngineKind::Kernel => log.write_observed(&job.observe()?)?,
        }
    }
    let (jobs, seeds) = (std::slice::from_ref(&job), args.seeds.unwrap_or(1));
    let profiles = std::slice::from_mut(&mut profile);
    let mut record = one(engine::run_seeds(engines, jobs, profiles, seeds, args.apply)?);
    record.warnings = found.warnings;
    record.warnings.extend(job.without_effect(&record.runs.iter().collect::<Vec<_>>()));
    record.warnings.extend(judged::warnings(asked.kernel.as_deref(), &[Judged::from(&job)])?);
    if let (Some(job), None) = (job.of_one_file(), args.seeds) {
        let profile = &profile;
        let cell = Cell { name: "this job", job, profile, record: &record };
        record.warnings.extend(seeds::warnings(&[cell])?);
    }
    if let Some(target) = output.take("--svg") {
        target.write(thrash::svg(&record).as_bytes())?;
    }
    let history = if output.has_record() { job.history(&profile)? } else { None };
    let command = with_seeds(asked.command("run", &job), args.seeds);
    let of_one_file = job.of_one_file();
    let report = record::report(&record, of_one_file, history.as_ref(), args.verbose, command);
    Ok((output, report))
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
        let (_, report) = reported::<Job>(given, args, mock)?;
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
