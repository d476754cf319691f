//! A child whose threads map, read and unmap a file each, again and again, until it is ended.

mod counts;
mod threads;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use filemap_core::units::PageCount;

pub use counts::Progress;

use super::piped::Piped;
use super::wire::{Reply, get, get_all, get_path, put, put_all, put_path};
use crate::child::Ended;
use crate::{Error, page_size};
use counts::Counts;

pub(super) use threads::main;

/// The hidden first argument of such a child.
pub(super) const ARGUMENT: &str = "__filemap-thrash";

/// What each writer maps: pages that hold nothing yet, which are all the same page of zeros.
const WRITER_BYTES: u64 = 64 << 20;

/// Stands for all CPUs where a number of them is sent.
const ALL_CPUS: u64 = u64::MAX;

/// What the threads of a thrash do. All of them are threads of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thrash {
    /// One reader for each: it maps the file's beginning shared, reads a byte of every page from
    /// the first to the last, takes the mapping away, and begins again. The file stays open.
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
        child.send(&thrash.encode(&path));
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

    fn encode(&self, counts: &Path) -> Vec<u8> {
        let mut out = Vec::new();
        put_path(&mut out, counts);
        put_all(&mut out, &self.files, |out, path| put_path(out, path));
        let stagger = self.stagger.as_nanos() as u64;
        let cpus = self.cpus.unwrap_or(ALL_CPUS);
        let words = [self.pages.0, self.writers, self.noise, cpus, stagger];
        words.iter().for_each(|&word| put(&mut out, word));
        out
    }

    /// What was encoded: where the counts are, and the rest.
    fn decode(input: &mut impl Read) -> io::Result<(PathBuf, Thrash)> {
        let counts = get_path(input)?;
        let thrash = Thrash {
            files: get_all(input, get_path)?,
            pages: PageCount(get(input)?),
            writers: get(input)?,
            noise: get(input)?,
            cpus: Some(get(input)?).filter(|&cpus| cpus != ALL_CPUS),
            stagger: Duration::from_nanos(get(input)?),
        };
        Ok((counts, thrash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thrash_arrives_as_it_was_sent() {
        let thrash = Thrash {
            files: vec!["/tmp/a b".into(), "c".into()],
            pages: PageCount(4096),
            writers: 2,
            noise: 3,
            cpus: Some(4),
            stagger: Duration::from_millis(5),
        };
        let bytes = thrash.encode(Path::new("/counts"));
        let (counts, same) = Thrash::decode(&mut bytes.as_slice()).unwrap();
        assert_eq!((counts, same), ("/counts".into(), thrash));
        assert!((0..bytes.len()).all(|end| Thrash::decode(&mut &bytes[..end]).is_err()));
    }
}
