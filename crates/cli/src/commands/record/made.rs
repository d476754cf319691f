//! Recordings that are made: of a program, and of processes that run.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use filemap_attach::cgroup;
use filemap_attach::program::parent::Waited;
use filemap_study::recorder::{self, Asked, Recorded, SMALLEST, WantedFiles};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::RecordArgs;
use crate::error::Error;
use crate::govern;
use crate::output::{self, Inputs, Target};
use crate::{Outcome, ended, say};

/// Runs a program and records what it does with its files.
pub fn of_program(args: &RecordArgs) -> Result<Outcome, Error> {
    let program = govern::find(&args.program)?;
    recorder::check_program(&program)?;
    if args.out.as_deref() == Some("-") {
        return Err(Error::Usage(
            "--out - would mix the recording with what the program prints; give a file".to_string(),
        ));
    }
    let usual = program.path.file_name().unwrap_or_default().to_string_lossy();
    let name = super::place(args.out.as_deref(), &usual)?;
    let mut inputs = Inputs::default();
    inputs.add_program(&program.path, &args.program[1..]);
    let target = output::open_part("--out", &name, &inputs)?;
    // From here on no signal ends this process and leaves what it has made.
    let waited = Waited::block();
    let (asked, called) = (asked(args), (&program, args.program.as_slice()));
    let (ended, recorded) =
        recorder::of_program(called, &waited, (target, &name), &asked, args.apply, |line| {
            say(line)
        })?;
    drop(waited);
    Ok(ended::outcome(ended, kept(recorded, &name, &asked)))
}

/// Records what processes do from now on, until they have ended, for so long as it is said, or
/// until a signal asks for the end.
pub fn of_processes(args: &RecordArgs) -> Result<Outcome, Error> {
    let pids = match &args.cgroup {
        Some(name) => cgroup::processes(name)?,
        None => args.pid.clone(),
    };
    let shown = args.cgroup.clone().unwrap_or_else(|| {
        let all: Vec<String> = pids.iter().map(u32::to_string).collect();
        all.join("-")
    });
    let name = super::place(args.out.as_deref(), &shown.replace('/', "-"))?;
    let target = output::open_part("--out", &name, &Inputs::default())?;
    let is_asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let registered = signal_hook::flag::register(signal, is_asked.clone());
        registered.map_err(|error| Error::CannotRun(format!("no handler of signals: {error}")))?;
    }
    let asked = asked(args);
    let is_ended = || is_asked.load(Ordering::Acquire);
    let recorded =
        recorder::of_processes((&pids, args.cold), (target, &name), &asked, is_ended, |line| {
            say(line)
        })?;
    kept(recorded, &name, &asked)?;
    Ok(Outcome::Done)
}

fn asked(args: &RecordArgs) -> Asked {
    let min_bytes = args.min_size.unwrap_or(SMALLEST);
    let wanted = WantedFiles { min_bytes, patterns: args.files.clone() };
    Asked { wanted, changes: args.changes, duration: args.duration }
}

/// Keeps the recording, and says what is in it where a user looks.
fn kept(mut recorded: Recorded<Target>, name: &str, asked: &Asked) -> Result<(), Error> {
    recorded.left_advised().iter().for_each(say);
    let (target, totals) = recorded.end()?;
    let mut files = Inputs::default();
    recorded.files.iter().for_each(|path| files.add_regular("a file that the program read,", path));
    output::check_only("--out", name, &files)?;
    target.finish()?;
    if let Some(error) = recorded.failed.take() {
        return Err(error);
    }
    if let Some(line) = recorded.lacks(name, totals) {
        say(line);
    } else if totals.touches == 0 {
        say(asked.found_nothing());
    } else if stderr().is_terminal() {
        let which = if asked.changes { "" } else { "first " };
        say(format!("{} {which}touches of pages are in '{name}'", totals.touches));
    }
    Ok(())
}
