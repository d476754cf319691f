//! Drops files from the page cache.

use std::fs::File;
use std::num::NonZeroU64;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_kernel::page_size;
use filemap_kernel::residency::{self, CacheStat};
use rustix::fs::{Advice, fadvise, fdatasync};

/// Pages that are being read arrive in some milliseconds.
pub const BETWEEN_ROUNDS: Duration = Duration::from_millis(1);

/// A file is dropped again until so many rounds in turn have found no fewer pages.
const MOST_WITHOUT_LESS: u32 = 5;

/// A thread is held meanwhile.
const LONGEST: Duration = Duration::from_millis(100);

/// Drops a file from the page cache, as far as nobody has it mapped.
pub fn drop_cached(path: impl AsRef<Path>) {
    if let Ok(file) = File::open(path.as_ref()) {
        drop_pages(&file);
    }
}

/// Has pages that were just read, or could not be dropped, come to the lists from which they can be
/// taken. The kernel does so on all CPUs where a page is to be dropped that is mapped, as the first
/// of this program is.
pub fn settle_lists() {
    if let Ok(own) = File::open("/proc/self/exe") {
        let _ = fadvise(&own, 0, NonZeroU64::new(page_size()), Advice::DontNeed);
    }
}

/// Drops an open file from the page cache in the same way.
pub fn drop_pages(file: &File) {
    let drop = || fadvise(file, 0, None, Advice::DontNeed);
    let _ = drop();
    if CacheStat::of(file, ..).is_ok_and(|left| left.dirty + left.writeback > 0) {
        let _ = fdatasync(file).and_then(|()| drop());
    }
}

/// Drops a file from the page cache while its pages may still arrive from the disk, and says
/// whether some may arrive later.
pub fn drop_arriving(file: &File) -> bool {
    let (begin, mut least, mut rounds_without_less) = (Instant::now(), u64::MAX, 0);
    while rounds_without_less < MOST_WITHOUT_LESS && begin.elapsed() < LONGEST {
        let _ = fadvise(file, 0, None, Advice::DontNeed);
        settle_lists();
        // It is not told to whom the file does not belong, and who may not write to it.
        let left = CacheStat::of(file, ..).map_or(u64::MAX, |stat| stat.cached);
        if left == 0 {
            return false;
        }
        rounds_without_less = if left < least { 0 } else { rounds_without_less + 1 };
        least = least.min(left);
        sleep(BETWEEN_ROUNDS);
    }
    arriving(file).is_some_and(|arriving| arriving > 0)
}

/// Pages of a file that are being read. `None` where that is not told.
fn arriving(file: &File) -> Option<u64> {
    let cached = CacheStat::of(file, ..).ok()?.cached;
    let pages = file.metadata().ok()?.len().div_ceil(page_size());
    let arrived = residency::resident_pages(file, pages).ok()?.len();
    Some(cached.saturating_sub(arrived))
}
