//! What the threads of a thrash count, in memory that their parent reads while they run.

use std::fs::{File, OpenOptions};
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::Error;

/// What one reader has done. The size of a cache line, so that no two share one.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Count {
    /// How often it has mapped, read and unmapped its file.
    rounds: AtomicU64,
    /// How many pages it has read.
    pages: AtomicU64,
}

const COUNT_BYTES: usize = size_of::<Count>();

impl Count {
    /// Another page. Only the thread whose count this is calls it.
    #[inline]
    pub(super) fn page(&self) {
        self.pages.store(self.pages.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Another round.
    pub(super) fn round(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }

    /// Another change of a protection: a round of a thread that reads nothing.
    pub(super) fn change(&self) {
        self.round();
    }
}

/// The counts of all readers, and behind them those of all writers together.
#[derive(Debug)]
pub(super) struct Counts {
    base: NonNull<Count>,
    len: usize,
}

// SAFETY: what it points to stays mapped, and is atomic.
unsafe impl Sync for Counts {}

impl Counts {
    /// A new file in memory for the counts of `readers` threads, and the name by which a child
    /// opens it. It is charged to the process that calls this, not to the child.
    pub(super) fn shared(readers: usize) -> Result<(File, PathBuf), Error> {
        let failed = |error| Error::call("make a file in memory", error);
        let file = memfd_create("filemap-thrash", MemfdFlags::CLOEXEC);
        let file = File::from(file.map_err(|errno| failed(errno.into()))?);
        file.write_all_at(&vec![0; (readers + 1) * COUNT_BYTES], 0).map_err(failed)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok((file, path.into()))
    }

    /// Maps the file that the parent made for `readers` threads.
    pub(super) fn map(path: &Path, readers: usize) -> Result<Counts, Error> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| Error::os("open", path, error))?;
        let (len, protection) = (readers + 1, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing here.
        let base =
            unsafe { mmap(null_mut(), len * COUNT_BYTES, protection, MapFlags::SHARED, &file, 0) };
        let base = base.map_err(|errno| Error::os("map", path, errno))?;
        let base = NonNull::new(base.cast()).expect("no mapping begins at 0");
        Ok(Counts { base, len })
    }
}

impl Deref for Counts {
    type Target = [Count];

    fn deref(&self) -> &[Count] {
        // SAFETY: so many counts were mapped, at the beginning of a page, and stay mapped until the
        // process ends. All bytes are a value, and who writes does so atomically.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

/// What a thrash has done up to a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rounds of each reader.
    pub rounds: Vec<u64>,
    /// Pages that all readers have read.
    pub pages: u64,
    /// Changes of protection that all writers have made.
    pub changes: u64,
}

impl Progress {
    /// Reads it from the file that the threads count in.
    pub(super) fn read(counts: &File) -> Result<Progress, Error> {
        let mut bytes = Vec::new();
        let read = counts.metadata().and_then(|metadata| {
            bytes.resize(metadata.len() as usize, 0);
            counts.read_exact_at(&mut bytes, 0)
        });
        read.map_err(|error| Error::call("read the probe's counts", error))?;
        let word = |at: usize| {
            let word = bytes[at..at + 8].try_into().expect("8 bytes are a word");
            u64::from_ne_bytes(word)
        };
        let (last, pages) = (bytes.len() - COUNT_BYTES, size_of::<AtomicU64>());
        let readers = (0..last).step_by(COUNT_BYTES);
        Ok(Progress {
            rounds: readers.clone().map(word).collect(),
            pages: readers.map(|at| word(at + pages)).sum(),
            changes: word(last),
        })
    }

    /// Rounds of all readers together.
    pub fn all_rounds(&self) -> u64 {
        self.rounds.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_in_one_mapping_is_read_from_the_file() {
        let (file, path) = Counts::shared(2).unwrap();
        assert_eq!(Progress::read(&file).unwrap().rounds, [0, 0]);
        let counts = Counts::map(&path, 2).unwrap();
        counts[0].page();
        counts[1].page();
        counts[1].round();
        counts[2].change();
        let progress = Progress { rounds: vec![0, 1], pages: 2, changes: 1 };
        assert_eq!(Progress::read(&file).unwrap(), progress);
        assert_eq!(progress.all_rounds(), 1);
    }
}
