//! `filemap compare`.

mod several;

use filemap_study::compare::{self, Asked, Comparison, Plan};
use filemap_study::engine::Engines;
use filemap_study::variants::Variant;

use crate::Outcome;
use crate::args::CompareArgs;
use crate::error::Error;
use crate::given::Given;
use crate::output::Output;

/// Runs a job in several variants on `on`, or several jobs, and prints what changes.
pub fn run(args: CompareArgs, on: &impl Engines) -> Result<Outcome, Error> {
    if args.job_files.len() > 1 {
        return several::run(args, on);
    }
    let given = Given::new(args.job_files.first().cloned(), args.job.clone())?;
    let (output, plan, comparison) = compared(given, &args, on)?;
    let apply = if args.apply { " --apply" } else { "" };
    let command = format!("{}{apply} --format kernel", plan.command);
    let letter = comparison.letter(command, plan.job_file().as_ref());
    output.write_compared(&comparison.report(args.verbose), &letter)?;
    Ok(Outcome::Done)
}

/// What comes out of the variants, and where it goes.
fn compared(
    mut given: Given,
    args: &CompareArgs,
    on: &impl Engines,
) -> Result<(Output, Plan, Comparison), Error> {
    let asked = asked(args);
    let variants = with_variants(&mut given, &asked)?;
    let output = args.output.open_compared(&given.inputs)?;
    let mut plan = Plan::of(given.into(), &variants, &asked)?;
    let comparison = plan.run(on, &asked)?;
    Ok((output, plan, comparison))
}

fn asked(args: &CompareArgs) -> Asked {
    Asked {
        variants: args.variants.clone(),
        images: args.job.image.clone(),
        modules: args.job.modules.clone(),
        seeds: args.seeds,
        apply: args.apply,
    }
}

/// The variants of a job that was `given`; their machine profiles are inputs of the command.
fn with_variants(given: &mut Given, asked: &Asked) -> Result<Vec<Variant>, Error> {
    let variants = compare::variants(given, asked)?;
    let profiles = variants.iter().filter_map(|variant| variant.value("machine"));
    profiles.for_each(|name| given.inputs.add_profile("machine of a variant", name));
    Ok(variants)
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
        let (_, _, comparison) = compared(given, &args, mock)?;
        Ok(serde_json::from_str(&comparison.report(false).json).unwrap())
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
