//! Drops files from the page cache.

use std::fs::File;
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::settle_lists;
use filemap_kernel::page_size;
use filemap_kernel::residency::{self, CacheStat};
use rustix::fs::{Advice, fadvise};

/// Pages that are being read arrive in some milliseconds.
pub const BETWEEN_ROUNDS: Duration = Duration::from_millis(1);

/// A file is dropped again until so many rounds in turn have found no fewer pages.
const MOST_WITHOUT_LESS: u32 = 5;

/// A thread is held meanwhile.
const LONGEST: Duration = Duration::from_millis(100);

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
