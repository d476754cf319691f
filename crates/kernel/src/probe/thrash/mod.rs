//! A child whose threads map, read and unmap a file each, again and again, until it is ended.

mod counts;
pub(super) mod threads;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use filemap_core::units::PageCount;

pub use counts::Progress;

use serde::{Deserialize, Serialize};

use super::piped::Piped;
use super::wire::{Reply, frame};
use crate::child::Ended;
use crate::{Error, page_size};
use counts::Counts;

/// The hidden first argument of such a child.
pub(super) const ARGUMENT: &str = "__filemap-thrash";

/// What each writer maps: pages that hold nothing yet, which are all the same page of zeros.
const WRITER_BYTES: u64 = 64 << 20;

/// What the threads of a thrash do. All of them are threads of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrash {
    /// One reader for each: it maps the file's beginning shared, reads a byte of every page from
    /// the first to the last, takes the mapping away, and begins again. The file stays open.
    #[serde(with = "super::wire::paths")]
    pub files: Vec<PathBuf>,
    /// Pages of each file that are mapped, 1 or more.
    pub pages: PageCount,
    /// Threads that each change the protection of an anonymous mapping of 64 MiB to read-only and
    /// back, and sleep for a millisecond after each change.
    pub writers: u64,
    /// Threads that only keep a CPU busy.
    pub noise: u64,
    /// On how many of its CPUs the process runs; `None` is on all of them.
    pub cpus: Option<u64>,
    /// From the start of the first reader to that of the last; they start at even distances.
    pub stagger: Duration,
}

/// A running thrash. It is killed when this drops.
#[derive(Debug)]
pub struct Thrashing {
    child: Piped,
    counts: File,
}

impl Thrashing {
    /// Starts a child, and waits until it has opened the files and started its threads, which wait.
    /// Limit its memory and empty the cache now.
    ///
    /// # Errors
    /// No files or no pages; a file that is shorter; more threads than the machine allows.
    pub fn start(thrash: &Thrash) -> Result<Self, Error> {
        thrash.check()?;
        let (counts, path) = Counts::shared(thrash.files.len())?;
        let mut child = Piped::spawn(ARGUMENT)?;
        child.send(&frame(&Sent { counts: path.into(), thrash: thrash.clone() }));
        match child.receive()? {
            Reply::Ready { .. } => Ok(Thrashing { child, counts }),
            _ => Err(child.confused()),
        }
    }

    /// Process id of the child.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Lets the threads begin.
    pub fn begin(&mut self) {
        self.child.send(&[1]);
    }

    /// Lets it run for `time`, and up to a tenth of a second longer.
    ///
    /// # Errors
    /// When it ends before that: [`Error::ChildKilled`] if it ran out of memory. What it did until
    /// then is still known.
    pub fn run_for(&mut self, time: Duration) -> Result<(), Error> {
        let ended = self.child.child.wait(time, || None::<()>);
        match ended.map_err(|error| Error::call("watch the probe's child", error))? {
            Ended::Late | Ended::Because(()) => Ok(()),
            Ended::Itself(_) => {
                self.child.receive()?;
                Err(self.child.confused())
            }
        }
    }

    /// What the threads have done up to now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn progress(&self) -> Result<Progress, Error> {
        Progress::read(&self.counts)
    }
}

impl Thrash {
    /// Refuses what would do nothing, and files that are shorter than what is to be mapped.
    fn check(&self) -> Result<(), Error> {
        if self.files.is_empty() {
            return Err(Error::Plan("0 threads do nothing: use 1 or more".to_string()));
        }
        if self.pages.0 == 0 {
            return Err(Error::Plan("a mapping of 0 pages: map 1 or more".to_string()));
        }
        for path in &self.files {
            let metadata = fs::metadata(path).map_err(|error| Error::os("open", path, error))?;
            let pages = metadata.len().div_ceil(page_size());
            if pages < self.pages.0 {
                return Err(Error::Plan(format!(
                    "'{}' has {pages} pages, and {} are to be mapped: map less",
                    path.display(),
                    self.pages
                )));
            }
        }
        Ok(())
    }
}

/// What is sent to the child: where its counts are, and what it does.
#[derive(Debug, Serialize, Deserialize)]
struct Sent {
    counts: OsString,
    thrash: Thrash,
}
