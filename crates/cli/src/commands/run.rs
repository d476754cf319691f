//! `filemap run`.

use filemap_job::{EngineKind, Job};
use filemap_model::trace;
use filemap_study::engine::Engines;
use filemap_study::run::{Asked, Plan, RunRecord};
use filemap_study::traced_job;

use super::show_job;
use crate::Outcome;
use crate::args::RunArgs;
use crate::error::Error;
use crate::given::Given;
use crate::log::LineLog;
use crate::output::Output;

/// Runs one job on `engines` and prints its record.
pub fn run(args: RunArgs, engines: &impl Engines) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    let given = Given::new(args.job_file.clone(), args.job.clone())?;
    if args.show_job {
        return show_job::run(&given);
    }
    let recorded = recorded(&given, &args, engines);
    let (output, record) = recorded.map_err(|error| given.in_file(error))?;
    output.write(&record.report(args.verbose))?;
    Ok(Outcome::Done)
}

/// What comes out of one job, and where it goes.
fn recorded(
    given: &Given,
    args: &RunArgs,
    engines: &impl Engines,
) -> Result<(Output, RunRecord), Error> {
    let mut output = args.output.open(&given.inputs, &[("--log", args.log.as_deref())])?;
    let plan = Plan::of(given)?;
    if args.log.is_some() {
        check_log(&plan.job, args.seeds)?;
    }
    if let Some(target) = output.take("--log") {
        let mut log = LineLog::new(target);
        match plan.job.engine {
            EngineKind::Model => {
                // Its runs decide all the same.
                trace(&plan.job, &plan.profile, &mut log)?;
                log.finish()?;
            }
            // A run of its own: a trace takes time.
            EngineKind::Kernel => log.write_observed(&traced_job::observe(&plan.job, engines)?)?,
        }
    }
    let asked = Asked { seeds: args.seeds, apply: args.apply, history: output.has_record() };
    Ok((output, plan.run(engines, asked)?))
}

/// Refuses a log of what has none.
fn check_log(job: &Job, seeds: Option<u64>) -> Result<(), Error> {
    if seeds.is_some_and(|seeds| seeds > 1) {
        let message = "--log is for one seed; give that with --seed, and leave out --seeds";
        return Err(Error::Usage(message.to_string()));
    }
    let is_one = job.threads.len() == 1 && job.processes.len() == 1;
    if job.engine == EngineKind::Kernel && !is_one {
        let message =
            "--log of a kernel is for jobs of one thread; give --on model, or leave it out";
        return Err(Error::CannotRun(message.to_string()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;

    use super::*;
    use crate::args::{Cli, Command};
    use filemap_study::engine::mock::Mock;

    fn json(mock: &Mock, flags: &str) -> Result<Value, Error> {
        let words = "filemap run --workload random --file-size 1m --accesses 4 --seed 7";
        let cli = Cli::try_parse_from(words.split(' ').chain(flags.split(' '))).unwrap();
        let Command::Run(args) = cli.command else { unreachable!("the words name it") };
        let given = Given::new(args.job_file.clone(), args.job.clone())?;
        let (_, record) = recorded(&given, &args, mock)?;
        Ok(serde_json::from_str(&record.report(false).json).unwrap())
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
