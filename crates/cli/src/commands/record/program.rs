//! `filemap record -- PROGRAM`.

use std::ffi::OsString;
use std::io::{Write, stderr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use filemap_attach::Source;
use filemap_attach::trace_points::switch_on;
use filemap_kernel::engine::FaultAround;

use filemap_kernel::journal::Journal;
use filemap_kernel::trace::TraceFs;

use super::{told, wanted};
use crate::Outcome;
use crate::args::RecordArgs;
use crate::ended;
use crate::error::Error;
use crate::govern::parent::{self, Ended, Waited};
use crate::govern::{self, Program};
use crate::output::{self, Inputs, Target};
use filemap_study::recorder::{self, Followed, Recorded, SinglePages};

/// Runs a program and records what it does with its files.
pub fn run(args: &RecordArgs) -> Result<Outcome, Error> {
    let program = govern::find(&args.program)?;
    check(&program)?;
    let name = place(args, &program)?;
    let mut inputs = Inputs::default();
    inputs.add_program(&program.path, &args.program[1..]);
    let target = output::open_part("--out", &name, &inputs)?;
    // From here on no signal ends this process and leaves what it has made.
    let waited = Waited::block();
    let journal = if args.apply { Some(Journal::open()?) } else { Journal::open().ok() };
    let page_bytes = rustix::param::page_size() as u64;
    let single_pages = match &journal {
        Some(journal) if args.apply => Some(FaultAround::set(page_bytes, journal)?),
        _ => None,
    };
    let files = wanted::files(args);
    let words = &args.program[1..];
    words.iter().filter(|word| files.has(Path::new(word))).for_each(recorder::drop_cached);
    let (ended, recorded) = record(&program, &waited, journal.as_ref(), target, &name, args)?;
    let is_whole = single_pages.as_ref().is_none_or(FaultAround::holds);
    drop((single_pages, journal, waited));
    Ok(ended::outcome(ended, told::kept(recorded, is_whole, &name, args)))
}

/// Refuses a program of which the kernel would tell nothing.
fn check(program: &Program) -> Result<(), Error> {
    let path = program.path.display();
    match govern::gain(&program.path) {
        // Root's programs gain nothing where root starts them.
        Some(reason) if !(rustix::process::geteuid().is_root() && reason.contains("root")) => {
            Err(Error::CannotRun(format!(
                "'{path}' cannot be recorded: it {reason}, of which the kernel tells nothing; \
                 start it as that user, as in filemap record -- setpriv --reuid USER {path}"
            )))
        }
        _ => Ok(()),
    }
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
    journal: Option<&Journal>,
    target: Target,
    name: &str,
    args: &RecordArgs,
) -> Result<(Ended, Recorded<Target>), Error> {
    let words: Vec<OsString> = args.program.clone();
    let has_ended = AtomicBool::new(false);
    let end = args.duration.map(|duration| Instant::now() + duration);
    let is_over =
        || has_ended.load(Ordering::Acquire) || end.is_some_and(|end| Instant::now() >= end);
    thread::scope(|scope| {
        let (sender, source) = channel::<Source>();
        // It has the mask of this thread, so that no signal comes to it. It is there before any
        // event is opened, which it would have too.
        let reading = scope.spawn(|| {
            // What is to be read cannot be had where nothing comes.
            let source = source.into_iter().next()?;
            let header = wanted::header(args, words);
            let single = SinglePages::of_children(&source);
            let page_bytes = header.page_size;
            let mut followed = Followed::new(source, single, page_bytes, wanted::files(args));
            Some(recorder::record(&mut followed, target, name, &header, &is_over))
        });
        let ended = open(journal).and_then(|(source, events)| {
            super::check_changes(args, &source)?;
            // It is heard, as the other side waits for nothing else.
            let _ = sender.send(source);
            Ok(parent::run(program, waited, move || switch_on(&events))?)
        });
        drop(sender);
        has_ended.store(true, Ordering::Release);
        let recorded = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map(|ended| (ended, recorded.expect("a program that has run was recorded")))
    })
}

/// Opens where it is told what the program does: by tracepoints where that is permitted. With them
/// come the events that the program has to switch on.
fn open(journal: Option<&Journal>) -> Result<(Source, Vec<i32>), Error> {
    let by_points = journal.filter(|_| rustix::process::geteuid().is_root());
    let points = by_points.and_then(|journal| {
        let tracefs = TraceFs::open(journal).ok()?;
        Source::points(tracefs.root()).ok()
    });
    let Some((source, events)) = points else {
        return Ok((Source::children()?, Vec::new()));
    };
    for missing in source.missing() {
        // Nobody is left to be told if stderr is closed.
        let _ = writeln!(
            stderr(),
            "filemap: this kernel has no tracepoint {missing}: what it tells is not in the \
             recording"
        );
    }
    Ok((source, events))
}
