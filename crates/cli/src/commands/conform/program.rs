//! `filemap conform` of a program: its decisions, file by file.

use filemap_job::{EngineKind, ProgramSpec, Written};
use filemap_study::conform::Pattern;

use super::asked::Asked;
use super::verdict::{footer, outcome};
use crate::Outcome;
use crate::args::ConformArgs;
use crate::error::Error;
use crate::given::{Given, not_of_tables};
use crate::interrupt;

/// Compares what a kernel decides in the job that was `asked` for, which has these `tables`, with
/// what the model decides.
pub fn run(asked: &Given, tables: &ProgramSpec, args: ConformArgs) -> Result<Outcome, Error> {
    let path = asked.name();
    if args.fuzz.is_some() {
        return Err(not_of_tables("--fuzz", &path));
    }
    let output = args.output.open(&asked.inputs, &[])?;
    let on = Asked::take(&asked.flags, &mut tables.shared())?;
    let mut spec = tables.clone().overlay(&on.on_kernel(&tables.shared()));
    spec.on = Some(EngineKind::Kernel.to_string());
    let mut written = Written::Tables(Box::new(spec));
    asked.resolve(&mut written)?;
    let program = asked.validate_for(&written, Some(&on.release))?;
    if program.threads.len() > 1 {
        return Err(Error::CannotRun(format!(
            "{path} has {} threads, whose decisions come in another order each time; compare \
             counters with filemap compare --on model,kernel",
            program.threads.len()
        )));
    }
    if program.processes.len() > 1 {
        return Err(Error::CannotRun(format!(
            "{path} has a second process, whose decisions are not traced; leave out process, or \
             compare counters with filemap compare --on model,kernel"
        )));
    }
    if !program.steps().any(|step| step.decides() && !program.is_direct(step)) {
        return Err(Error::Usage(format!(
            "{path} makes no access, and no advice of it reads anything, so there is no decision \
             to compare; add a [[thread.phase]] with a workload"
        )));
    }
    let (journal, _guard) = interrupt::journal()?;
    let mut bench = on.bench(&journal)?;
    let findings = bench.compare(&program)?;
    let job = asked.text();
    let named = program.files.iter().zip(findings);
    let kernel = bench.compared();
    let patterns = named
        .map(|(file, finding)| kernel.pattern(format!("file {}", file.name), finding, job.clone()));
    // Nothing is decided about a file that is not accessed.
    let untouched = |pattern: &Pattern| pattern.ok.is_some() && pattern.decisions == 0;
    let (untouched, mut patterns): (Vec<Pattern>, Vec<Pattern>) = patterns.partition(untouched);
    if patterns.is_empty() {
        patterns = untouched;
    }
    let mut footer = footer(Some(&program.rules), &on, &bench, asked.command("conform", &program));
    let said: Vec<String> = asked.of_recording.iter().flatten().cloned().collect();
    if !said.is_empty() {
        footer.scope = format!("{}; {}", said.join("; "), footer.scope);
    }
    let found = kernel.conformance(patterns, footer);
    output.write(&found.report())?;
    outcome(&found)
}
