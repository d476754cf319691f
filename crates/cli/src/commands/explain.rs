//! `filemap explain`.

use filemap_study::explain;

use crate::Outcome;
use crate::args::ExplainArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::given::{self, Given};
use crate::output::Inputs;

/// Says where the bytes of a job came from, and why readahead stopped or went on.
pub fn run(args: ExplainArgs) -> Result<Outcome, Error> {
    let (given, inputs) = given::job(args.job_file.as_deref(), &args.job)?;
    explain_job(&given, &inputs, &args).map_err(|error| given.in_file(error))
}

fn explain_job(given: &Given, inputs: &Inputs, args: &ExplainArgs) -> Result<Outcome, Error> {
    let output = args.output.open(inputs, &[])?;
    if given.written.flags().runs.is_some_and(|runs| runs != 1) {
        let message = "--runs does not go with explain, which reads one log; remove it";
        return Err(Error::Usage(message.to_string()));
    }
    output.write(&explain::run(given, args.repeated.seeds, &RealEngines)?.report())?;
    Ok(Outcome::Done)
}
