//! A child process that maps files, accesses pages, and counts the costs.
//!
//! The child is this program, run again with a hidden argument: it shares no memory with its parent
//! and does nothing but the accesses between two readings of the counters. A program that starts
//! probes calls [`main_if_child`] first thing in its `main`.

mod child;
pub mod cpus;
mod flushes;
mod fork;
mod in_flight;
mod mapping;
mod memory;
mod meter;
mod pacing;
mod process;
mod results;
mod sync;
mod thread;
mod wire;

use std::time::Duration;

use filemap_core::lru::statistics::FLUSH_INTERVAL_NS;

pub use process::{MAX_READ_BYTES, ProbeProcess};
pub use results::{CacheCounts, PhaseCost, ProbeResult, ThreadResult};
pub use thread::RETURN_OPCODE;

pub(crate) use process::raise_limit;
pub(crate) use wire::kill_error;

use crate::governor::GovernorProcess;
use crate::{Error, page_size};
use wire::{ChildPipe, Reply};

/// Hidden first argument of the child.
const CHILD_ARGUMENT: &str = "__filemap-probe";

/// Runs the child and does not return, if this process was started as one.
pub fn main_if_child() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == CHILD_ARGUMENT) {
        std::process::exit(child::main())
    }
}

/// Interval at which the kernel flushes memory cgroup statistics.
const FLUSH_PERIOD: Duration = Duration::from_nanos(FLUSH_INTERVAL_NS);

/// Command to a waiting child: allocate a page.
const HOLD_OWN_PAGE: u8 = 0;
/// Command to a waiting child: begin the steps.
const BEGIN: u8 = 1;
/// Command to a waiting child: allocate the anonymous memory that the job holds at the beginning,
/// and fill the page cache.
const READ_CACHED: u8 = 2;

/// A child that has opened and mapped its files and waits; killed on drop.
#[derive(Debug)]
pub struct Probe {
    // Dropped before the child.
    governor: Option<GovernorProcess>,
    child: ChildPipe,
    addresses: Vec<u64>,
    /// PIDs of the processes that the child has forked.
    forked: Vec<u32>,
}

impl Probe {
    /// Starts a child and waits until it has opened and mapped its files; no page is accessed yet.
    /// Empty the cache, limit the memory and start the trace now. Accessing a page beyond the end
    /// of a file gives [`Error::Bus`]. Otherwise the steps have to be valid: they access mapped
    /// pages only.
    ///
    /// # Errors
    /// The process is invalid; a file cannot be opened or mapped that way.
    pub fn start(process: &ProbeProcess) -> Result<Self, Error> {
        process.check()?;
        Self::spawn(process, false)
    }

    /// [`Probe::start`] for a process that begins at a flush of the memory cgroup statistics.
    /// Records the number of accesses that a single thread had begun at each flush.
    ///
    /// # Errors
    /// As for [`Probe::start`].
    pub fn start_at_flush(process: &ProbeProcess) -> Result<Self, Error> {
        process.check()?;
        Self::spawn(process, process.is_alone())
    }

    fn spawn(process: &ProbeProcess, notes_flushes: bool) -> Result<Self, Error> {
        let mut child = ChildPipe::spawn(CHILD_ARGUMENT)?;
        child.send(&[u8::from(notes_flushes)]);
        child.send(&wire::frame(process));
        match child.receive()? {
            Reply::Ready { addresses, forked } => {
                let governor = process.is_governed.then(|| GovernorProcess::start_for(child.pid()));
                Ok(Probe { governor: governor.transpose()?, child, addresses, forked })
            }
            _ => Err(child.protocol_error()),
        }
    }

    /// PID of the child.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// PIDs of the child and of the processes that it has forked.
    pub fn pids(&self) -> Vec<u32> {
        [self.pid()].into_iter().chain(self.forked.iter().copied()).collect()
    }

    /// PID of the child's governor, which reads on its behalf.
    pub fn governor_pid(&self) -> Option<u32> {
        self.governor.as_ref().map(GovernorProcess::pid)
    }

    /// Address of each mapping, whether or not it is mapped yet.
    pub fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    /// Makes the child hold one page of its own until it begins.
    pub fn hold_own_page(&mut self) {
        self.child.send(&[HOLD_OWN_PAGE]);
    }

    /// Makes the child allocate its anonymous memory and then fill the page cache as the job
    /// begins, and waits for it.
    ///
    /// # Errors
    /// A file cannot be read; [`Error::ChildKilled`].
    pub fn read_cached(&mut self) -> Result<(), Error> {
        self.child.send(&[READ_CACHED]);
        match self.child.receive()? {
            Reply::HasRead => Ok(()),
            _ => Err(self.child.protocol_error()),
        }
    }

    /// Makes the child run its steps, and waits for it.
    ///
    /// # Errors
    /// [`Error::Bus`]; [`Error::ChildKilled`].
    pub fn run(mut self) -> Result<ProbeResult, Error> {
        self.child.send(&[BEGIN]);
        match self.child.receive()? {
            Reply::Done(ended) => Ok(match self.governor.take() {
                Some(governor) => ended.with_governor(governor),
                None => ended,
            }),
            Reply::Bus(address) => {
                let address = u64::from_le_bytes(address);
                let before = self.addresses.iter().enumerate();
                let before = before.filter(|(_, start)| **start <= address);
                let nearest = before.max_by_key(|(_, start)| **start);
                let (mapping, start) = nearest.expect("a process without mappings touches nothing");
                Err(Error::Bus { mapping, page: (address - start) / page_size() })
            }
            _ => Err(self.child.protocol_error()),
        }
    }
}
