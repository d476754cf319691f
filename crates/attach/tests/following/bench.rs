//! Test files.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub const PAGE: u64 = 4096;

/// A temporary directory on a filesystem with backing storage, unlike tmpfs; removed on drop.
pub struct Bench {
    directory: TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { directory: TempDir::new_in("/var/tmp").expect("a directory") }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Creates a file of `pages` pages, none of which is in the page cache.
    pub fn cold_file(&self, name: &str, pages: u64) -> PathBuf {
        let path = self.file(name, pages);
        let file = File::open(&path).expect("the file");
        // SAFETY: the call takes integers only.
        let done =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        assert_eq!(done, 0);
        path
    }

    pub fn file(&self, name: &str, pages: u64) -> PathBuf {
        let path = self.directory.path().join(name);
        let mut file = File::create(&path).expect("a file");
        file.write_all(&vec![7; (pages * PAGE) as usize]).expect("room");
        file.sync_all().expect("storage");
        fs::canonicalize(path).expect("a path")
    }
}
