//! `filemap record -- PROGRAM`.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use filemap_control::variable;
use filemap_job::format_size;
use filemap_kernel::governor::{self, PRELOAD, preloaded};
use filemap_recording::{Header, Mode, Totals};
use filemap_report::govern::Ended;

use crate::Outcome;
use crate::args::RecordArgs;
use crate::error::Error;
use crate::govern::environment::{self, Variables};
use crate::govern::parent::{self, Waited};
use crate::govern::{self, Collecting, Program, run_directory};
use crate::output::{self, Inputs, Target};
use crate::record::{self, Recorded};

/// Runs a program and records what it does with its files.
pub fn run(args: &RecordArgs) -> Result<Outcome, Error> {
    let program = govern::find(&args.program)?;
    if let Some(reason) = govern::obstacle(&program.path) {
        return Err(Error::CannotRun(format!(
            "'{}' cannot be recorded: {reason}; record its faults with perf record -e \
             major-faults -d, and give --import what perf script prints of them",
            program.path.display()
        )));
    }
    let name = place(args, &program)?;
    let mut inputs = Inputs::default();
    inputs.add_program(&program.path, &args.program[1..]);
    let target = output::open_one("--out", &name, &inputs)?;
    let library = governor::library()?;
    run_directory::run_directory().iter().for_each(|directory| run_directory::sweep(directory));
    // From here on no signal ends this process and leaves what it has made.
    let waited = Waited::block();
    let collecting = Collecting::begin()?;
    environment::set(&variables(args, &library, collecting.directory()));
    let (ended, recorded) = record(&program, &waited, &collecting, target, &name, args)?;
    drop((collecting, waited));
    Ok(parent::outcome(ended, kept(recorded, &name, args)))
}

/// Where the recording goes.
fn place(args: &RecordArgs, program: &Program) -> Result<String, Error> {
    if args.out.as_deref() == Some("-") {
        return Err(Error::Usage(
            "--out - would mix the recording with what the program prints; give a file".to_string(),
        ));
    }
    let name = program.path.file_name().unwrap_or_default().to_string_lossy();
    super::place(args.out.as_deref(), &name)
}

/// What is said to the library.
fn variables(args: &RecordArgs, library: &Path, directory: &Path) -> Variables {
    let files = args.files.join(std::ffi::OsStr::new(":"));
    let least = args.min_size.map(|bytes| OsString::from(bytes.to_string())).unwrap_or_default();
    vec![
        (PRELOAD, preloaded(library, std::env::var_os(PRELOAD).as_deref())),
        (variable::SWITCH, "on".into()),
        (variable::RECORD, directory.as_os_str().to_owned()),
        (variable::RECORD_FILES, files),
        (variable::RECORD_MIN_SIZE, least),
        (variable::RECORD_CHANGES, if args.changes { "1" } else { "" }.into()),
    ]
}

/// Runs the program and reads its tapes meanwhile.
fn record(
    program: &Program,
    waited: &Waited,
    collecting: &Collecting,
    target: Target,
    name: &str,
    args: &RecordArgs,
) -> Result<(Ended, Recorded<Target>), Error> {
    let header = header(args);
    let directory = collecting.directory().to_owned();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // It has the mask of this thread, so that no signal comes to it.
        let reading = scope.spawn(|| record::record(directory, target, name, &header, &is_over));
        let ended = parent::run(program, waited);
        is_over.store(true, Ordering::Release);
        let recorded = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map(|ended| (ended, recorded))
    })
}

fn header(args: &RecordArgs) -> Header {
    let system = rustix::system::uname();
    let words_of = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    Header {
        command: args.program.clone(),
        open_pages: if args.changes { filemap_control::OPEN_PAGES as u64 } else { 0 },
        page_size: rustix::param::page_size() as u64,
        clock: "user time of the thread".to_string(),
        kernel: words_of(system.release()),
        machine: words_of(system.machine()),
        ..Header::new(if args.changes { Mode::Changes } else { Mode::FirstTouches })
    }
}

/// Keeps the recording, and says what is in it where a user looks.
fn kept(recorded: Recorded<Target>, name: &str, args: &RecordArgs) -> Result<(), Error> {
    let (target, totals) = recorded.written?;
    let mut files = Inputs::default();
    recorded.files.iter().for_each(|path| files.add_regular("a file that the program read,", path));
    output::check_only("--out", name, &files)?;
    target.finish()?;
    let Totals { touches, lost, .. } = totals;
    let lost = lost + recorded.unknown;
    let mut stderr = std::io::stderr();
    // Nobody is left to be told if stderr is closed.
    if let Some((pid, reason)) = recorded.stopped {
        let _ = writeln!(
            stderr,
            "filemap: process {pid} is in '{name}' only in part: {}",
            reason.text()
        );
    } else if lost > 0 {
        let _ = writeln!(
            stderr,
            "filemap: the recording in '{name}' is not whole, as {lost} events or more were lost; \
             run it again on a machine that does less"
        );
    } else if touches == 0 {
        let _ = writeln!(stderr, "filemap: {}", nothing(args));
    } else if stderr.is_terminal() {
        let what =
            if args.changes { "touches after another page" } else { "first touches of pages" };
        let _ = writeln!(stderr, "filemap: {touches} {what} are in '{name}'");
    }
    Ok(())
}

/// What is said where no touch was recorded.
fn nothing(args: &RecordArgs) -> String {
    let least = format_size(args.min_size.unwrap_or(filemap_control::SMALLEST_RECORDED));
    let files = if args.files.is_empty() { "" } else { " whose path matches --files" };
    let cached = if args.changes { "" } else { ", and pages that nobody else has in use" };
    format!(
        "no touch of a mapped page was recorded; files of {least} (--min-size) or more{files} are, \
         on a disk{cached}"
    )
}
