//! A trace instance of our own, that watches the page cache of some files.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::event::{Event, Inode, parse};
use crate::error::require_root;
use crate::journal::{Guard, Journal, Undo};
use crate::mounted::Mounted;
use crate::{Error, ending};

/// Bytes that one event takes in the buffer, with room to spare.
const EVENT_BYTES: u64 = 112;
const SMALLEST_BUFFER_KIB: u64 = 1024;

/// What is switched on, and whether it can be done without.
const EVENTS: [(&str, bool); 9] = [
    ("filemap/mm_filemap_add_to_page_cache", true),
    ("filemap/mm_filemap_delete_from_page_cache", true),
    ("filemap/mm_filemap_fault", true),
    ("filemap/mm_filemap_map_pages", true),
    ("filemap/mm_filemap_get_pages", false),
    ("readahead/page_cache_sync_ra", true),
    ("readahead/page_cache_async_ra", true),
    ("readahead/page_cache_ra_order", true),
    ("readahead/page_cache_ra_unbounded", true),
];
const USER_FAULTS: &str = "exceptions/page_fault_user";

/// A mounted tracefs: the machine's, or one of our own for as long as this lives.
#[derive(Debug)]
pub struct TraceFs(Mounted);

impl TraceFs {
    /// Uses the tracefs that is mounted, or mounts one beside the journal.
    ///
    /// # Errors
    /// Not root; a kernel without tracefs; one locked down.
    pub fn open(journal: &Journal) -> Result<Self, Error> {
        require_root("reading the kernel's tracepoints")?;
        Mounted::open(journal, "tracefs", "use a kernel with CONFIG_TRACING").map(TraceFs)
    }

    /// Its mount point.
    pub fn root(&self) -> &Path {
        self.0.root()
    }

    /// The events that a [`Trace`] needs and this kernel does not have.
    pub fn missing_events(&self) -> Vec<&'static str> {
        let needed = EVENTS.iter().filter(|(_, needed)| *needed).map(|(name, _)| *name);
        needed.filter(|name| !self.root().join("events").join(name).exists()).collect()
    }
}

/// An instance that records the events of some files, whoever causes them.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    files: Vec<Inode>,
    buffer_kib: u64,
    _guard: Guard,
}

impl Trace {
    /// Makes an instance with room for `events` events on each CPU; it is not running yet.
    ///
    /// # Errors
    /// The kernel lacks one of the events, or the memory.
    pub fn create(
        tracefs: &TraceFs,
        journal: &Journal,
        files: &[Inode],
        events: u64,
    ) -> Result<Self, Error> {
        if let Some(event) = tracefs.missing_events().first() {
            return Err(Error::unavailable(
                format!("the tracepoint {event}"),
                "use a kernel that has it (6.18)",
            ));
        }
        let instances = tracefs.root().join("instances");
        let (path, guard) =
            journal.directory_in(&instances, "filemap", Undo::RemoveTraceInstance)?;
        let buffer_kib = (events.saturating_mul(EVENT_BYTES) / 1024).max(SMALLEST_BUFFER_KIB);
        let trace = Trace { path, files: files.to_owned(), buffer_kib, _guard: guard };
        trace.write("tracing_on", "0")?;
        trace.write("buffer_size_kb", &buffer_kib.to_string())?;
        trace.write("trace_clock", "mono")?;
        let filter = inode_filter(files);
        for (event, _) in EVENTS.iter().filter(|(event, _)| trace.event(event).exists()) {
            trace.write(&format!("events/{event}/filter"), &filter)?;
            trace.write(&format!("events/{event}/enable"), "1")?;
        }
        Ok(trace)
    }

    /// Records the addresses of a thread's faults too, where the machine shows them.
    /// Says whether it does.
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

    /// Stops recording and reads what was recorded, in order of time.
    ///
    /// # Errors
    /// [`Error::LostEvents`] when the buffer was too small.
    pub fn stop(&self) -> Result<Vec<Event>, Error> {
        self.write("tracing_on", "0")?;
        let lost = self.lost()?;
        if lost > 0 {
            return Err(Error::LostEvents { lost, buffer_kib: self.buffer_kib });
        }
        let path = self.path.join("trace");
        let file = File::open(&path).map_err(|error| Error::os("open", &path, error))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let (mut events, mut line) = (Vec::new(), Vec::new());
        loop {
            // An instance that somebody reads cannot be removed.
            ending::check()?;
            line.clear();
            let read = reader.read_until(b'\n', &mut line);
            if read.map_err(|error| Error::os("read", &path, error))? == 0 {
                return Ok(events);
            }
            events.extend(parse(&String::from_utf8_lossy(&line), &self.files)?);
        }
    }

    /// Events that did not find room, on all CPUs.
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

/// Events that a CPU's buffer, whose `stats` these are, had no room for.
pub(super) fn lost_events(stats: &str) -> u64 {
    stats
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| matches!(*name, "overrun" | "commit overrun" | "dropped events"))
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

/// By inode alone: what else is recorded of another device is passed over when it is read.
fn inode_filter(files: &[Inode]) -> String {
    let terms: Vec<String> = files.iter().map(|file| format!("i_ino == {}", file.number)).collect();
    terms.join(" || ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_loss_counts() {
        let stats = "entries: 9\noverrun: 3\ncommit overrun: 2\nbytes: 9\noldest event ts: 1.5\n\
                     dropped events: 1\nread events: 7\n";
        assert_eq!(lost_events(stats), 6);
    }

    #[test]
    fn a_filter_names_each_file() {
        let file = |number| Inode { major: 1, minor: 2, number };
        assert_eq!(inode_filter(&[file(5), file(6)]), "i_ino == 5 || i_ino == 6");
    }
}
