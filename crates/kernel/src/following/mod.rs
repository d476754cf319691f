//! What a program and all that it starts does with files, as the kernel tells root: faults, reads,
//! mappings, processes. Nothing is loaded into the program.
//!
//! Perf events of this thread, which its children inherit, write into a ring for each CPU: an event
//! that has no samples tells of mappings and processes, and the others are tracepoints.

mod points;
mod records;
mod ring;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use crate::Error;
use crate::journal::Journal;
use crate::trace::{Inode, TraceFs};
use points::Points;
use ring::Ring;

/// Room for what is told and not read yet, on all CPUs together.
const RINGS_BYTES: u64 = 64 << 20;

/// Room for mappings and processes on one CPU, of which whoever waits is woken at once.
const MAPPINGS_RING_BYTES: u64 = 256 << 10;

/// The least and the most of it on one CPU.
const LEAST_RING_BYTES: u64 = 1 << 20;
const MOST_RING_BYTES: u64 = 16 << 20;

/// Something that a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// What it did.
    pub what: What,
}

/// What a thread can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It faulted, or the kernel did for it.
    Fault {
        /// The address.
        address: u64,
        /// Whether it was written to.
        is_write: bool,
    },
    /// It looked for pages of a file to read them. A read that takes several steps is told at each,
    /// with the same last page.
    Read {
        /// The file.
        file: Inode,
        /// The first page.
        first: u64,
        /// The last page, which may be behind the end of the file.
        last: u64,
    },
    /// Something is mapped in place of what was there, or has another protection.
    Map(Map),
    /// It is about to call mmap(2) with these flags.
    CallsMap {
        /// `MAP_` bits.
        flags: u64,
    },
    /// It is about to unmap something.
    Unmap {
        /// Where that begins.
        address: u64,
        /// How long it is, in bytes.
        length_bytes: u64,
    },
    /// It is about to move something, or to give it another length.
    CallsMove {
        /// Where that begins.
        address: u64,
        /// How long it is, in bytes.
        length_bytes: u64,
        /// How long it is to be.
        new_length_bytes: u64,
    },
    /// It has done so.
    Moved {
        /// Where it is now; an error number below 0 where it is where it was.
        result: i64,
    },
    /// It is about to advise something.
    Advise {
        /// Where that begins.
        address: u64,
        /// How long it is, in bytes.
        length_bytes: u64,
        /// The number of the advice.
        advice: u64,
    },
    /// It is about to advise a part of a file that it has open.
    AdviseFile {
        /// The descriptor.
        descriptor: u64,
        /// Where that begins, in bytes.
        offset_bytes: u64,
        /// How long it is, in bytes; 0 is up to the end of the file.
        length_bytes: u64,
        /// The number of the advice; nothing where it calls readahead(2).
        advice: Option<u64>,
    },
    /// It is about to become another program, for which the kernel reads files.
    CallsExec,
    /// It has become another program.
    Exec,
    /// It could not, or has long been that.
    ExecReturns,
    /// It was made: a process where its number is not its parent's, else a thread.
    Begin {
        /// The process that made it.
        parent: u32,
    },
    /// It ends.
    End,
    /// So many records were lost.
    Lost {
        /// How many.
        records: u64,
    },
}

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Its address.
    pub address: u64,
    /// Its length in bytes.
    pub length_bytes: u64,
    /// Where it begins in the file, in bytes.
    pub offset_bytes: u64,
    /// The file; nothing where it is no file's.
    pub file: Option<(Inode, PathBuf)>,
    /// `PROT_` bits.
    pub protection: u32,
    /// `MAP_` bits, of which the kernel knows few by then.
    pub flags: u32,
}

/// The events of this thread's children. They begin when a child calls [`switch_on`].
#[derive(Debug)]
pub struct Following {
    rings: Vec<Ring>,
    events: Vec<OwnedFd>,
    /// As many of them as tell of mappings, at the end.
    mappings: usize,
    points: Points,
    own_pid: u32,
}

impl Following {
    /// Opens the events, which are off.
    ///
    /// # Errors
    /// Not root; no tracefs; a kernel without the tracepoints of faults; too few open files.
    pub fn open(journal: &Journal) -> Result<Following, Error> {
        let tracefs = TraceFs::open(journal)?;
        let points = Points::of(&tracefs)?;
        // SAFETY: the call takes a number.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let cpus = u64::try_from(cpus).unwrap_or(1).max(1);
        let bytes = (RINGS_BYTES / cpus).clamp(LEAST_RING_BYTES, MOST_RING_BYTES);
        let (mut rings, mut events, mut mappings) = (Vec::new(), Vec::new(), Vec::new());
        for cpu in 0..cpus {
            let Some(told) = open_event(&points::mappings(), cpu)? else { continue };
            rings.push(Ring::map(&told, MAPPINGS_RING_BYTES).map_err(refused)?);
            mappings.push(told);
            let mut first: Option<OwnedFd> = None;
            for attributes in points.attributes() {
                let Some(event) = open_event(&attributes, cpu)? else { continue };
                match &first {
                    Some(first) => {
                        redirect(&event, first)?;
                        events.push(event);
                    }
                    None => {
                        // It is there before others write into it.
                        rings.push(Ring::map(&event, bytes).map_err(refused)?);
                        first = Some(event);
                    }
                }
            }
            events.extend(first);
        }
        let (own_pid, count) = (std::process::id(), mappings.len());
        events.extend(mappings);
        Ok(Following { rings, events, mappings: count, points, own_pid })
    }

    /// The tracepoints that this kernel lacks, without which less is told.
    pub fn missing(&self) -> &[&'static str] {
        self.points.missing()
    }

    /// The events, for [`switch_on`].
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.events.iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// Adds what was told since this was asked last to `seen`, in no order. A record is in its
    /// ring by a millisecond after its time.
    pub fn read(&mut self, seen: &mut Vec<Seen>) {
        let first = seen.len();
        for ring in &mut self.rings {
            ring.read(|record| seen.extend(records::parse(record, &self.points)));
        }
        let own_pid = self.own_pid;
        let is_lost = |what: &What| matches!(what, What::Lost { .. });
        let mut at = 0;
        seen.retain(|seen| {
            at += 1;
            at <= first || seen.pid != own_pid || is_lost(&seen.what)
        });
    }

    /// Waits until a mapping is made, or for so many milliseconds.
    pub fn wait(&self, milliseconds: i32) {
        let mappings = &self.events[self.events.len() - self.mappings..];
        let poll = |event: &OwnedFd| libc::pollfd {
            fd: event.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polled: Vec<_> = mappings.iter().map(poll).collect();
        // SAFETY: there are as many of them as it is told.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
    }
}

/// Switches the events of [`Following::descriptors`] on, in a child that was forked and has not
/// called exec yet. It makes system calls only.
pub fn switch_on(events: &[RawFd]) {
    for event in events {
        // SAFETY: the descriptor was the parent's, and the request takes no argument.
        unsafe { libc::ioctl(*event, ENABLE, 0) };
    }
}

/// Requests of perf_event_open(2).
const ENABLE: u64 = 0x2400;
const SET_OUTPUT: u64 = 0x2405;

/// The descriptor is closed by exec.
const CLOEXEC: u64 = 1 << 3;

/// Opens an event of this thread on one CPU; nothing where that CPU is off.
fn open_event(attributes: &points::Attributes, cpu: u64) -> Result<Option<OwnedFd>, Error> {
    let (own_thread, no_group) = (0, -1);
    // SAFETY: the kernel reads as many bytes as the attributes say that they have.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            own_thread,
            cpu as i32,
            no_group,
            CLOEXEC,
        )
    };
    if opened >= 0 {
        // SAFETY: the kernel has just opened it for this process.
        return Ok(Some(unsafe { OwnedFd::from_raw_fd(opened as i32) }));
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        error => Err(refused(error)),
    }
}

/// Has `event` write into the ring of `to`.
fn redirect(event: &OwnedFd, to: &OwnedFd) -> Result<(), Error> {
    // SAFETY: both are ours.
    match unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, to.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(refused(io::Error::last_os_error())),
    }
}

fn refused(error: io::Error) -> Error {
    let remedy = match error.raw_os_error() {
        Some(libc::EMFILE) => "raise the limit of open files, ulimit -n",
        Some(libc::ENOMEM | libc::EPERM) => "raise ulimit -l, or use real root, not a container's",
        _ => "use a kernel that permits perf events to root",
    };
    Error::unavailable(format!("perf events of tracepoints ({error})"), remedy)
}
