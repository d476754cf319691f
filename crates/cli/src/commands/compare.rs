//! `filemap compare`.

mod asked;
mod booted;
mod comparison;
mod several;
mod unseen;

use filemap_report::{Letter, Report};
use filemap_study::compare::{self, JobFile};

use comparison::{Compared, Comparison};

use crate::Outcome;
use crate::args::CompareArgs;
use crate::error::Error;
use crate::given::Given;
use crate::output::Output;
use filemap_study::engine::{self, Engines};
use filemap_study::input;
use filemap_study::seeds;

/// Runs a job in several variants on `on`, or several jobs, and prints what changes.
pub fn run(args: CompareArgs, on: &impl Engines) -> Result<Outcome, Error> {
    if args.job_files.len() > 1 {
        return several::run(args, on);
    }
    let given = Given::new(args.job_files.first().cloned(), args.job.clone())?;
    let (output, report, letter) = reported(given, &args, on)?;
    output.write_compared(&report, &letter)?;
    Ok(Outcome::Done)
}

/// What comes out of the variants, and where it goes.
fn reported(
    mut given: Given,
    args: &CompareArgs,
    on: &impl Engines,
) -> Result<(Output, Report, Letter), Error> {
    let variants = comparison::with_variants(&mut given, args)?;
    let output = args.output.open_compared(&given.inputs)?;
    let mut comparison = Comparison::of(given, variants, args)?;
    let (jobs, profiles) = (&comparison.jobs, &mut comparison.profiles);
    let begun = seeds::spent();
    let records = engine::run_jobs(on, jobs, profiles, args.seeds.unwrap_or(1), args.apply);
    let records = records.map_err(|error| comparison.given.in_file(error))?;
    let took = seeds::spent() - begun;
    let Compared { cells, warnings } = comparison.compared(records, args, took)?;
    let job_file = comparison.job_file();
    let command = comparison.command;
    let of_letter = letter_command(&command, args.apply);
    let letter = compare::letter(&cells, &warnings, of_letter, job_file.as_ref());
    Ok((output, compare::report(&cells, &warnings, args.verbose, command), letter))
}

/// The command that prints the same letter as `command` prints a report.
fn letter_command(command: &str, apply: bool) -> String {
    let apply = if apply { " --apply" } else { "" };
    format!("{command}{apply} --format kernel")
}

/// The job file at `path`, for a letter.
fn job_file(path: &str) -> JobFile {
    let text = match std::fs::metadata(path) {
        // Anything else has been read already, and would be waited for.
        Ok(data) if data.is_file() => input::read("job file", path, input::MAX_JOB_BYTES),
        _ => return JobFile { path: path.to_string(), text: Err("it is no file".to_string()) },
    };
    JobFile { path: path.to_string(), text: text.map_err(|error| error.to_string()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;

    use super::*;
    use crate::args::{Cli, Command};
    use filemap_study::engine::mock::Mock;

    fn json(mock: &Mock, flags: &str) -> Result<Value, Error> {
        let words = "filemap compare --workload random --file-size 1m --accesses 4 --seed 7";
        let cli = Cli::try_parse_from(words.split(' ').chain(flags.split(' '))).unwrap();
        let Command::Compare(args) = cli.command else { unreachable!("the words name it") };
        let given = Given::new(None, args.job.clone())?;
        let (_, report, _) = reported(given, &args, mock)?;
        Ok(serde_json::from_str(&report.json).unwrap())
    }

    #[test]
    fn every_variant_runs_on_every_engine_in_turn() {
        let mock = Mock::with_io_bytes(12_345_000);
        let flags = "--variants baseline,advice=random --on model,kernel --runs 2";
        let report = json(&mock, flags).unwrap();
        let mut turns = mock.turns();
        // Those of the model run beside each other.
        turns[..2].sort();
        let turn = |engine: &str, advice: &str| format!("{engine}: run {advice} 7");
        let model = ["normal", "random"].map(|advice| turn("model beside the host", advice));
        let host = ["normal", "random", "normal", "random"].map(|advice| turn("host", advice));
        assert_eq!(turns, [model.as_slice(), &host].concat());
        let cells = report["cells"].as_array().unwrap().iter();
        let cells = cells.map(|cell| [cell["engine"].as_str(), cell["variant"].as_str()]);
        let expected = [
            ["model", "baseline"],
            ["model", "advice=random"],
            ["kernel", "baseline"],
            ["kernel", "advice=random"],
        ];
        assert_eq!(cells.collect::<Vec<_>>(), expected.map(|cell| cell.map(Some)));
    }

    #[test]
    fn boots_have_their_turns_after_what_runs_here() {
        let mock = Mock::default();
        let flags = "--variants baseline,advice=random --on model,kernel --runs 2 --seeds 2";
        json(&mock, flags).unwrap();
        assert_eq!(mock.turns().len(), 4 + 8);
    }

    #[test]
    fn a_variant_that_fails_ends_the_comparison() {
        let mock = Mock::failing("host: run random 7");
        let flags = "--variants baseline,advice=random --on kernel --runs 2";
        let error = json(&mock, flags).unwrap_err();
        assert_eq!((error.exit_code(), mock.turns().len()), (4, 2));
    }
}
