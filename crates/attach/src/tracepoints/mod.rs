//! Follows the file activity of processes by tracepoints, which require root: faults, reads,
//! advice, mappings, and the life of processes.
//!
//! All events are perf events that write to common rings: a dummy event reports mappings and
//! processes, the others are tracepoints.

mod points;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use crate::now_ns;
use crate::perf::{self, Flag, OWN_THREAD, PerfRecord, RecordKind, RingConfig, RingSpec, Rings};
use crate::{Error, FileId, MappedRange, event, process};
use points::TracepointTable;

/// The first ring takes everything but faults, and wakes the reader on each record; the second
/// takes the faults.
const RING_CONFIG: RingConfig = RingConfig {
    rings: &[
        RingSpec { root_bytes: 8 << 20, user_bytes: 128 << 10, wakeup_bytes: 1 },
        RingSpec { root_bytes: 8 << 20, user_bytes: 256 << 10, wakeup_bytes: 128 << 10 },
    ],
    dedups_faults: false,
};

/// Upper bound on the delay between a record's timestamp and its arrival in the ring buffer.
const MAX_RECORD_DELAY_NS: u64 = 1_000_000;

/// One event of one thread, as reported by tracepoints.
pub type TraceEvent = event::Event<TraceEventKind>;

/// Kinds of events. Addresses, offsets and lengths are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEventKind {
    /// Page fault of the thread, in user mode or in the kernel on its behalf.
    Fault {
        address: u64,
        is_write: bool,
    },
    /// Page cache lookup of a read (`filemap_get_pages`), by page index. A read in several steps
    /// reports each with the same `last`, which may be past the end of the file. A step that ends
    /// at a page which is still being read is not reported, also not if it is the first.
    Read {
        file: FileId,
        first: u64,
        last: u64,
    },
    /// Entry of read(2), or of pread64(2) with its offset, of more than 4096 bytes, or of the first
    /// part of sendfile(2).
    ReadCall {
        fd: u64,
        length_bytes: u64,
        offset_bytes: Option<u64>,
    },
    /// A range was mapped, replacing any previous mapping there, or its protection changed.
    Map(MappedRange),
    /// Entry of mmap(2), with its `MAP_*` flags.
    MmapCall {
        flags: u64,
    },
    /// Entry of munmap(2).
    MunmapCall {
        address: u64,
        length_bytes: u64,
    },
    /// Entry of mremap(2).
    MremapCall {
        address: u64,
        length_bytes: u64,
        new_length_bytes: u64,
    },
    /// Exit of mremap(2): the new address, or a negated errno.
    MremapReturn {
        result: i64,
    },
    /// Entry of madvise(2), with its `MADV_*` number.
    MadviseCall {
        address: u64,
        length_bytes: u64,
        advice: u64,
    },
    /// Exit of madvise(2): 0, or a negated errno.
    MadviseReturn {
        result: i64,
    },
    /// Entry of mlock(2) or mlock2(2).
    LockCall {
        address: u64,
        length_bytes: u64,
        /// Reads the pages now; not with MLOCK_ONFAULT.
        populates: bool,
    },
    /// Entry of mlockall(2), with its `MCL_*` flags.
    LockAllCall {
        flags: u64,
    },
    /// Entry of posix_fadvise(2); a length of 0 means up to the end of the file.
    FadviseCall {
        fd: u64,
        offset_bytes: u64,
        length_bytes: u64,
        advice: u64,
    },
    /// Entry of readahead(2).
    ReadaheadCall {
        fd: u64,
        offset_bytes: u64,
        length_bytes: u64,
    },
    /// Entry of execve(2) or execveat(2), in which the kernel reads files.
    ExecCall,
    /// The exec succeeded.
    Exec,
    /// Exit of execve(2) or execveat(2), successful or not.
    ExecReturn,
    /// A new process, or a new thread if `parent` is the process itself.
    Fork {
        parent: u32,
    },
    Exit,
    /// Number of records the kernel dropped for lack of buffer space.
    Lost {
        records: u64,
    },
}

/// Event stream of a set of processes, by tracepoints.
#[derive(Debug)]
pub struct Tracepoints {
    rings: Rings,
    events: Vec<OwnedFd>,
    points: TracepointTable,
    /// Events to deliver before the contents of the rings.
    initial_events: Vec<TraceEvent>,
    own_pid: u32,
}

impl Tracepoints {
    /// Follows the processes passed to [`Tracepoints::add`]. `tracefs` is the mount point of
    /// tracefs.
    ///
    /// # Errors
    /// The caller is not root, the kernel lacks the page fault tracepoints, or the limit of open
    /// files is too low.
    pub fn for_processes(tracefs: &Path) -> Result<Tracepoints, Error> {
        let points = TracepointTable::open(tracefs)?;
        let rings = Rings::open(RING_CONFIG).map_err(perf_error)?;
        let own_pid = std::process::id();
        Ok(Tracepoints { rings, events: Vec::new(), points, initial_events: Vec::new(), own_pid })
    }

    /// Follows children of the calling thread, each from its call of [`enable_events`] on.
    ///
    /// # Errors
    /// As [`Tracepoints::for_processes`].
    pub fn for_children(tracefs: &Path) -> Result<Tracepoints, Error> {
        let mut opened = Tracepoints::for_processes(tracefs)?;
        opened.follow(OWN_THREAD, &[Flag::Disabled]).map_err(perf_error)?;
        Ok(opened)
    }

    /// Adds a running process and its future descendants. Its existing mappings are reported as if
    /// mapped now.
    ///
    /// # Errors
    /// As [`Tracepoints::for_processes`], or the process is gone.
    pub fn add(&mut self, pid: u32) -> Result<(), Error> {
        process::check_is_process(pid)?;
        perf::each_thread(pid, |tid| self.follow(tid, &[]), perf_error)?;
        let at_ns = now_ns();
        let map_event =
            |range| TraceEvent { at_ns, pid, tid: pid, kind: TraceEventKind::Map(range) };
        self.initial_events.extend(process::maps(pid)?.into_iter().map(map_event));
        Ok(())
    }

    fn follow(&mut self, tid: u32, flags: &[Flag]) -> io::Result<()> {
        let mut opened = Vec::new();
        for (cpu, targets) in self.rings.targets() {
            for spec in self.points.events() {
                let target = targets[usize::from(spec.is_fault)];
                let event = perf::open_into(target, &spec.attributes.with_flags(flags), tid, cpu)?;
                if let Some(filter) = spec.filter {
                    perf::set_filter(&event, filter)?;
                }
                opened.push(event);
            }
        }
        self.events.append(&mut opened);
        Ok(())
    }

    /// Optional tracepoints that this kernel lacks.
    pub fn missing_tracepoints(&self) -> &[&'static str] {
        self.points.missing()
    }

    /// Descriptors of the events, for [`enable_events`].
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.events.iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// Descriptor to poll(2); readable once a ring reaches its watermark.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.rings.fd()
    }

    /// Waits up to `timeout` until a ring reaches its watermark.
    ///
    /// # Errors
    /// Polling fails.
    pub fn wait(&self, timeout: Duration) -> Result<(), Error> {
        self.rings.wait(timeout).map(drop).map_err(perf_error)
    }

    /// Passes the new events to `take`, in order of time. Events younger than 1 ms are held back,
    /// since older records may still be on their way, unless `is_over`.
    pub fn read_events(&mut self, is_over: bool, take: &mut dyn FnMut(TraceEvent)) {
        self.initial_events.drain(..).for_each(&mut *take);
        let until_ns =
            if is_over { u64::MAX } else { now_ns().saturating_sub(MAX_RECORD_DELAY_NS) };
        let (points, own_pid) = (&self.points, self.own_pid);
        self.rings.read(until_ns, |record, _| {
            // A child that enables its inherited events also enables this process's, whose records
            // are dropped here.
            let is_told = |event: &TraceEvent| {
                event.pid != own_pid || matches!(event.kind, TraceEventKind::Lost { .. })
            };
            parse_record(&record, points).filter(is_told).into_iter().for_each(&mut *take);
        });
    }
}

/// Enables the events of [`Tracepoints::descriptors`]; to be called in a forked child before exec.
/// Async-signal-safe: consists of system calls only.
pub fn enable_events(events: &[RawFd]) {
    events.iter().for_each(|event| perf::enable(*event));
}

fn parse_record(record: &PerfRecord<'_>, points: &TracepointTable) -> Option<TraceEvent> {
    if record.kind == RecordKind::Sample {
        let origin = record.origin();
        let kind = points.decode(record.raw()?)?;
        return Some(TraceEvent { at_ns: origin.at_ns, pid: origin.pid, tid: origin.tid, kind });
    }
    let event::Event { at_ns, pid, tid, kind } = record.event()?;
    let kind = match kind {
        event::EventKind::Map(range) => TraceEventKind::Map(range),
        event::EventKind::Fork { parent } => TraceEventKind::Fork { parent },
        event::EventKind::Exec => TraceEventKind::Exec,
        event::EventKind::Exit => TraceEventKind::Exit,
        event::EventKind::Lost { records } => TraceEventKind::Lost { records },
        event::EventKind::Fault { .. } => return None,
    };
    Some(TraceEvent { at_ns, pid, tid, kind })
}

fn perf_error(cause: io::Error) -> Error {
    let remedy = match cause.raw_os_error() {
        Some(libc::EMFILE) => "raise the limit of open files, ulimit -n",
        Some(libc::ENOMEM | libc::EPERM) => "raise ulimit -l, or use real root, not a container's",
        Some(libc::EACCES) => "run this as root",
        _ => "use a kernel that permits perf events to root",
    };
    Error::refusal("perf events of tracepoints", cause, remedy)
}
