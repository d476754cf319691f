//! `filemap explain`.

use filemap_study::explain;

use crate::Outcome;
use crate::args::ExplainArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::given::{self, Given, not_of_tables};
use crate::output::Inputs;

/// Says where a job's bytes came from, and why readahead stopped or did not.
pub fn run(args: ExplainArgs) -> Result<Outcome, Error> {
    let (given, inputs) = given::job(args.job_file.as_deref(), &args.job)?;
    explained(&given, &inputs, &args).map_err(|error| given.in_file(error))
}

fn explained(given: &Given, inputs: &Inputs, args: &ExplainArgs) -> Result<Outcome, Error> {
    let has_tables = given.written.tables().is_some();
    let of_one_file = [("--seeds", args.repeated.seeds.is_some()), ("--svg", args.svg.is_some())];
    if let Some((flag, _)) = of_one_file.into_iter().find(|(_, is_given)| *is_given && has_tables) {
        return Err(not_of_tables(flag, &given.name()));
    }
    let svg = ("--svg", args.svg.as_deref());
    let mut output = args.output.open(inputs, &[svg])?;
    if given.written.flags().runs.is_some_and(|runs| runs != 1) {
        let message = "--runs does not go with explain, which reads one log; remove it";
        return Err(Error::Usage(message.to_string()));
    }
    let report = explain::run(given, args.repeated.seeds, &RealEngines)?.report();
    if let Some(target) = output.take("--svg") {
        target.write(report.svg().as_bytes())?;
    }
    output.write(&report)?;
    Ok(Outcome::Done)
}
