//! Empties the page cache of one file.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use filemap_core::units::PageIndex;
use rustix::fs::{Advice, fadvise, fdatasync, fsync};

use crate::residency::{CacheStat, resident_pages};
use crate::{Error, page_size, shutdown};

/// Number of attempts: pages may still be in per-CPU batches, from which they cannot be dropped.
const ATTEMPTS: u32 = 10;

/// A file may be dropped without `--cold` if at most this many of its pages are cached, or one page
/// in `HOT_ONE_IN`: reading its header leaves as many.
const HOT_PAGES: u64 = 64;
const HOT_ONE_IN: u64 = 100;

/// Writes the file back and drops its pages, until none is cached.
///
/// # Errors
/// [`Error::StillCached`] names what remains: pages that others map, lock or write.
pub fn drop_file(path: &Path) -> Result<(), Error> {
    let file = File::open(path).map_err(|error| Error::os("open", path, error))?;
    drop_open_file(&file, path)
}

/// [`drop_file`] for an open file.
pub fn drop_open_file(file: &File, path: &Path) -> Result<(), Error> {
    let mut left = CacheStat::default();
    for attempt in 0..ATTEMPTS {
        shutdown::check()?;
        sleep(Duration::from_millis(u64::from(attempt) * 5));
        fsync(file).map_err(|errno| Error::os("write back", path, errno))?;
        fadvise(file, 0, None, Advice::DontNeed)
            .map_err(|errno| Error::os("drop the pages of", path, errno))?;
        left = still_cached(file, path)?;
        if left.cached == 0 {
            return Ok(());
        }
    }
    Err(Error::StillCached {
        path: path.to_owned(),
        pages: left.cached,
        dirty: left.dirty,
        writeback: left.writeback,
    })
}

/// Drops the unmapped pages of an open file from the page cache.
pub fn drop_pages(file: &File) {
    let drop = || fadvise(file, 0, None, Advice::DontNeed);
    let _ = drop();
    if CacheStat::query(file, ..).is_ok_and(|left| left.dirty + left.writeback > 0) {
        let _ = fdatasync(file).and_then(|()| drop());
    }
}

/// Bytes of one read of [`read_pages`].
const READ_BYTES: u64 = 128 << 10;

/// Reads the pages `ranges` of `file` into the page cache, and no others: `file` is advised
/// POSIX_FADV_RANDOM. The pages are charged to the memory cgroup of this process.
///
/// # Errors
/// The file cannot be read.
pub fn read_pages(file: &File, ranges: &[Range<PageIndex>]) -> std::io::Result<()> {
    fadvise(file, 0, None, Advice::Random)?;
    let mut buffer = vec![0; READ_BYTES as usize];
    for range in ranges {
        let (mut at, end) = (range.start.0 * page_size(), range.end.0 * page_size());
        while at < end {
            let bytes = READ_BYTES.min(end - at) as usize;
            match file.read_at(&mut buffer[..bytes], at)? {
                0 => break,
                read => at += read as u64,
            }
        }
    }
    Ok(())
}

/// Drops what can be dropped of the file at `path`, if it still exists.
pub(crate) fn try_to_drop(path: &Path) {
    if let Ok(file) = File::open(path) {
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
    }
}

/// Refuses a file with more cached pages than `HOT_ONE_IN` and `HOT_PAGES` allow, since running
/// programs may need them.
///
/// # Errors
/// [`Error::InPageCache`]; neither `cachestat` nor `mincore` is permitted.
pub(crate) fn require_cold(file: &File, path: &Path) -> Result<(), Error> {
    let bytes = file.metadata().map_err(|error| Error::os("read the size of", path, error))?.len();
    let pages = bytes.div_ceil(page_size());
    let cached = still_cached(file, path)?.cached;
    if cached <= HOT_PAGES || cached <= pages / HOT_ONE_IN {
        return Ok(());
    }
    Err(Error::InPageCache { path: path.to_owned(), cached, pages })
}

/// Counts by `cachestat`, or by `mincore` if `cachestat` is missing (before 6.5) or not permitted.
fn still_cached(file: &File, path: &Path) -> Result<CacheStat, Error> {
    match CacheStat::query(file, ..) {
        Ok(stat) => Ok(stat),
        Err(_) => {
            let bytes =
                file.metadata().map_err(|error| Error::os("read the size of", path, error))?.len();
            let pages = bytes.div_ceil(page_size());
            Ok(CacheStat { cached: resident_pages(file, pages)?.len(), ..CacheStat::default() })
        }
    }
}
