//! `filemap explain`.

use filemap_study::explain;

use crate::Outcome;
use crate::args::ExplainArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::job_input::{self, JobInput};
use crate::output::Inputs;

/// Explains which bytes a job read and why readahead stopped or continued.
pub fn run(args: ExplainArgs) -> Result<Outcome, Error> {
    let (input, inputs) = job_input::read(args.job_file.as_deref(), &args.job)?;
    explain_job(&input, &inputs, &args).map_err(|error| input.in_file(error))
}

fn explain_job(input: &JobInput, inputs: &Inputs, args: &ExplainArgs) -> Result<Outcome, Error> {
    let output = args.output.open(inputs, &[])?;
    if input.spec.runs.is_some_and(|runs| runs != 1) {
        let message = "--runs does not go with explain, which reads one log; remove it";
        return Err(Error::Usage(message.to_string()));
    }
    output.write(&explain::run(input, args.repeated.seeds, &RealEngines)?.report())?;
    Ok(Outcome::Done)
}
