//! `filemap record -- PROGRAM`.

mod told;
mod way;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use filemap_recording::{Header, Mode, NO_CLOCK};
use filemap_report::govern::Ended;

use crate::Outcome;
use crate::args::RecordArgs;
use crate::error::Error;
use crate::govern::parent::{self, Waited};
use crate::govern::{self, Program};
use crate::output::{self, Inputs, Target};
use crate::record::{self, Recorded};
use way::Way;

/// Runs a program and records what it does with its files.
pub fn run(args: &RecordArgs) -> Result<Outcome, Error> {
    let program = govern::find(&args.program)?;
    way::check(args, &program)?;
    let name = place(args, &program)?;
    let mut inputs = Inputs::default();
    inputs.add_program(&program.path, &args.program[1..]);
    let target = output::open_one("--out", &name, &inputs)?;
    // From here on no signal ends this process and leaves what it has made.
    let waited = Waited::block();
    let way = Way::begin(args)?;
    let (ended, recorded) = record(&program, &waited, &way, target, &name, args)?;
    let is_whole = way.end();
    drop(waited);
    Ok(parent::outcome(ended, told::kept(recorded, is_whole, &name, args)))
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

/// Runs the program and reads meanwhile what it is told to do.
fn record(
    program: &Program,
    waited: &Waited,
    way: &Way,
    target: Target,
    name: &str,
    args: &RecordArgs,
) -> Result<(Ended, Recorded<Target>), Error> {
    let header = header(args);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (sender, source) = channel();
        // It has the mask of this thread, so that no signal comes to it. It is there before any
        // event is opened, which it would have too.
        let reading = scope.spawn(|| {
            // What is to be read cannot be had where nothing comes.
            let mut source: Box<dyn record::Source + Send> = source.into_iter().next()?;
            let source = source.as_mut();
            Some(record::record(source, target, name, &header, way.repeats(), &is_over))
        });
        let ended = way.source(args).and_then(|(source, before)| {
            // It is heard, as the other side waits for nothing else.
            let _ = sender.send(source);
            parent::run(program, waited, before)
        });
        drop(sender);
        is_over.store(true, Ordering::Release);
        reading.thread().unpark();
        let recorded = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map(|ended| (ended, recorded.expect("a program that has run was recorded")))
    })
}

fn header(args: &RecordArgs) -> Header {
    let system = rustix::system::uname();
    let words_of = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let release = words_of(system.release());
    let is_first = !args.without_library || args.apply && way::maps_single_pages(&release);
    let clock = if args.without_library { NO_CLOCK } else { "user time of the thread" };
    let mode = match (args.changes, is_first) {
        (true, _) => Mode::Changes,
        (false, true) => Mode::FirstTouches,
        (false, false) => Mode::Faults,
    };
    Header {
        command: args.program.clone(),
        open_pages: if args.changes { filemap_control::OPEN_PAGES as u64 } else { 0 },
        page_size: rustix::param::page_size() as u64,
        clock: clock.to_string(),
        kernel: release,
        machine: words_of(system.machine()),
        ..Header::new(mode)
    }
}
