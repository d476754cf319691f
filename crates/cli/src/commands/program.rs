//! `filemap run` of a program: a job file with tables.

use filemap_job::{JobSpec, ProgramSpec};
use filemap_model::{run_program, trace_program};
use filemap_report::program;

use crate::Outcome;
use crate::args::RunArgs;
use crate::error::Error;
use crate::input;
use crate::log::LineLog;
use crate::output::{Output, Target};

/// Runs the program of the job file at `path` and prints what it did.
pub fn run(spec: &ProgramSpec, path: &str, args: RunArgs) -> Result<Outcome, Error> {
    let flags = JobSpec::from(args.job);
    if let Some(flag) = flags.flags().into_iter().next() {
        return Err(Error::Usage(format!(
            "{flag} is for a job of one file, and {path} is a program; put its value into {path}"
        )));
    }
    if args.apply {
        let message = "--apply is for the running kernel; a program runs in the model";
        return Err(Error::Usage(message.to_string()));
    }
    let of_file = |error| Error::InFile { path: path.to_string(), error: Box::new(error) };
    let profile = input::profile(spec.machine.as_deref())?;
    let program = spec.validate(input::host_release().as_deref());
    let program = program.map_err(|error| of_file(error.into()))?;
    let output = Output::open(&args.output, args.log.as_deref().map(|path| ("--log", path)))?;
    if let Some(path) = args.log.as_deref() {
        let alone = path == "-" && args.output.json.is_none();
        let mut log = LineLog::new(Target::open(path)?, alone)?;
        trace_program(&program, &profile, &mut log)?;
        log.finish()?;
    }
    let record = run_program(spec, &program, &profile)?;
    output.write(&program::report(&record, format!("filemap run {path}")))?;
    Ok(Outcome::Done)
}
