//! `filemap run` of a program: a job file with tables.

use filemap_job::{JobSpec, ProgramSpec};
use filemap_model::{run_program, trace_program};
use filemap_report::program;

use crate::Outcome;
use crate::args::RunArgs;
use crate::error::Error;
use crate::host;
use crate::input;
use crate::log::LineLog;
use crate::output::{Inputs, Output};
use crate::provenance;

/// Runs the program of the job file at `path` and prints what it did.
pub fn run(spec: &ProgramSpec, path: &str, args: RunArgs) -> Result<Outcome, Error> {
    let flags = JobSpec::from(args.job).flags();
    let seeds = args.seeds.is_some().then(|| "--seeds".to_string());
    if let Some(flag) = flags.into_iter().chain(seeds).next() {
        return Err(Error::Usage(format!(
            "{flag} is for a job of one file, and {path} is a program; remove the flag, or put its \
             value into {path}"
        )));
    }
    if args.apply {
        let message = "--apply is for the running kernel; a program runs in the model";
        return Err(Error::Usage(message.to_string()));
    }
    let mut machine = JobSpec { machine: spec.machine.clone(), ..JobSpec::default() };
    let mut inputs = Inputs::of(Some(path), &[], &[], &machine);
    spec.file.iter().for_each(|file| inputs.add_file_of_program(file));
    let mut output = Output::open(&args.output, &inputs, &[("--log", args.log.as_deref())])?;
    let profile = input::profile(&mut machine)?;
    let mut spec = ProgramSpec { machine: machine.machine, ..spec.clone() };
    let warnings = host::existing_files(&mut spec, path)?;
    let program = spec.validate(input::host_release().as_deref());
    let of_file =
        |error| Error::InFile { path: path.to_string(), error: Box::new(Error::from(error)) };
    let program = program.map_err(of_file)?;
    if let Some(target) = output.take("--log") {
        let mut log = LineLog::new(target);
        trace_program(&program, &profile, &mut log)?;
        log.finish()?;
    }
    let mut record = run_program(&spec, &program, &profile)?;
    record.warnings = warnings;
    provenance::stamp(&mut record.environment, &record.engine);
    output.write(&program::report(
        &record,
        format!("filemap run {}", filemap_job::shell_word(path)),
    ))?;
    Ok(Outcome::Done)
}
