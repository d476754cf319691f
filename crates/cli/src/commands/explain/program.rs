//! `filemap explain` of a program: by file, mapping and open file.

use filemap_job::EngineKind;
use filemap_job::program::ProgramRecord;
use filemap_model::{Model, trace_program};
use filemap_report::explain::{self, ProgramExplainer};

use crate::Outcome;
use crate::args::ExplainArgs;
use crate::commands::program::{GivenProgram, not_of_programs, profile};
use crate::error::Error;
use crate::input::GivenFile;
use crate::judged::{self, Judged};
use crate::provenance;

/// Says where the bytes of the program of the job file at `path` came from.
pub fn run(given: GivenFile, path: &str, args: ExplainArgs) -> Result<Outcome, Error> {
    let flags = [("--seeds", args.seeds.is_some()), ("--svg", args.svg.is_some())];
    if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
        return Err(not_of_programs(flag, path));
    }
    let asked = GivenProgram::new(given, path, args.job)?;
    let output = args.output.open(&asked.inputs, &[])?;
    if asked.spec.runs.is_some_and(|runs| runs != 1) {
        let message = "--runs does not go with explain, which reads one log; remove it";
        return Err(Error::Usage(message.to_string()));
    }
    let mut spec = asked.spec.clone();
    let found = asked.resolve(&mut spec)?;
    let profile = found.on_device(profile(&mut spec)?);
    let program = asked.validate(&spec)?;
    if program.engine == EngineKind::Kernel {
        return Err(Error::CannotRun(
            "explain reads the model's log of a program; give --on model, or filemap compare --on \
             model,kernel for the counters of both"
                .to_string(),
        ));
    }
    let mut explainer = ProgramExplainer::new(&program);
    let run = trace_program(&program, &profile, &mut explainer)?;
    let explanation = explainer.finish();
    let ran = Model { profile }.ran(&program, vec![run]);
    let mut record = ProgramRecord::of(&program, provenance::stamped(ran));
    asked.leave_lists(&mut record);
    record.warnings = found.warnings;
    let kernel = asked.spec.kernel.as_deref();
    record.warnings.extend(judged::warnings(kernel, &[Judged::from(&program)])?);
    let command = asked.command("explain");
    output.write(&explain::of_program(&explanation, &program, &record, command))?;
    Ok(Outcome::Done)
}
