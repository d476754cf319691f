//! How long the threads of a process waited for `mmap_lock`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use filemap_job::waits::{Cause, Histogram};

use super::event::{Fields, origin};
use super::tracefs::{TraceFs, each_line, lost_events};
use crate::Error;
use crate::journal::{Guard, Journal, Undo};
use crate::probe::cpus;

const START_LOCKING: &str = "mmap_lock_start_locking";
const ACQUIRE_RETURNED: &str = "mmap_lock_acquire_returned";

/// The enabled events.
const EVENTS: [&str; 2] =
    ["mmap_lock/mmap_lock_start_locking", "mmap_lock/mmap_lock_acquire_returned"];

/// A thread begins to wait for a lock of any kind: it is `mmap_lock` if the thread has just asked
/// for that. Some kernels lack the event.
const CONTENTION: &str = "lock/contention_begin";

/// Buffer size for the events of all CPUs together, in KiB: about a million.
const BUFFER_KIB: u64 = 96 << 10;

/// Minimum buffer size per CPU.
const MIN_BUFFER_KIB: u64 = 1 << 10;

/// An instance that records lock waits of threads. When it is full, it drops later events.
#[derive(Debug)]
pub struct WaitTrace {
    path: PathBuf,
    /// Whether the kernel has [`CONTENTION`].
    has_contention: bool,
    _guard: Guard,
}

/// The waits that a [`WaitTrace`] recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedWaits {
    /// Waits for `mmap_lock` shared.
    pub read: Histogram,
    /// Exclusive waits for it.
    pub write: Histogram,
    /// Number of shared acquisitions of `mmap_lock`.
    pub shared: u64,
    /// Duration of the recording, if the buffer was full before the end.
    pub until_full: Option<Duration>,
}

impl TracedWaits {
    /// The causes of waits, by name.
    pub fn causes(&self) -> [(&'static str, &Histogram); 2] {
        [(Cause::MmapRead.name(), &self.read), (Cause::MmapWrite.name(), &self.write)]
    }
}

impl WaitTrace {
    /// Records the current threads of the processes `pids`.
    ///
    /// # Errors
    /// The kernel lacks one of the events.
    pub fn create(tracefs: &TraceFs, journal: &Journal, pids: &[u32]) -> Result<Self, Error> {
        let missing = |event: &&str| !tracefs.root().join("events").join(event).exists();
        if let Some(event) = EVENTS.into_iter().find(missing) {
            let missing_event = format!("the tracepoint {event}");
            return Err(Error::unavailable(
                missing_event,
                "use a kernel that has it (6.12 or 6.18)",
            ));
        }
        let instances = tracefs.root().join("instances");
        let (path, guard) =
            journal.directory_in(&instances, "filemap", Undo::RemoveTraceInstance)?;
        let tells_contention = !missing(&CONTENTION);
        let trace = WaitTrace { path, has_contention: tells_contention, _guard: guard };
        trace.write("tracing_on", "0")?;
        let buffer_kib = (BUFFER_KIB / cpus::allowed_cpus()).max(MIN_BUFFER_KIB);
        trace.write("buffer_size_kb", &buffer_kib.to_string())?;
        trace.write("options/overwrite", "0")?;
        trace.write("trace_clock", "mono")?;
        let threads = pids.iter().map(|&pid| thread_list(pid)).collect::<Result<String, _>>()?;
        trace.write("set_event_pid", &threads)?;
        for event in EVENTS.into_iter().chain(tells_contention.then_some(CONTENTION)) {
            trace.write(&format!("events/{event}/enable"), "1")?;
        }
        Ok(trace)
    }

    /// Starts recording.
    pub fn start(&self) -> Result<(), Error> {
        self.write("tracing_on", "1")
    }

    /// Stops recording.
    pub fn stop(&self) -> Result<(), Error> {
        self.write("tracing_on", "0")
    }

    /// Reads the events up to `until_ns` of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// Shutdown; the trace cannot be read.
    pub fn read(&self, until_ns: u64) -> Result<TracedWaits, Error> {
        let mut reading = WaitParser::new(self.has_contention, until_ns);
        let full = self.full_cpus()?;
        each_line(&self.path.join("trace"), |line| {
            reading.line(line);
            Ok(())
        })?;
        Ok(reading.traced(&full))
    }

    /// The CPUs whose buffers were full.
    fn full_cpus(&self) -> Result<Vec<u32>, Error> {
        let directory = self.path.join("per_cpu");
        let os = |error| Error::os("read", &directory, error);
        let mut full = Vec::new();
        for cpu in fs::read_dir(&directory).map_err(os)? {
            let path = cpu.map_err(os)?.path();
            let stats = fs::read_to_string(path.join("stats")).map_err(os)?;
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if lost_events(&stats) > 0 {
                full.extend(name.strip_prefix("cpu").and_then(|number| number.parse::<u32>().ok()));
            }
        }
        Ok(full)
    }

    fn write(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        fs::write(&path, value).map_err(|error| Error::os("write", &path, error))
    }
}

/// The threads of process `pid`, in the format of `set_event_pid`.
fn thread_list(pid: u32) -> Result<String, Error> {
    let path = PathBuf::from(format!("/proc/{pid}/task"));
    let os = |error| Error::os("read", &path, error);
    let mut threads = String::new();
    for thread in fs::read_dir(&path).map_err(os)? {
        threads.push_str(&thread.map_err(os)?.file_name().to_string_lossy());
        threads.push(' ');
    }
    Ok(threads)
}

/// A lock event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockEvent {
    /// A thread requests the lock.
    Start { write: bool },
    /// It waits for a lock.
    Contended,
    /// It got the lock, or was refused.
    Returned { write: bool, is_given: bool },
}

/// Parses the events of a trace, in order of time.
struct WaitParser {
    /// Whether the kernel has [`CONTENTION`].
    tells_contention: bool,
    events: Vec<(u64, u32, LockEvent)>,
    /// Events after this time do not belong to the run.
    until_ns: u64,
    /// Time of the last event of each CPU.
    last_ns: BTreeMap<u32, u64>,
}

impl WaitParser {
    fn new(tells_contention: bool, until_ns: u64) -> Self {
        let (events, last_ns) = (Vec::new(), BTreeMap::new());
        WaitParser { tells_contention, events, until_ns, last_ns }
    }

    fn line(&mut self, line: &str) {
        let found = EVENTS.iter().chain([&CONTENTION]).find_map(|event| {
            let (_, name) = event.split_once('/')?;
            let (head, fields) = line.split_once(&format!(": {name}: "))?;
            Some((head, name, Fields(fields)))
        });
        let Some((head, name, fields)) = found else { return };
        let Some((at_ns, cpu, pid)) = origin(head) else { return };
        if at_ns > self.until_ns {
            return;
        }
        self.last_ns.insert(cpu, at_ns);
        let lock_event = match name {
            START_LOCKING => {
                fields.text("write").map(|write| LockEvent::Start { write: write == "true" })
            }
            ACQUIRE_RETURNED => fields.text("write").map(|write| LockEvent::Returned {
                write: write == "true",
                is_given: fields.text("success") != Some("false"),
            }),
            // Contention on spinlocks may come from interrupts.
            _ => fields
                .text("(flags")
                .is_some_and(|flags| matches!(flags, "READ)" | "WRITE)"))
                .then_some(LockEvent::Contended),
        };
        self.events.extend(lock_event.map(|lock_event| (at_ns, pid, lock_event)));
    }

    /// The waits up to the time at which the first of the CPUs `full` stopped recording.
    fn traced(self, full: &[u32]) -> TracedWaits {
        let end_ns = full.iter().filter_map(|cpu| self.last_ns.get(cpu)).min().copied();
        let first_ns = self.events.first().map(|event| event.0);
        let mut traced = TracedWaits {
            until_full: end_ns
                .zip(first_ns)
                .map(|(end_ns, first_ns)| Duration::from_nanos(end_ns.saturating_sub(first_ns))),
            ..TracedWaits::default()
        };
        let from_ns = first_ns.unwrap_or(0);
        let last_ns = end_ns.or(self.events.last().map(|event| event.0)).unwrap_or(0);
        // For each thread, its pending request; `None` if it has none.
        let mut pending_locks: BTreeMap<u32, Option<PendingLock>> = BTreeMap::new();
        let waited = |traced: &mut TracedWaits, write: bool, since_ns: u64, until_ns: u64| {
            let spans = if write { &mut traced.write } else { &mut traced.read };
            spans.add(until_ns - since_ns);
        };
        for (at_ns, pid, lock_event) in self.events {
            if end_ns.is_some_and(|end_ns| at_ns > end_ns) {
                break;
            }
            match lock_event {
                LockEvent::Start { write } => {
                    let waits = !self.tells_contention;
                    pending_locks.insert(pid, Some(PendingLock { since_ns: at_ns, write, waits }));
                }
                LockEvent::Contended => {
                    if let Some(Some(pending)) = pending_locks.get_mut(&pid) {
                        pending.waits = true;
                    }
                }
                LockEvent::Returned { write, is_given } => {
                    traced.shared += u64::from(!write && is_given);
                    // An exclusive acquisition without a pending request was requested before the
                    // recording. Shared acquisitions also come from trylock, which does not wait.
                    let before =
                        write.then_some(PendingLock { since_ns: from_ns, write, waits: true });
                    let pending = pending_locks.insert(pid, None).unwrap_or(before);
                    if let Some(PendingLock { since_ns, .. }) =
                        pending.filter(|pending| pending.waits)
                    {
                        waited(&mut traced, write, since_ns, at_ns);
                    }
                }
            }
        }
        // Threads still waiting have waited until the end.
        for PendingLock { since_ns, write, .. } in
            pending_locks.into_values().flatten().filter(|lock| lock.waits)
        {
            waited(&mut traced, write, since_ns, last_ns);
        }
        traced
    }
}

/// A thread's pending request for the lock.
#[derive(Clone, Copy, Debug)]
struct PendingLock {
    since_ns: u64,
    write: bool,
    /// Whether it has to wait, as far as known.
    waits: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(lines: &str, full: &[u32]) -> TracedWaits {
        parse_waits(lines, full, false)
    }

    fn parse_waits(lines: &str, full: &[u32], tells_contention: bool) -> TracedWaits {
        let mut reading = WaitParser::new(tells_contention, 11_000_000_000);
        lines.lines().for_each(|line| reading.line(line));
        reading.traced(full)
    }

    #[test]
    fn uncontended_lock_is_no_wait() {
        let waits = "a b-8 [001] ..... 10.000003: contention_begin: 00000000 (flags=READ)\n";
        let (first, rest) = LINES.split_at(LINES.find("a b-7 [000] ..... 10.000005").unwrap());
        let traced = parse_waits(&format!("{first}{waits}{rest}"), &[], true);
        assert_eq!((traced.read.count, traced.write.count, traced.shared), (1, 0, 2));
    }

    const LINES: &str = "\
        # tracer: nop\n\
        a b-7 [000] ..... 10.000001: mmap_lock_start_locking: mm=0000 memcg_path=/ write=true\n\
        a b-8 [001] ..... 10.000002: mmap_lock_start_locking: mm=0000 memcg_path=/ write=false\n\
        a b-7 [000] ..... 10.000005: mmap_lock_acquire_returned: mm=0 memcg_path=/ write=true \
        success=true\n\
        a b-9 [001] ..... 10.000006: mmap_lock_acquire_returned: mm=0 memcg_path=/ write=false \
        success=true\n\
        a b-8 [000] ..... 10.001002: mmap_lock_acquire_returned: mm=0 memcg_path=/ write=false \
        success=true\n";

    #[test]
    fn wait_lasts_from_start_to_acquisition() {
        let traced = traced(LINES, &[]);
        assert_eq!((traced.write.count, traced.write.sum_ns), (1, 4_000));
        assert_eq!((traced.read.count, traced.read.sum_ns), (1, 1_000_000));
        assert_eq!(traced.until_full, None);
    }

    #[test]
    fn ignores_events_after_a_buffer_is_full() {
        let traced = traced(LINES, &[1]);
        assert_eq!((traced.write.count, traced.shared), (1, 1));
        assert_eq!(traced.until_full, Some(Duration::from_micros(5)));
        // One thread still waited then.
        assert_eq!((traced.read.count, traced.read.sum_ns), (1, 4_000));
    }

    #[test]
    fn counts_waits_that_exceed_the_recording() {
        let has = "mmap_lock_acquire_returned: mm=0 memcg_path=/";
        let asks = "mmap_lock_start_locking: mm=0 memcg_path=/";
        let lines = format!(
            "a b-1 [000] ..... 1.000000: {asks} write=false\n\
             a b-2 [000] ..... 1.000003: {has} write=true success=true\n\
             a b-3 [000] ..... 1.000004: {has} write=false success=false\n\
             a b-2 [000] ..... 1.000009: {has} write=true success=true\n"
        );
        let traced = traced(&lines, &[]);
        assert_eq!((traced.write.count, traced.write.sum_ns), (1, 3_000));
        assert_eq!((traced.read.count, traced.read.sum_ns), (1, 9_000));
    }
}
