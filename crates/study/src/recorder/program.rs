//! A program that is run and recorded.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use filemap_attach::Source;
use filemap_attach::program::parent::{self, Ended, Waited};
use filemap_attach::program::{Program, gain};
use filemap_attach::trace_points::switch_on;
use filemap_kernel::engine::FaultAround;
use filemap_kernel::journal::Journal;
use filemap_kernel::trace::TraceFs;
use rustix::process::geteuid;

use super::asked::Asked;
use super::{Followed, Recorded, SinglePages, drop_cached, record};
use crate::error::Error;

/// Refuses a program of which the kernel would tell nothing.
///
/// # Errors
/// Such a program.
pub fn check_program(program: &Program) -> Result<(), Error> {
    let path = program.path.display();
    match gain(&program.path) {
        // Root's programs gain nothing where root starts them.
        Some(reason) if !(geteuid().is_root() && reason.contains("root")) => {
            Err(Error::CannotRun(format!(
                "'{path}' cannot be recorded: it {reason}, and the kernel reports nothing of it; \
                 start it as that user, as in filemap record -- setpriv --reuid USER {path}"
            )))
        }
        _ => Ok(()),
    }
}

/// Runs `program` with these `words`, and records to `output`, which errors call by its name, what
/// it does. With `apply`, fault-around is switched off for the whole machine meanwhile. Lines that
/// are to be told at once go to `tell`.
///
/// # Errors
/// A program that cannot be run; no right to follow it.
pub fn of_program<W: Write + Send>(
    (program, words): (&Program, &[OsString]),
    waited: &Waited,
    (output, name): (W, &str),
    asked: &Asked,
    apply: bool,
    tell: fn(&str),
) -> Result<(Ended, Recorded<W>), Error> {
    let journal = if apply { Some(Journal::open()?) } else { Journal::open().ok() };
    let page_bytes = rustix::param::page_size() as u64;
    let single_pages = match &journal {
        Some(journal) if apply => Some(FaultAround::set(page_bytes, journal)?),
        _ => None,
    };
    let arguments = words.iter().skip(1);
    arguments.filter(|word| asked.wanted.has(Path::new(word))).for_each(drop_cached);
    let has_ended = AtomicBool::new(false);
    let end = asked.duration.map(|duration| Instant::now() + duration);
    let is_over =
        || has_ended.load(Ordering::Acquire) || end.is_some_and(|end| Instant::now() >= end);
    let (ended, mut recorded) = thread::scope(|scope| {
        let (sender, source) = channel::<Source>();
        // It has the mask of this thread, so that no signal comes to it. It is there before any
        // event is opened, which it would have too.
        let reading = scope.spawn(|| {
            // What is to be read cannot be had where nothing comes.
            let source = source.into_iter().next()?;
            let header = asked.header(words.to_vec());
            let single = SinglePages::of_children(&source, apply);
            let followed = Followed::new(source, single, header.page_size, asked.wanted.clone());
            Some(record(followed, output, name, &header, &is_over))
        });
        let ended = open(journal.as_ref(), tell).and_then(|(source, events)| {
            asked.check(&source)?;
            // It is heard, as the other side waits for nothing else.
            let _ = sender.send(source);
            Ok(parent::run(program, waited, move || switch_on(&events))?)
        });
        drop(sender);
        has_ended.store(true, Ordering::Release);
        let recorded = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map(|ended| (ended, recorded.expect("a program that has run was recorded")))
    })?;
    recorded.is_whole = single_pages.as_ref().is_none_or(FaultAround::holds);
    Ok((ended, recorded))
}

/// Opens where it is told what the program does: by tracepoints where that is permitted. With them
/// come the events that the program has to switch on.
fn open(journal: Option<&Journal>, tell: fn(&str)) -> Result<(Source, Vec<i32>), Error> {
    let by_points = journal.filter(|_| geteuid().is_root());
    let points = by_points.and_then(|journal| {
        let tracefs = TraceFs::open(journal).ok()?;
        Source::points(tracefs.root()).ok()
    });
    let Some((source, events)) = points else {
        return Ok((Source::children()?, Vec::new()));
    };
    for missing in source.missing() {
        tell(&format!(
            "this kernel has no tracepoint {missing}: what it tells is not in the recording"
        ));
    }
    Ok((source, events))
}
