//! TraceEventKind a program and all that it starts does with files, as the kernel tells root:
//! faults, reads, advice, mappings, processes.
//!
//! Perf events write into the rings: one that has no samples tells of mappings and processes, and
//! the others are tracepoints.

mod points;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use crate::now_ns;
use crate::perf::{self, Flag, OWN_THREAD, PerfRecord, RecordKind, RingConfig, RingSpec, Rings};
use crate::{Error, FileId, MappedRange, event, process};
use points::TracepointTable;

/// One ring has the faults, and one all else, of which each wakes who waits.
const RING_CONFIG: RingConfig = RingConfig {
    rings: &[
        RingSpec { root_bytes: 8 << 20, user_bytes: 128 << 10, wakeup_bytes: 1 },
        RingSpec { root_bytes: 8 << 20, user_bytes: 256 << 10, wakeup_bytes: 128 << 10 },
    ],
    dedups_faults: false,
};

/// A record is in its ring by so long after its time.
const MAX_RECORD_DELAY_NS: u64 = 1_000_000;

/// Something that a thread did, as tracepoints tell it.
pub type TraceEvent = event::Event<TraceEventKind>;

/// TraceEventKind a thread can do. A length or address is in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEventKind {
    /// It faulted, or the kernel did for it.
    Fault {
        address: u64,
        is_write: bool,
    },
    /// It looked for pages of a file to read them. A read that takes several steps is told at each,
    /// with the same last page, which may be beyond the end of the file.
    Read {
        file: FileId,
        first: u64,
        last: u64,
    },
    /// Something is mapped in place of what was there, or has another protection.
    Map(MappedRange),
    /// It is about to call mmap(2) with these `MAP_` bits.
    MmapCall {
        flags: u64,
    },
    /// It is about to unmap something.
    MunmapCall {
        address: u64,
        length_bytes: u64,
    },
    /// It is about to move something, or to give it another length.
    MremapCall {
        address: u64,
        length_bytes: u64,
        new_length_bytes: u64,
    },
    /// It has done so: where it is now, or an error number below 0 where it is where it was.
    MremapReturn {
        result: i64,
    },
    /// It is about to advise something, by the number of the advice.
    MadviseCall {
        address: u64,
        length_bytes: u64,
        advice: u64,
    },
    /// It has done so: 0, or an error number below 0.
    MadviseReturn {
        result: i64,
    },
    /// It is about to advise a part of an open file; all from the offset on where the length is 0.
    FadviseCall {
        fd: u64,
        offset_bytes: u64,
        length_bytes: u64,
        advice: u64,
    },
    /// It is about to have a part of an open file read ahead.
    ReadaheadCall {
        fd: u64,
        offset_bytes: u64,
        length_bytes: u64,
    },
    /// It is about to become another program, for which the kernel reads files.
    ExecCall,
    /// It has become another program.
    Exec,
    /// It could not, or has long been that.
    ExecReturn,
    /// It was made: a process where its number is not its parent's, else a thread.
    Fork {
        parent: u32,
    },
    Exit,
    /// So many records were lost.
    Lost {
        records: u64,
    },
}

/// The events of processes, by tracepoints.
#[derive(Debug)]
pub struct Tracepoints {
    rings: Rings,
    events: Vec<OwnedFd>,
    points: TracepointTable,
    /// TraceEventKind is told before all that is in the rings.
    initial_events: Vec<TraceEvent>,
    own_pid: u32,
}

impl Tracepoints {
    /// Follows what is named by [`Tracepoints::add`]. `tracefs` is where that is mounted.
    ///
    /// # Errors
    /// Not root; a kernel without the tracepoints of faults; too few open files.
    pub fn for_processes(tracefs: &Path) -> Result<Tracepoints, Error> {
        let points = TracepointTable::open(tracefs)?;
        let rings = Rings::open(RING_CONFIG).map_err(perf_error)?;
        let own_pid = std::process::id();
        Ok(Tracepoints { rings, events: Vec::new(), points, initial_events: Vec::new(), own_pid })
    }

    /// Follows the children of the calling thread, from where each calls [`switch_on`].
    ///
    /// # Errors
    /// Those of [`Tracepoints::of_processes`].
    pub fn for_children(tracefs: &Path) -> Result<Tracepoints, Error> {
        let mut opened = Tracepoints::for_processes(tracefs)?;
        opened.follow(OWN_THREAD, &[Flag::Disabled]).map_err(perf_error)?;
        Ok(opened)
    }

    /// Follows a process that runs, and what it starts from now on. TraceEventKind it has mapped is
    /// told as if it was mapped now.
    ///
    /// # Errors
    /// Those of [`Tracepoints::of_processes`]; the process is gone.
    pub fn add(&mut self, pid: u32) -> Result<(), Error> {
        process::check_is_process(pid)?;
        perf::each_thread(pid, |tid| self.follow(tid, &[]), perf_error)?;
        let at_ns = now_ns();
        let told = |range| TraceEvent { at_ns, pid, tid: pid, kind: TraceEventKind::Map(range) };
        self.initial_events.extend(process::maps(pid)?.into_iter().map(told));
        Ok(())
    }

    fn follow(&mut self, tid: u32, flags: &[Flag]) -> io::Result<()> {
        let mut opened = Vec::new();
        for (cpu, targets) in self.rings.targets() {
            for (attributes, is_fault) in self.points.attributes() {
                let target = targets[usize::from(is_fault)];
                opened.push(perf::open_into(target, &attributes.with_flags(flags), tid, cpu)?);
            }
        }
        self.events.append(&mut opened);
        Ok(())
    }

    /// The tracepoints that this kernel lacks, without which less is told.
    pub fn missing_tracepoints(&self) -> &[&'static str] {
        self.points.missing()
    }

    /// The events, for [`switch_on`].
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.events.iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// TraceEventKind becomes readable when a ring begins to fill.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.rings.fd()
    }

    /// Waits until a ring begins to fill, or for `timeout`.
    ///
    /// # Errors
    /// None but those of the machine.
    pub fn wait(&self, timeout: Duration) -> Result<(), Error> {
        self.rings.wait(timeout).map(drop).map_err(perf_error)
    }

    /// Hands all that was told since to `take`, in order of time. TraceEventKind is less than a
    /// millisecond old is told the next time, or now where it `is_over`.
    pub fn read_events(&mut self, is_over: bool, take: &mut dyn FnMut(TraceEvent)) {
        self.initial_events.drain(..).for_each(&mut *take);
        let until_ns =
            if is_over { u64::MAX } else { now_ns().saturating_sub(MAX_RECORD_DELAY_NS) };
        let (points, own_pid) = (&self.points, self.own_pid);
        self.rings.read(until_ns, |record, _| {
            // The events of this process are on too once a child has switched them on.
            let is_told = |event: &TraceEvent| {
                event.pid != own_pid || matches!(event.kind, TraceEventKind::Lost { .. })
            };
            parse_record(&record, points).filter(is_told).into_iter().for_each(&mut *take);
        });
    }
}

/// Switches the events of [`Tracepoints::descriptors`] on, in a child that was forked and has not
/// called exec yet. It makes system calls only.
pub fn enable_events(events: &[RawFd]) {
    events.iter().for_each(|event| perf::enable(*event));
}

fn parse_record(record: &PerfRecord<'_>, points: &TracepointTable) -> Option<TraceEvent> {
    if record.kind == RecordKind::Sample {
        let origin = record.origin();
        let what = points.decode(record.raw()?)?;
        return Some(TraceEvent {
            at_ns: origin.at_ns,
            pid: origin.pid,
            tid: origin.tid,
            kind: what,
        });
    }
    let event::Event { at_ns, pid, tid, kind: what } = record.event()?;
    let what = match what {
        event::EventKind::Map(range) => TraceEventKind::Map(range),
        event::EventKind::Fork { parent } => TraceEventKind::Fork { parent },
        event::EventKind::Exec => TraceEventKind::Exec,
        event::EventKind::Exit => TraceEventKind::Exit,
        event::EventKind::Lost { records } => TraceEventKind::Lost { records },
        event::EventKind::Fault { .. } => return None,
    };
    Some(TraceEvent { at_ns, pid, tid, kind: what })
}

fn perf_error(cause: io::Error) -> Error {
    let remedy = match cause.raw_os_error() {
        Some(libc::EMFILE) => "raise the limit of open files, ulimit -n",
        Some(libc::ENOMEM | libc::EPERM) => "raise ulimit -l, or use real root, not a container's",
        Some(libc::EACCES) => "run this as root",
        _ => "use a kernel that permits perf events to root",
    };
    Error::refused("perf events of tracepoints", cause, remedy)
}
