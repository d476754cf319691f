//! Records programs that it starts, and running processes.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use filemap_attach::cgroup;
use filemap_attach::program::parent::BlockedSignals;
use filemap_govern::recorder::{
    DEFAULT_MIN_FILE_BYTES, FileFilter, RecordOptions, RecordOutcome, check_program,
    record_processes, record_program,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::RecordArgs;
use crate::error::Error;
use crate::govern;
use crate::output::{self, Inputs, OutputFile};
use crate::{Outcome, exit_status, print_message};

/// Runs a program and records its file accesses.
pub fn program(args: &RecordArgs) -> Result<Outcome, Error> {
    let program = govern::find(&args.program)?;
    check_program(&program)?;
    if args.output.as_deref() == Some("-") {
        return Err(Error::Usage(
            "-o - would mix the recording with what the program prints; give a file".to_string(),
        ));
    }
    let usual = program.path.file_name().unwrap_or_default().to_string_lossy();
    let name = super::output_path(args.output.as_deref(), &usual)?;
    let mut inputs = Inputs::default();
    inputs.add_program(&program);
    let target = output::open_part("--output", &name, &inputs)?;
    // From here on, no signal ends this process without cleanup.
    let waited = BlockedSignals::block();
    let options = options(args);
    let command = (&program, args.program.as_slice());
    let (ended, outcome) = record_program(
        command,
        &waited,
        (target, &name),
        &options,
        args.change_settings,
        |line| print_message(line),
    )?;
    drop(waited);
    Ok(exit_status::outcome(ended, finish(outcome, &name, &options)))
}

/// Records running processes until they exit, the duration is over, or a signal arrives.
pub fn processes(args: &RecordArgs) -> Result<Outcome, Error> {
    let pids = match &args.cgroup {
        Some(name) => cgroup::processes(name)?,
        None => args.pid.clone(),
    };
    let shown = args.cgroup.clone().unwrap_or_else(|| {
        let all: Vec<String> = pids.iter().map(u32::to_string).collect();
        all.join("-")
    });
    let name = super::output_path(args.output.as_deref(), &shown.replace('/', "-"))?;
    let target = output::open_part("--output", &name, &Inputs::default())?;
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let registered = signal_hook::flag::register(signal, is_interrupted.clone());
        registered.map_err(|error| Error::CannotRun(format!("no handler of signals: {error}")))?;
    }
    let options = options(args);
    let is_ended = || is_interrupted.load(Ordering::Acquire);
    let outcome =
        record_processes((&pids, args.cold), (target, &name), &options, is_ended, |line| {
            print_message(line)
        })?;
    finish(outcome, &name, &options)?;
    Ok(Outcome::Done)
}

fn options(args: &RecordArgs) -> RecordOptions {
    let min_bytes = args.min_size.unwrap_or(DEFAULT_MIN_FILE_BYTES);
    let files = FileFilter { min_bytes, patterns: args.include.clone() };
    RecordOptions { files, changes: args.changes, duration: args.duration }
}

/// Moves the recording into place, and reports what may be missing from it.
fn finish(
    mut outcome: RecordOutcome<OutputFile>,
    name: &str,
    options: &RecordOptions,
) -> Result<(), Error> {
    outcome.unrestored_message().iter().for_each(print_message);
    let (target, totals) = outcome.take_output()?;
    let mut files = Inputs::default();
    outcome.files.iter().for_each(|path| files.add("a file that the program read,", path));
    output::check(&[("--output", name)], &files)?;
    let is_empty = totals.touches + outcome.reads == 0;
    let failed = outcome.failed.take();
    if is_empty && failed.is_none() && fs::metadata(name).is_ok_and(|file| file.len() > 0) {
        // A recording that someone still needs is not replaced by one of nothing.
        drop(target);
        print_message(format!("{}; '{name}' is left as it was", outcome.no_touch_message(options)));
        return Ok(());
    }
    target.finish()?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if let Some(reason) = outcome.incomplete_reason(name, totals) {
        print_message(reason);
    } else if is_empty {
        print_message(outcome.no_touch_message(options));
    } else if stderr().is_terminal() {
        let which = if options.changes { "" } else { "first " };
        print_message(format!("{} {which}touches of pages are in '{name}'", totals.touches));
    }
    Ok(())
}
