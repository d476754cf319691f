//! What a probe's child is: files that it opens, what it maps of them, and its threads.

use std::path::PathBuf;

use filemap_core::address::mapping::SplitProt;
use filemap_core::units::PageCount;
use filemap_job::program::{NamedMapping, ProgramStep, ProgramThread, Protection};
use serde::{Deserialize, Serialize};

use crate::Error;

/// A child process: its files, open file descriptions, mappings and threads. Where threads are of
/// other processes, it forks those when it has opened and mapped all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeProcess {
    /// Paths of the files: at least one.
    #[serde(with = "super::wire::paths")]
    pub files: Vec<PathBuf>,
    /// What it opens, each a file by its number. Every one has readahead state of its own.
    pub opens: Vec<usize>,
    /// Those of them, by their numbers, whose reads go past the page cache.
    pub direct: Vec<usize>,
    /// What it maps.
    pub mappings: Vec<NamedMapping>,
    /// Pages that it holds beside the files, touched and locked before the first step.
    pub anonymous: PageCount,
    /// Decides when threads begin that begin within a time.
    pub seed: u64,
    /// What each thread does: at least one. The first process is the one that makes the mappings
    /// and forks the others.
    pub threads: Vec<ProgramThread>,
    /// How many threads have to come to each barrier before all go on.
    pub barriers: Vec<usize>,
    /// How many CPUs it may run on; all that it has if not given.
    pub cpus: Option<u64>,
    /// After each access, waits until nothing of its file is still being read. What the kernel
    /// does next depends on timing otherwise; the times of the steps mean nothing with it.
    pub settle: bool,
    /// Reports which pages of the first mapping have a page-table entry in the end.
    pub report_mapped: bool,
    /// Whether a governor reads ahead in its mappings.
    pub is_governed: bool,
}

/// The longest single read.
pub const MAX_READ_BYTES: u64 = 256 << 20;

impl ProbeProcess {
    /// A process of one thread that maps the first `pages` pages of the file at `path` and takes
    /// `steps`.
    pub fn single_threaded(
        path: PathBuf,
        pages: PageCount,
        steps: Vec<ProgramStep>,
    ) -> ProbeProcess {
        ProbeProcess {
            files: vec![path],
            opens: vec![0],
            mappings: vec![NamedMapping::of_first(pages)],
            threads: vec![ProgramThread::once(steps)],
            ..ProbeProcess::default()
        }
    }

    /// Refuses what no child does.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.calls() && cfg!(not(target_arch = "x86_64")) {
            return Err(Error::unavailable(
                "calls of machine code on this architecture",
                "run it on x86-64, or give --on model",
            ));
        }
        let longest = self.steps().map(longest_read).max().unwrap_or(0);
        if longest > MAX_READ_BYTES {
            let message = format!("a read of {longest} bytes: at most {MAX_READ_BYTES}");
            return Err(Error::InvalidProcess(message));
        }
        Ok(())
    }

    /// Whether any step calls code.
    pub(super) fn calls(&self) -> bool {
        self.steps().any(ProgramStep::calls)
    }

    /// Every step, whoever takes it.
    pub(super) fn steps(&self) -> impl Iterator<Item = &ProgramStep> {
        self.threads.iter().flat_map(|thread| &thread.steps)
    }

    /// How many processes there are: at least one, and those of threads.
    pub(super) fn processes(&self) -> usize {
        self.threads.iter().map(|thread| thread.process + 1).max().unwrap_or(1)
    }

    /// The threads of process `number`, by their numbers.
    pub(super) fn threads_of(&self, number: usize) -> impl Iterator<Item = usize> {
        let of_it = move |(_, thread): &(usize, &ProgramThread)| thread.process == number;
        self.threads.iter().enumerate().filter(of_it).map(|(thread, _)| thread)
    }

    /// Whether there is one thread, and no process beside its own.
    pub(crate) fn is_alone(&self) -> bool {
        self.threads.len() == 1 && self.processes() == 1
    }

    /// Whether reads of an open file, by its number, go past the page cache.
    pub(super) fn is_direct(&self, open: usize) -> bool {
        self.direct.contains(&open)
    }

    /// Whether an open file, by its number, is opened for writing as well: a shared mapping of it
    /// can be made writable only then.
    pub(super) fn opens_for_writing(&self, open: usize) -> bool {
        let protects = |number: usize, of: &NamedMapping| {
            let makes_writable = |step: &ProgramStep| match step {
                ProgramStep::Mprotect { mapping, protection, .. } => {
                    *mapping == number && *protection == Protection::Write
                }
                _ => false,
            };
            !of.is_private() && self.steps().any(makes_writable)
        };
        let mut of_open = self.mappings.iter().enumerate().filter(|(_, of)| of.open == open);
        of_open.any(|(number, of)| shares_writes(of) || protects(number, of))
    }
}

/// Whether a piece of a mapping is writable that shares its pages with the file.
fn shares_writes(of: &NamedMapping) -> bool {
    let writes = of.mapping.split.is_some_and(|split| split.prot == SplitProt::Write);
    writes && !of.is_private()
}

/// The most that one access of `step` reads with `read(2)`.
pub(super) fn longest_read(step: &ProgramStep) -> u64 {
    match step {
        ProgramStep::Read { accesses, len_bytes, .. } => accesses.bs_bytes.min(*len_bytes),
        _ => 0,
    }
}
