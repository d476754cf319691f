//! `filemap run`.

use filemap_job::{EngineKind, Job, Record};
use filemap_model::{Profile, trace};
use filemap_report::Report;
use filemap_study::explain::{Explainer, ProgramRecorder, Sight};
use filemap_study::record::{self, Courses};

use super::{show_job, with_seeds};
use crate::Outcome;
use crate::args::RunArgs;
use crate::error::Error;
use crate::given::{self, Given};
use crate::log::LineLog;
use crate::output::Output;
use filemap_study::engine::{self, Engines};
use filemap_study::kernel_match;
use filemap_study::seeds::{self, Cell};
use filemap_study::traced_job;

/// Runs one job on `engines` and prints its record.
pub fn run(args: RunArgs, engines: &impl Engines) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    let given = Given::new(args.job_file.clone(), args.job.clone())?;
    if args.show_job {
        return show_job::run(&given);
    }
    let reported = reported(&given, args, engines);
    let (output, report) = reported.map_err(|error| given.in_file(error))?;
    output.write(&report)?;
    Ok(Outcome::Done)
}

/// What comes out of one job, and where it goes.
fn reported(
    given: &Given,
    args: RunArgs,
    engines: &impl Engines,
) -> Result<(Output, Report), Error> {
    let log = ("--log", args.log.as_deref());
    let mut output = args.output.open(&given.inputs, &[log])?;
    let mut written = given.written.clone();
    let found = given.resolve(&mut written)?;
    let mut profile = found.on_device(given::profile(&mut written)?);
    let job = given.validate(&written)?;
    kernel_match::check(&job)?;
    if args.log.is_some() {
        check_log(&job, args.seeds)?;
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
            EngineKind::Kernel => log.write_observed(&traced_job::observe(&job, engines)?)?,
        }
    }
    let (jobs, seeds) = (std::slice::from_ref(&job), args.seeds.unwrap_or(1));
    let profiles = std::slice::from_mut(&mut profile);
    let begun = seeds::spent();
    let mut record = one(engine::run_jobs(engines, jobs, profiles, seeds, args.apply)?);
    let took = seeds::spent() - begun;
    given.leave_lists(&mut record);
    record.warnings = found.warnings;
    record.warnings.extend(job.without_effect());
    record.warnings.extend(job.told_of_seeds(seeds));
    record.warnings.extend(kernel_match::warnings(given.kernel().as_deref(), &[&job])?);
    if args.seeds.is_none() {
        let cell = Cell { name: "this job", job: &job, profile: &profile, record: &record };
        let warnings = seeds::warnings(&[cell], took)?;
        record.warnings.extend(warnings);
    }
    let history = if output.has_record() { history(&job, &profile, &record)? } else { None };
    let command = with_seeds(given.command("run", &job), args.seeds);
    let report = record::report(&record, Some(&job), history.as_ref(), args.verbose, command);
    Ok((output, report))
}

/// Refuses a log of what has none.
fn check_log(job: &Job, seeds: Option<u64>) -> Result<(), Error> {
    if seeds.is_some_and(|seeds| seeds > 1) {
        let message = "--log is of one seed; give that with --seed, and leave out --seeds";
        return Err(Error::Usage(message.to_string()));
    }
    let is_one = job.threads.len() == 1 && job.processes.len() == 1;
    if job.engine == EngineKind::Kernel && !is_one {
        let message = "--log of a kernel is of one thread; give --on model, or leave it out";
        return Err(Error::CannotRun(message.to_string()));
    }
    Ok(())
}

/// What was read in the course of the first run of a job, where it runs in the model.
fn history(job: &Job, profile: &Profile, record: &Record) -> Result<Option<Courses>, Error> {
    // One table can stand for many files, of which the record has the sum.
    if job.engine != EngineKind::Model || job.is_counted() {
        return Ok(None);
    }
    if job.of_flags.is_some() {
        let mut explainer = Explainer::new(job, Sight::Every);
        trace(job, profile, &mut explainer)?;
        return Ok(Some(Courses::OneFile(Box::new(explainer.finish().whole_history()))));
    }
    let read = record.runs[0].files.iter().map(|file| file.data_pages_read.unwrap_or(0));
    let mut recorder = ProgramRecorder::new(job, &read.collect::<Vec<_>>());
    trace(job, profile, &mut recorder)?;
    Ok(Some(Courses::Files(Box::new(recorder.finish()))))
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
    use filemap_study::engine::mock::Mock;

    fn json(mock: &Mock, flags: &str) -> Result<Value, Error> {
        let words = "filemap run --workload random --file-size 1m --accesses 4 --seed 7";
        let cli = Cli::try_parse_from(words.split(' ').chain(flags.split(' '))).unwrap();
        let Command::Run(args) = cli.command else { unreachable!("the words name it") };
        let given = Given::new(args.job_file.clone(), args.job.clone())?;
        let (_, report) = reported(&given, args, mock)?;
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
