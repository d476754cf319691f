//! Description of a probe's child: files, mappings and threads.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use filemap_core::address::mapping::SplitProt;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::{NamedMapping, ProgramStep, Protection, Thread};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::residency::CacheStat;

/// A child process: its files, open file descriptions, mappings and threads. If threads belong to
/// other processes, it forks those after it has opened and mapped everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeProcess {
    /// Paths of the files, at least one.
    #[serde(with = "super::wire::paths")]
    pub files: Vec<PathBuf>,
    /// Of each file, the pages that are cached at the beginning.
    pub cached: Vec<Vec<Range<PageIndex>>>,
    /// Open file descriptions, each an index into `files`. Each has its own readahead state.
    pub opens: Vec<usize>,
    /// Indices of the opens with O_DIRECT.
    pub direct: Vec<usize>,
    /// Its mappings.
    pub mappings: Vec<NamedMapping>,
    /// Number of anonymous pages touched and locked before the first step.
    pub anonymous: PageCount,
    /// Maximum number of anonymous pages that a process holds.
    pub max_anonymous: PageCount,
    /// Seed for the start times of threads that begin within an interval.
    pub seed: u64,
    /// The threads, at least one. The first process creates the mappings and forks the others.
    pub threads: Vec<Thread>,
    /// Number of threads of each barrier.
    pub barriers: Vec<usize>,
    /// Number of CPUs that it may run on; all by default.
    pub cpus: Option<u64>,
    /// Whether each access waits until no page of its file is being read. Otherwise decisions
    /// depend on timing; if so, times are meaningless.
    pub settle: bool,
    /// Whether to report which pages of the first mapping have a page-table entry at the end.
    pub report_mapped: bool,
    /// Whether a governor reads ahead in its mappings.
    pub is_governed: bool,
}

/// Maximum size of one read.
pub const MAX_READ_BYTES: u64 = 256 << 20;

impl ProbeProcess {
    /// A single-threaded process that maps the first `pages` pages of the file at `path` and runs
    /// `steps`.
    pub fn single_threaded(
        path: PathBuf,
        pages: PageCount,
        steps: Vec<ProgramStep>,
    ) -> ProbeProcess {
        ProbeProcess {
            files: vec![path],
            opens: vec![0],
            mappings: vec![NamedMapping::from_first_pages(pages)],
            threads: vec![Thread::from_steps(steps)],
            ..ProbeProcess::default()
        }
    }

    /// Whether anything of its files is cached at the beginning.
    pub(crate) fn starts_warm(&self) -> bool {
        self.cached.iter().any(|ranges| !ranges.is_empty())
    }

    /// Refuses processes that no child can run.
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

    /// The steps of all threads.
    pub(super) fn steps(&self) -> impl Iterator<Item = &ProgramStep> {
        self.threads.iter().flat_map(|thread| &thread.steps)
    }

    /// Number of processes, at least one.
    pub(super) fn processes(&self) -> usize {
        self.threads.iter().map(|thread| thread.process + 1).max().unwrap_or(1)
    }

    /// Indexes of the threads of process `number`.
    pub(super) fn threads_of(&self, number: usize) -> impl Iterator<Item = usize> {
        let of_it = move |(_, thread): &(usize, &Thread)| thread.process == number;
        self.threads.iter().enumerate().filter(of_it).map(|(thread, _)| thread)
    }

    /// Whether it has a single thread and process.
    pub(crate) fn is_alone(&self) -> bool {
        self.threads.len() == 1 && self.processes() == 1
    }

    /// Whether reads of the open file `open` bypass the page cache.
    pub(super) fn is_direct(&self, open: usize) -> bool {
        self.direct.contains(&open)
    }

    /// Whether the open file `open` is opened for writing as well: only then can a shared mapping
    /// of it be made writable.
    pub(super) fn opens_for_writing(&self, open: usize) -> bool {
        let protects = |number: usize, mapping_spec: &NamedMapping| {
            let makes_writable = |step: &ProgramStep| match step {
                ProgramStep::Mprotect { mapping, protection, .. } => {
                    *mapping == number && *protection == Protection::Write
                }
                _ => false,
            };
            !mapping_spec.is_private() && self.steps().any(makes_writable)
        };
        let mut mappings_of_open =
            self.mappings.iter().enumerate().filter(|(_, mapping_spec)| mapping_spec.open == open);
        mappings_of_open.any(|(number, mapping_spec)| {
            shares_writes(mapping_spec) || protects(number, mapping_spec)
        })
    }
}

/// Whether a piece of a mapping is writable and shares its pages with the file.
fn shares_writes(mapping_spec: &NamedMapping) -> bool {
    let writes = mapping_spec.mapping.split.is_some_and(|split| split.prot == SplitProt::Write);
    writes && !mapping_spec.is_private()
}

/// Maximum bytes that one access of `step` reads by `read(2)`.
pub(super) fn longest_read(step: &ProgramStep) -> u64 {
    match step {
        ProgramStep::Read { accesses, len_bytes, .. } => accesses.bs_bytes.min(*len_bytes),
        _ => 0,
    }
}

/// File descriptors in addition to those for files.
const OTHER_DESCRIPTORS: u64 = 64;

/// The open file descriptions of a process.
pub(super) struct OpenFiles<'a> {
    process: &'a ProbeProcess,
    opens: Vec<File>,
}

impl<'a> OpenFiles<'a> {
    /// Opens the files of `process`.
    pub(super) fn open(process: &'a ProbeProcess) -> Result<Self, Error> {
        raise_limit(process.opens.len() as u64 + OTHER_DESCRIPTORS)?;
        let opens = process.opens.iter().enumerate();
        let opens = opens.map(|(open, &file)| {
            let (writes, direct) = (process.opens_for_writing(open), process.is_direct(open));
            open_one(&process.files[file], writes, direct)
        });
        Ok(OpenFiles { process, opens: opens.collect::<Result<_, _>>()? })
    }

    /// An open file by its number.
    pub(super) fn get(&self, open: usize) -> &File {
        &self.opens[open]
    }

    /// The path of an open file.
    pub(super) fn path(&self, open: usize) -> &PathBuf {
        &self.process.files[self.process.opens[open]]
    }

    /// The sum of `cachestat` over all files, if permitted.
    pub(super) fn cached(&self) -> Option<CacheStat> {
        let mut sum = CacheStat::default();
        for file in 0..self.process.files.len() {
            let Some(open) = self.process.opens.iter().position(|&opened| opened == file) else {
                continue;
            };
            let stat = CacheStat::query(&self.opens[open], ..).ok()?;
            sum.cached += stat.cached;
            sum.evicted += stat.evicted;
        }
        Some(sum)
    }
}

/// Raises the soft limit of open files to the hard limit if it is below `files`.
///
/// # Errors
/// The hard limit is below `files`, or the system refuses.
pub(crate) fn raise_limit(files: u64) -> Result<(), Error> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(u64::MAX);
    if most < files {
        return Err(Error::unavailable(
            format!("a process with {files} files open"),
            format!("raise the limit of {most} (ulimit -Hn), or give --on model"),
        ));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum })
        .map_err(|errno| Error::call("raise the number of open files", errno))
}

fn open_one(path: &Path, writes: bool, direct: bool) -> Result<File, Error> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    let file = OpenOptions::new().read(true).write(writes).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) if direct => Error::unavailable(
            format!("reading '{}' past the page cache", path.display()),
            "put it on a filesystem that has O_DIRECT, or leave out direct = true",
        ),
        _ => Error::os("open", path, error),
    })?;
    let metadata = file.metadata().map_err(|error| Error::os("read the size of", path, error))?;
    if !metadata.is_file() {
        return Err(Error::InvalidProcess(format!(
            "'{}' is not a regular file: name one",
            path.display()
        )));
    }
    Ok(file)
}
