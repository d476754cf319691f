//! Recording targets: a program to start, or running processes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::Write;
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use filemap_attach::EventSource;
use filemap_attach::program::parent::{self, BlockedSignals, ChildExit};
use filemap_attach::program::{Program, privilege_gain};
use filemap_attach::tracepoints::enable_events;
use filemap_kernel::engine::FaultAround;
use filemap_kernel::journal::Journal;
use filemap_kernel::residency::cached_ranges;
use filemap_kernel::trace::TraceFs;
use rustix::process::geteuid;

use super::single_pages::SinglePages;
use super::{ProcessTracker, RecordError, RecordOptions, RecordOutcome, drop_cached, record};

/// Refuses a program for which the kernel reports no events.
///
/// # Errors
/// A set-user-ID, set-group-ID or file-capability program that would gain privileges.
pub fn check_program(program: &Program) -> Result<(), RecordError> {
    let path = program.path.display();
    match privilege_gain(&program.path) {
        // A set-user-ID root program gains nothing if root starts it.
        Some(reason) if !(geteuid().is_root() && reason.contains("root")) => {
            Err(RecordError::CannotRun(format!(
                "'{path}' cannot be recorded: it {reason}, and the kernel reports nothing of it; \
                 start it as that user, as in filemap record -- setpriv --reuid USER {path}"
            )))
        }
        _ => Ok(()),
    }
}

/// Runs `program`, started as `words`, and records it to `output`, which error messages call
/// `name`. With `fault_around_off`, fault-around is disabled system-wide for the duration. Warnings
/// go to `warn`.
///
/// # Errors
/// The program cannot be run, or this user may not follow it.
pub fn record_program<W: Write + Send>(
    (program, words): (&Program, &[OsString]),
    signals: &BlockedSignals,
    (output, name): (W, &str),
    options: &RecordOptions,
    fault_around_off: bool,
    warn: fn(&str),
) -> Result<(ChildExit, RecordOutcome<W>), RecordError> {
    let journal = if fault_around_off { Some(Journal::open()?) } else { Journal::open().ok() };
    let page_bytes = rustix::param::page_size() as u64;
    let fault_around = match &journal {
        Some(journal) if fault_around_off => Some(FaultAround::set(page_bytes, journal)?),
        _ => None,
    };
    let arguments = words.iter().skip(1);
    let mut cached = HashMap::new();
    for word in arguments.filter(|word| options.files.accepts(Path::new(word))) {
        cached.extend(cached_pages(Path::new(word)));
        drop_cached(word);
    }
    let has_ended = AtomicBool::new(false);
    let deadline = options.duration.map(|duration| Instant::now() + duration);
    let is_over = || {
        has_ended.load(Ordering::Acquire)
            || deadline.is_some_and(|deadline| Instant::now() >= deadline)
    };
    let (ended, mut outcome) = thread::scope(|scope| {
        let (sender, receiver) = channel::<EventSource>();
        // The thread inherits this thread's signal mask, so that no signal is delivered to it. It
        // exists before any event is opened, since it would inherit those too.
        let recorder = scope.spawn(|| {
            // The channel closes without a message if the source could not be opened.
            let source = receiver.into_iter().next()?;
            let header = options.header(words.to_vec());
            let single = SinglePages::for_children(&source, fault_around_off);
            let files = options.files.clone();
            let mut tracker = ProcessTracker::new(source, single, header.page_size, files);
            tracker.set_cached(cached);
            Some(record(tracker, output, name, &header, &is_over))
        });
        let ended = open_source(journal.as_ref(), warn).and_then(|(source, events)| {
            options.check(&source)?;
            // Cannot fail: the receiver lives until it gets the source.
            let _ = sender.send(source);
            Ok(parent::run(program, signals, move || enable_events(&events))?)
        });
        drop(sender);
        has_ended.store(true, Ordering::Release);
        let outcome = recorder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map(|ended| (ended, outcome.expect("a program that has run was recorded")))
    })?;
    outcome.fault_around_changed =
        fault_around.as_ref().is_some_and(|setting| !setting.is_in_effect());
    Ok((ended, outcome))
}

/// Device and inode of a file, and the ranges of its cached pages: first page and number.
type CachedFile = ((u64, u64), Vec<[u64; 2]>);

/// The regular file at `path` and its cached pages, if they are known.
fn cached_pages(path: &Path) -> Option<CachedFile> {
    // Opening a device can have side effects.
    let data = path.metadata().ok().filter(Metadata::is_file)?;
    Some(((data.dev(), data.ino()), cached_ranges(&File::open(path).ok()?)?))
}

/// Opens the event source for children of this thread: tracepoints for root, perf events otherwise.
/// Also returns the event descriptors that the child has to enable.
fn open_source(
    journal: Option<&Journal>,
    warn: fn(&str),
) -> Result<(EventSource, Vec<RawFd>), RecordError> {
    let root_journal = journal.filter(|_| geteuid().is_root());
    let tracepoints = root_journal.and_then(|journal| {
        let tracefs = TraceFs::open(journal).ok()?;
        EventSource::children_with_tracepoints(tracefs.root()).ok()
    });
    let Some((source, events)) = tracepoints else {
        return Ok((EventSource::children()?, Vec::new()));
    };
    for missing in source.missing_tracepoints() {
        warn(&format!(
            "this kernel has no tracepoint {missing}: what it reports is not in the recording"
        ));
    }
    Ok((source, events))
}

/// Records the processes `pids` from now on to `output`, which error messages call `name`, until
/// they have exited, the duration is over, or `is_ended` returns true. With `cold`, files are
/// dropped from the page cache when their mappings are first seen. Warnings go to `warn`.
///
/// # Errors
/// None of the processes can be followed.
pub fn record_processes<W: Write>(
    (pids, cold): (&[u32], bool),
    (output, name): (W, &str),
    options: &RecordOptions,
    is_ended: impl Fn() -> bool,
    warn: fn(&str),
) -> Result<RecordOutcome<W>, RecordError> {
    let journal = Journal::open().ok();
    let tracefs = journal.as_ref().and_then(|journal| TraceFs::open(journal).ok());
    let (source, refused) = EventSource::processes(pids, tracefs.as_ref().map(TraceFs::root))?;
    if let Some(error) = refused {
        warn(&format!("{error}; the others are recorded"));
    }
    options.check(&source)?;
    let single = SinglePages::for_processes(cold, pids);
    warn(&format!(
        "a running process is recorded from now on: pages that it has touched already show no \
         touch{}{}",
        if cold { " where others use them" } else { " (--cold drops them)" },
        if source.reports_syscalls() {
            ""
        } else {
            ", and only root can see what it reads and advises"
        }
    ));
    let header = options.header(Vec::new());
    let tracker = ProcessTracker::new(source, single, header.page_size, options.files.clone());
    let deadline = options.duration.map(|duration| Instant::now() + duration);
    let is_over = || {
        is_ended()
            || deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || !pids.iter().any(|pid| Path::new(&format!("/proc/{pid}/exe")).is_symlink())
    };
    Ok(record(tracker, output, name, &header, &is_over))
}
