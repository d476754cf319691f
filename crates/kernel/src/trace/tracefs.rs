//! A private trace instance that records the page-cache events of selected files.

use std::fs;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use filemap_job::{ShownKind, ShownKinds};

use super::event::{Inode, TraceEvent, parse};
use crate::error::require_root;
use crate::journal::{Guard, Journal, Undo};
use crate::kernel_mount::KernelMount;
use crate::{Error, shutdown};

/// Size of an event in the buffer, rounded up.
const EVENT_BYTES: u64 = 112;
const MIN_BUFFER_KIB: u64 = 1024;

/// Event that shows the addresses of faults, by thread and not by file.
const USER_FAULTS: &str = "exceptions/page_fault_user";

/// Additional events, enabled if the kernel has them: they show who disturbs a run, and distinguish
/// reads from faults.
const EXTRA_EVENTS: [&str; 2] =
    ["filemap/mm_filemap_delete_from_page_cache", "filemap/mm_filemap_get_pages"];

/// Events without which no window can be recognized.
const REQUIRED_EVENTS: [&str; 2] =
    ["filemap/mm_filemap_add_to_page_cache", "filemap/mm_filemap_delete_from_page_cache"];

/// How errors refer to a missing tracepoint.
pub(crate) const TRACEPOINT_PREFIX: &str = "the tracepoint ";

/// Remedy for a kernel without tracepoints.
const REMEDY: &str = "use a kernel with tracepoints (CONFIG_FTRACE, and CONFIG_FTRACE_SYSCALLS or \
                      CONFIG_ENABLE_DEFAULT_TRACERS)";

/// A mounted tracefs: the machine's, or our own, unmounted on drop.
#[derive(Debug)]
pub struct TraceFs(KernelMount);

impl TraceFs {
    /// Uses the mounted tracefs, or mounts one next to the journal.
    ///
    /// # Errors
    /// Not root; a kernel without tracefs; kernel lockdown.
    pub fn open(journal: &Journal) -> Result<Self, Error> {
        require_root("reading the kernel's tracepoints")?;
        KernelMount::open(journal, "tracefs", REMEDY).map(TraceFs)
    }

    /// Its mount point.
    pub fn root(&self) -> &Path {
        self.0.root()
    }

    /// The kinds of lines that this kernel shows.
    pub fn shown_kinds(&self) -> ShownKinds {
        ShownKinds::from_fn(|kind| self.has(kind.tracepoint()))
    }

    /// Refuses a kernel without the tracepoints that every [`Trace`] needs.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub fn check(&self) -> Result<(), Error> {
        match REQUIRED_EVENTS.into_iter().find(|event| !self.has(event)) {
            Some(event) => Err(Error::unavailable(format!("{TRACEPOINT_PREFIX}{event}"), REMEDY)),
            None => Ok(()),
        }
    }

    fn has(&self, event: &str) -> bool {
        self.root().join("events").join(event).exists()
    }
}

/// An instance that records the events of some files, for all threads.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    files: Vec<Inode>,
    buffer_kib: u64,
    _guard: Guard,
}

impl Trace {
    /// Creates an instance, not yet recording, with space for `events` events on each CPU.
    ///
    /// # Errors
    /// The kernel lacks one of the events, or memory.
    pub fn create(
        tracefs: &TraceFs,
        journal: &Journal,
        files: &[Inode],
        events: u64,
    ) -> Result<Self, Error> {
        tracefs.check()?;
        let instances = tracefs.root().join("instances");
        let (path, guard) =
            journal.directory_in(&instances, "filemap", Undo::RemoveTraceInstance)?;
        let buffer_kib = (events.saturating_mul(EVENT_BYTES) / 1024).max(MIN_BUFFER_KIB);
        let mut trace = Trace { path, files: Vec::new(), buffer_kib, _guard: guard };
        trace.write("tracing_on", "0")?;
        trace.write("buffer_size_kb", &buffer_kib.to_string())?;
        trace.write("trace_clock", "mono")?;
        trace.watch(files)?;
        for event in trace.events() {
            trace.write(&format!("events/{event}/enable"), "1")?;
        }
        Ok(trace)
    }

    /// Records only the events of `files` from now on.
    pub fn watch(&mut self, files: &[Inode]) -> Result<(), Error> {
        let filter = inode_filter(files);
        if self.files.is_empty() || filter != inode_filter(&self.files) {
            for event in self.events() {
                self.write(&format!("events/{event}/filter"), &filter)?;
            }
        }
        self.files = files.to_owned();
        Ok(())
    }

    /// The file events that this kernel has.
    fn events(&self) -> impl Iterator<Item = &'static str> {
        let shown = ShownKind::ALL.map(ShownKind::tracepoint).into_iter();
        let of_files = shown.filter(|event| *event != USER_FAULTS).chain(EXTRA_EVENTS);
        of_files.filter(|event| self.event(event).exists())
    }

    /// Records the addresses of a thread's faults too. Returns whether the machine supports it.
    pub fn watch_faults(&self, pid: u32) -> Result<bool, Error> {
        if !self.event(USER_FAULTS).exists() {
            return Ok(false);
        }
        self.write(&format!("events/{USER_FAULTS}/filter"), &format!("common_pid == {pid}"))?;
        self.write(&format!("events/{USER_FAULTS}/enable"), "1")?;
        Ok(true)
    }

    /// Empties the buffer and starts recording.
    pub fn start(&self) -> Result<(), Error> {
        self.write("trace", "")?;
        self.write("tracing_on", "1")
    }

    /// Stops recording, and passes the events to `each` in order of time.
    ///
    /// # Errors
    /// [`Error::LostEvents`] if the buffer was too small.
    pub fn stop(&self, mut each: impl FnMut(TraceEvent)) -> Result<(), Error> {
        self.write("tracing_on", "0")?;
        let lost = self.lost()?;
        if lost > 0 {
            return Err(Error::LostEvents { lost, buffer_kib: self.buffer_kib });
        }
        each_line(&self.path.join("trace"), |line| {
            parse(line, &self.files).map(|event| event.into_iter().for_each(&mut each))
        })
    }

    /// Events lost for lack of space, on all CPUs.
    fn lost(&self) -> Result<u64, Error> {
        let directory = self.path.join("per_cpu");
        let os = |error| Error::os("read", &directory, error);
        let mut lost = 0;
        for cpu in fs::read_dir(&directory).map_err(os)? {
            let stats = fs::read_to_string(cpu.map_err(os)?.path().join("stats")).map_err(os)?;
            lost += lost_events(&stats);
        }
        Ok(lost)
    }

    fn event(&self, name: &str) -> PathBuf {
        self.path.join("events").join(name)
    }

    fn write(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        fs::write(&path, value).map_err(|error| Error::os("write", &path, error))
    }
}

/// Lost events of a CPU, from the `stats` of its buffer.
pub(super) fn lost_events(stats: &str) -> u64 {
    stats
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| matches!(*name, "overrun" | "commit overrun" | "dropped events"))
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

/// Filters by inode only; events of other devices are skipped when parsing.
fn inode_filter(files: &[Inode]) -> String {
    let terms: Vec<String> = files.iter().map(|file| format!("i_ino == {}", file.number)).collect();
    terms.join(" || ")
}

/// Passes the lines of the trace at `path` to `each`.
///
/// # Errors
/// Shutdown; the trace cannot be read; errors of `each`.
pub(super) fn each_line(
    path: &Path,
    mut each: impl FnMut(&str) -> Result<(), Error>,
) -> Result<(), Error> {
    let file = File::open(path).map_err(|error| Error::os("open", path, error))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    loop {
        // An instance cannot be removed while it is being read.
        shutdown::check()?;
        line.clear();
        let read = reader.read_until(b'\n', &mut line);
        if read.map_err(|error| Error::os("read", path, error))? == 0 {
            return Ok(());
        }
        each(&String::from_utf8_lossy(&line))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_every_kind_of_loss() {
        let stats = "entries: 9\noverrun: 3\ncommit overrun: 2\nbytes: 9\noldest event ts: 1.5\n\
                     dropped events: 1\nread events: 7\n";
        assert_eq!(lost_events(stats), 6);
    }

    /// A kernel has to show additions; otherwise the error has a remedy.
    #[test]
    fn shows_the_events_that_exist() {
        let directory = tempfile::tempdir().unwrap();
        let tracefs = TraceFs(KernelMount::at(directory.path()));
        let error = tracefs.check().unwrap_err();
        assert!(error.lacks_tracing() && error.cannot_run_here(), "{error}");
        assert!(error.to_string().contains("CONFIG_FTRACE"), "{error}");
        let has = |event: &str| {
            fs::create_dir_all(directory.path().join("events").join(event)).unwrap();
        };
        REQUIRED_EVENTS.into_iter().for_each(has);
        assert!(tracefs.check().is_ok());
        assert_eq!(tracefs.shown_kinds(), ShownKinds::from_fn(|kind| kind == ShownKind::Added));
        ShownKind::ALL.into_iter().for_each(|kind| has(kind.tracepoint()));
        assert_eq!(tracefs.shown_kinds(), ShownKinds::ALL);
    }

    #[test]
    fn filter_names_each_file() {
        let file = |number| Inode { major: 1, minor: 2, number };
        assert_eq!(inode_filter(&[file(5), file(6)]), "i_ino == 5 || i_ino == 6");
    }
}
