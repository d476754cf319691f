//! A child process that maps a file, accesses pages of it, and counts what that cost.
//!
//! The child is this program, run again with a hidden argument: it shares no memory with its
//! parent and does nothing but the accesses between the two counts. A program that starts probes
//! calls [`main_if_child`] first thing in its `main`.

mod bus;
mod busy;
mod child;
pub mod cpus;
mod files;
mod mapping;
mod meter;
mod piped;
mod plan;
mod populate;
mod process;
mod settle;
mod start;
mod thrash;
mod thread;
mod wire;

use std::path::PathBuf;

pub use filemap_core::address::mapping::{Split, SplitProt};
pub use filemap_core::address::vma::{Advice, HugeHint, ReadHint};
use filemap_core::units::{PageCount, PageIndex};
pub use filemap_job::elf::Segment;

pub use process::{Area, Process, Step};
pub use thrash::{Progress, Thrash, Thrashing};

pub(crate) use files::raise_limit;

use crate::residency::PageSet;
use crate::{Error, page_size};
use piped::Piped;
use wire::Reply;

/// The hidden first argument.
const CHILD_ARGUMENT: &str = "__filemap-probe";

/// Turns this process into a probe's child, if it was started as one; does not return then.
pub fn main_if_child() {
    let first = std::env::args_os().nth(1);
    let main = match first.as_ref().and_then(|argument| argument.to_str()) {
        Some(CHILD_ARGUMENT) => child::main,
        Some(thrash::ARGUMENT) => thrash::main,
        _ => return,
    };
    std::process::exit(main())
}

/// Whether this process was started as a probe's child.
pub fn is_child() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == CHILD_ARGUMENT || argument == thrash::ARGUMENT)
}

/// Exit code of a child that could not allocate memory.
pub const STARVED_EXIT_CODE: i32 = 4;

/// The mapping of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Page of the file with which it begins.
    pub offset: PageIndex,
    /// Its length in pages, 1 or more: with segments up to the end of the last of them.
    pub pages: PageCount,
    /// Where it begins: this many pages after an address that a PMD entry begins at.
    pub shift: PageCount,
    /// What `madvise` is told.
    pub advice: Advice,
    /// Mapped executable.
    pub executable: bool,
    /// Mapped private; what is stored stays in the child.
    pub private: bool,
    /// Cut into VMAs: every second piece, from the second on, is protected differently.
    pub split: Option<Split>,
}

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads a byte of a page of the mapping, counted from its beginning.
    Touch(PageIndex),
    /// Writes a byte of a page of a private mapping.
    Store(PageIndex),
    /// Calls the code at the start of a page of an executable mapping: it has to be [`RETURN`].
    Call(PageIndex),
    /// `read(2)`s from the file, through the same open file as the mapping.
    Read {
        /// Where in the file, in bytes.
        offset: u64,
        /// How much: up to [`MAX_READ_BYTES`].
        bytes: u64,
    },
}

/// The instruction that returns to the caller, one byte long, on x86-64: the only machine on which
/// a probe calls what it maps.
pub const RETURN: u8 = 0xc3;

/// The longest single read.
pub const MAX_READ_BYTES: u64 = 256 << 20;

/// What a probe of one file does, through one mapping and in one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The file.
    pub path: PathBuf,
    /// How it is mapped.
    pub mapping: Mapping,
    /// The parts of the file that are mapped instead, each at its own place in the mapping, private
    /// and with its own protection. For none the mapping is of one part of the file.
    pub segments: Vec<Segment>,
    /// Accesses, counted and timed phase by phase.
    pub phases: Vec<Vec<Access>>,
    /// After each access, waits until nothing of the file is still being read. What the kernel
    /// does next depends on timing otherwise; the times of the phases mean nothing with it.
    pub settle: bool,
    /// Reports which pages of the mapping have a page-table entry in the end.
    pub report_mapped: bool,
}

/// What one phase cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseCost {
    /// Minor faults.
    pub minor: u64,
    /// Major faults.
    pub major: u64,
    /// Bytes fetched from storage on the child's behalf, where the kernel accounts that.
    pub read_bytes: Option<u64>,
    /// How long it took.
    pub elapsed_ns: u64,
    /// Pages of all files in the cache at its end, and evicted since the run began: of a process of
    /// one thread that takes more than one step, where the kernel tells.
    pub left: Option<Left>,
    /// Pages of its file that it dropped from the cache, where it is that kind of step and the
    /// kernel tells.
    pub dropped: Option<u64>,
    /// Its major faults also count pages that it only waited for.
    pub counts_waits: bool,
}

/// What a phase left of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Pages in the cache.
    pub cached: u64,
    /// Pages that reclaim took and that did not come back.
    pub evicted: u64,
}

/// What came out of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Address at which the mapping began.
    pub address: u64,
    /// Whether the child's own memory was locked, so that none of the faults are its own.
    pub locked: bool,
    /// One for each phase of the plan.
    pub phases: Vec<PhaseCost>,
    /// Mapped pages, counted from the beginning of the mapping; empty if not asked for.
    pub mapped: PageSet,
}

/// What came out of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Whether the child's own memory was locked, so that none of the faults are its own.
    pub locked: bool,
    /// Each thread.
    pub threads: Vec<EndedThread>,
    /// Mapped pages, counted from the beginning of the first mapping; empty if not asked for.
    pub mapped: PageSet,
}

/// What came out of one thread of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedThread {
    /// From where all threads began to its own end.
    pub elapsed_ns: u64,
    /// What each of its steps cost.
    pub steps: Vec<PhaseCost>,
}

/// A child that has opened and mapped its files and waits. It is killed when this drops.
#[derive(Debug)]
pub struct Probe {
    child: Piped,
    addresses: Vec<u64>,
}

impl Probe {
    /// Starts a child and waits until it has mapped the file; no page is accessed yet. Empty the
    /// cache, limit the memory and start the trace now.
    ///
    /// # Errors
    /// A plan that cannot be run; the file cannot be opened or mapped that way.
    pub fn start(plan: &Plan) -> Result<Self, Error> {
        let process = plan.process();
        process.check()?;
        plan.check_length()?;
        Self::spawn(&process)
    }

    /// [`Probe::start`] for a process of any number of files, mappings and threads. A page behind
    /// the end of a file may be accessed: that is [`Error::Bus`].
    ///
    /// # Errors
    /// As for [`Probe::start`].
    pub fn start_process(process: &Process) -> Result<Self, Error> {
        process.check()?;
        Self::spawn(process)
    }

    fn spawn(process: &Process) -> Result<Self, Error> {
        let mut child = Piped::spawn(CHILD_ARGUMENT)?;
        child.send(&process.encode());
        match child.receive()? {
            Reply::Ready { addresses } => Ok(Probe { child, addresses }),
            _ => Err(child.confused()),
        }
    }

    /// Process id of the child.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Where each mapping is, or will be.
    pub fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    /// Has the child of a [`Plan`] make its accesses, and waits for it.
    ///
    /// # Errors
    /// [`Error::ChildKilled`], for instance when the file shrank meanwhile.
    pub fn run(self) -> Result<Outcome, Error> {
        let address = self.addresses.first().copied().unwrap_or_default();
        let ended = self.run_process().map_err(|error| match error {
            // All that a plan accesses was in the file.
            Error::Bus { .. } => killed_by(libc::SIGBUS),
            error => error,
        })?;
        let Ended { locked, mapped, threads, .. } = ended;
        let phases = threads.into_iter().next().map_or(Vec::new(), |thread| thread.steps);
        Ok(Outcome { address, locked, phases, mapped })
    }

    /// Has the child take its steps, and waits for it.
    ///
    /// # Errors
    /// [`Error::Bus`]; [`Error::ChildKilled`].
    pub fn run_process(mut self) -> Result<Ended, Error> {
        self.child.send(&[1]);
        match self.child.receive()? {
            Reply::Done(ended) => Ok(ended),
            Reply::Bus(address) => {
                let before = self.addresses.iter().enumerate();
                let before = before.filter(|(_, start)| **start <= address);
                let nearest = before.max_by_key(|(_, start)| **start);
                let (mapping, start) = nearest.expect("a process without mappings touches nothing");
                Err(Error::Bus { mapping, page: (address - start) / page_size() })
            }
            _ => Err(self.child.confused()),
        }
    }
}

/// The error for a child that `signal` killed, with what to do.
pub(crate) fn killed_by(signal: i32) -> Error {
    let remedy = match signal {
        libc::SIGBUS => "the file must not shrink, and its disk must not fail, while it is read",
        libc::SIGKILL => "if nobody did, memory ran out: allow more, or use a smaller file",
        libc::SIGINT | libc::SIGTERM => "run it again without ending it",
        _ => "run it again, and report it if it happens again",
    };
    Error::ChildKilled { signal, remedy }
}
