//! `filemap record`: prints recordings as job files, and imports traces of other tools.

mod made;

use std::io::{BufReader, Write};

use filemap_job::format_size;
use filemap_recording::convert::UnseenPages;
use filemap_recording::import::{self, ImportStats, TraceFormat};

use crate::args::RecordArgs;
use crate::error::Error;
use crate::output::{self, Inputs, OutputFile};
use crate::recording;
use crate::{Outcome, interrupt};
use filemap_study::input;

/// Suffix of the default output file, appended to the name of the trace.
const ENDING: &str = ".recording";

/// Prints, imports or makes a recording.
pub fn run(args: &RecordArgs) -> Result<Outcome, Error> {
    // A fault-around size of one page left behind by an earlier command also affects other
    // programs.
    crate::undo_what_was_left();
    if args.changes && !rustix::process::geteuid().is_root() {
        return Err(Error::CannotRun(
            "--changes takes pages from a running process, which only root may do; run it as root, \
             or without --changes for first touches"
                .to_string(),
        ));
    }
    let runs = args.cgroup.is_some() || !args.pid.is_empty();
    if args.changes && !args.cold && runs {
        return Err(Error::Usage(
            "--changes needs --cold for running processes: pages that they have mapped already \
             show no touch"
                .to_string(),
        ));
    }
    match (&args.show, args.import.as_deref()) {
        (Some(path), _) => show(path),
        (None, Some([kind, trace])) => import(kind, trace, args.output.as_deref()),
        _ if args.cgroup.is_some() || !args.pid.is_empty() => made::processes(args),
        _ if args.program.is_empty() => Err(Error::Usage(
            "a program is missing; give it after --, as in filemap record -- PROGRAM, or give \
             --pid, --cgroup, --show RECORDING or --import KIND FILE"
                .to_string(),
        )),
        _ => made::program(args),
    }
}

/// Prints the recording at `path` as a job file, preceded by the differences from the recording.
fn show(path: &str) -> Result<Outcome, Error> {
    interrupt::exit_on_signals();
    let target = OutputFile::stdout()?;
    let job = recording::read_job(path, UnseenPages::Untouched)?;
    let mut text = String::new();
    for approximation in &job.approximations {
        text += &format!("# {approximation}.\n");
    }
    let toml = toml::to_string(&job.program);
    text += &toml.map_err(|error| Error::CannotRun(format!("{path}: {error}; shorten it")))?;
    if text.len() as u64 > input::MAX_JOB_BYTES {
        let most = format_size(input::MAX_JOB_BYTES);
        crate::print_message(format!(
            "this is longer than a job file can be ({most}); give commands {path} itself"
        ));
    }
    target.write(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// Imports the trace at `path` in the format `kind`.
fn import(kind: &str, path: &str, out: Option<&str>) -> Result<Outcome, Error> {
    interrupt::exit_on_signals();
    let known = TraceFormat::ALL.map(TraceFormat::name).join(", ");
    let found = TraceFormat::ALL.into_iter().find(|known| known.name() == kind);
    let kind = found
        .ok_or_else(|| Error::Usage(format!("--import: unknown kind '{kind}'; known: {known}")))?;
    let (trace, _) = input::regular("trace", path)?;
    let name = &output_path(out, path)?;
    let mut inputs = Inputs::default();
    inputs.add("the trace", path);
    let mut target = output::open_one("--output", name, &inputs)?;
    let trace = BufReader::with_capacity(1 << 16, trace);
    let done = import::import(kind, (trace, path), (&mut target, name), &recording::existing_file);
    let (imported, _) = done?;
    if target.is_stdout() {
        target.finish()?;
        return print_import_summary(&mut std::io::stderr(), &imported, name);
    }
    target.finish()?;
    print_import_summary(&mut OutputFile::stdout()?, &imported, name)
}

/// Path of the recording of `subject`: `out` if given, else a default that must not exist.
fn output_path(out: Option<&str>, subject: &str) -> Result<String, Error> {
    let usual = format!("{subject}{ENDING}");
    match out {
        Some(name) => Ok(name.to_string()),
        None if std::fs::symlink_metadata(&usual).is_ok() => Err(Error::Usage(format!(
            "'{usual}' exists already; give -o another file, or -o '{usual}' to replace it"
        ))),
        None => Ok(usual),
    }
}

/// Prints a summary of the import.
fn print_import_summary(
    to: &mut impl Write,
    imported: &ImportStats,
    name: &str,
) -> Result<Outcome, Error> {
    let ImportStats { lines, unknown_lines, faults, other_faults, without_address, .. } = *imported;
    let mut text = format!(
        "{name}: {faults} faults on files, of {lines} lines\n\
         Left out: {other_faults} faults on other memory, {without_address} without an address, \
         {unknown_lines} lines of no known kind\n\
         It shows faults only: what fault-around mapped, reads, advice, think times, and what was \
         cached before are not in it.\n"
    );
    if imported.assumed > 0 {
        text += &format!(
            "{} touches between faults are assumed, as these follow each other window by window.\n",
            imported.assumed
        );
    }
    if imported.major_faults == faults {
        text += "It has major faults only, so that a scan looks like few touches: for advise, \
                 record page-faults.\n";
    }
    let written = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    written.map_err(|error| output::failed_on_stdout(&error))?;
    Ok(Outcome::Done)
}
