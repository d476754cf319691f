//! Which pages of a file are in the page cache.

use std::fs::File;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use filemap_core::units::PageIndex;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use serde::{Deserialize, Serialize};

use crate::{Error, page_size};

/// What `cachestat` reports for a range of a file, in base pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CacheStat {
    /// Pages in the cache, including those still being read.
    pub cached: u64,
    /// Of these, dirty.
    pub dirty: u64,
    /// Of these, being written back.
    pub writeback: u64,
    /// Evicted by reclaim. Dropping a file's pages does not count, so after a cold start this has
    /// only later evictions.
    pub evicted: u64,
    /// Of these, evicted so recently that a return would count as a refault within the working set.
    pub recently_evicted: u64,
}

/// `struct cachestat_range` of `linux/mman.h`; length 0 extends to the end of the file.
#[repr(C)]
struct ByteRange {
    start: u64,
    length: u64,
}

/// Number of the system call, the same on every architecture.
const CACHESTAT: libc::c_long = 451;

impl CacheStat {
    /// Queries `pages` of `file`.
    ///
    /// # Errors
    /// Before Linux 6.5, on hugetlbfs, or if the file neither belongs to this user nor is writable.
    pub fn query(file: &File, pages: impl RangeBounds<u64>) -> Result<Self, Error> {
        let start = match pages.start_bound() {
            Bound::Included(&page) => page,
            Bound::Excluded(&page) => page + 1,
            Bound::Unbounded => 0,
        };
        let length = match pages.end_bound() {
            Bound::Included(&page) => Some((page + 1).saturating_sub(start)),
            Bound::Excluded(&page) => Some(page.saturating_sub(start)),
            Bound::Unbounded => None,
        };
        if length == Some(0) {
            return Ok(CacheStat::default());
        }
        let range = ByteRange {
            start: start * page_size(),
            length: length.unwrap_or(0).saturating_mul(page_size()),
        };
        let mut stat = CacheStat::default();
        // SAFETY: the kernel reads `range` and fills `stat`; both are live and have the expected
        // layout.
        let result = unsafe {
            libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0)
        };
        if result == 0 { Ok(stat) } else { Err(last_error("count cached pages (cachestat)")) }
    }
}

/// A set of pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSet {
    words: Vec<u64>,
}

impl PageSet {
    /// The pages for which `present` holds, in order from page 0.
    pub fn collect(present: impl Iterator<Item = bool>) -> Self {
        let mut words = Vec::new();
        for (index, present) in present.enumerate() {
            if index % 64 == 0 {
                words.push(0);
            }
            if present {
                words[index / 64] |= 1 << (index % 64);
            }
        }
        PageSet { words }
    }

    /// Number of pages.
    pub fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it contains `page`.
    pub fn contains(&self, page: PageIndex) -> bool {
        let word = usize::try_from(page.0 / 64).ok().and_then(|index| self.words.get(index));
        word.is_some_and(|word| word >> (page.0 % 64) & 1 == 1)
    }

    /// The pages, in order.
    pub fn iter(&self) -> impl Iterator<Item = PageIndex> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let first = index as u64 * 64;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| PageIndex(first + bit))
        })
    }

    /// Size of the intersection divided by size of the union (Jaccard); 1 for two empty sets.
    pub fn overlap(&self, other: &PageSet) -> f64 {
        let longest = self.words.len().max(other.words.len());
        let word = |set: &PageSet, index: usize| set.words.get(index).copied().unwrap_or(0);
        let (both, either) = (0..longest).fold((0u64, 0u64), |(both, either), index| {
            let (a, b) = (word(self, index), word(other, index));
            (both + u64::from((a & b).count_ones()), either + u64::from((a | b).count_ones()))
        });
        if either == 0 { 1.0 } else { both as f64 / either as f64 }
    }
}

/// Number of pages of `file` in the cache: by `cachestat`, including those still being read, or
/// before Linux 6.5 by `mincore`.
///
/// # Errors
/// Neither is permitted.
pub fn cached_pages(file: &File) -> Result<u64, Error> {
    match CacheStat::query(file, ..) {
        Ok(stat) => Ok(stat.cached),
        Err(_) => {
            let size = file.metadata().map_err(|error| Error::call("read a file's size", error))?;
            Ok(resident_pages(file, size.len().div_ceil(page_size()))?.len())
        }
    }
}

/// The first `pages` pages of `file` that are in the cache and up to date, by `mincore`.
pub fn resident_pages(file: &File, pages: u64) -> Result<PageSet, Error> {
    if pages == 0 {
        return Ok(PageSet::default());
    }
    let view = MincoreView::map(file, pages)?;
    let mut present = vec![0u8; pages as usize];
    view.query(0, &mut present)?;
    Ok(PageSet::collect(present.into_iter().map(|byte| byte & 1 == 1)))
}

/// Maximum size of a file in pages whose cached ranges are looked up one by one.
const MAX_RANGED_PAGES: u64 = 1 << 22;

/// Maximum ranges of [`cached_ranges`].
const MAX_RANGES: usize = 4096;

/// The cached pages of `file`, as pairs of a first page and a number of pages; `None` if this user
/// may not see them, or if they are too many to list.
pub fn cached_ranges(file: &File) -> Option<Vec<[u64; 2]>> {
    let pages = file.metadata().ok()?.len().div_ceil(page_size());
    match CacheStat::query(file, ..).ok()?.cached {
        0 => return Some(Vec::new()),
        cached if cached >= pages => return Some(vec![[0, pages]]),
        _ if pages > MAX_RANGED_PAGES => return None,
        _ => {}
    }
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for PageIndex(page) in resident_pages(file, pages).ok()?.iter() {
        match ranges.last_mut() {
            Some([first, count]) if *first + *count == page => *count += 1,
            _ => ranges.push([page, 1]),
        }
    }
    (ranges.len() <= MAX_RANGES).then_some(ranges)
}

/// A mapping of a file that is never accessed, only queried by mincore(2).
pub(crate) struct MincoreView {
    address: usize,
    bytes: usize,
}

impl MincoreView {
    /// Maps the first `pages` pages.
    pub(crate) fn map(file: &File, pages: u64) -> Result<Self, Error> {
        let bytes = (pages * page_size()) as usize;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let address = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::SHARED, file, 0)
        }
        .map_err(|errno| Error::call("map a file to see what is cached", errno))?;
        Ok(MincoreView { address: address as usize, bytes })
    }

    /// Fills `present` (bit 0 of each byte) for the pages from `first` on.
    ///
    /// # Panics
    /// The pages are not inside the view.
    pub(crate) fn query(&self, first: u64, present: &mut [u8]) -> Result<(), Error> {
        let start = (first * page_size()) as usize;
        let bytes = present.len() * page_size() as usize;
        assert!(start + bytes <= self.bytes, "asked about pages outside the view");
        let address = (self.address + start) as *mut libc::c_void;
        // SAFETY: the range is mapped by `self`, and `present` has one byte for each of its pages.
        match unsafe { libc::mincore(address, bytes, present.as_mut_ptr()) } {
            0 => Ok(()),
            _ => Err(last_error("see what is cached (mincore)")),
        }
    }
}

impl Drop for MincoreView {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map` mapped, with no references to it.
        let _ = unsafe { munmap(self.address as *mut _, self.bytes) };
    }
}

/// Which of this process's `pages` pages from `address` on have a page-table entry.
pub(crate) fn mapped_pages(address: usize, pages: u64) -> Result<PageSet, Error> {
    let path = std::path::Path::new("/proc/self/pagemap");
    let pagemap = File::open(path).map_err(|error| Error::os("open", path, error))?;
    let mut bytes = vec![0u8; pages as usize * 8];
    pagemap
        .read_exact_at(&mut bytes, address as u64 / page_size() * 8)
        .map_err(|error| Error::os("read", path, error))?;
    let present =
        bytes.as_chunks::<8>().0.iter().map(|entry| u64::from_ne_bytes(*entry) >> 63 == 1);
    Ok(PageSet::collect(present))
}

fn last_error(action: &'static str) -> Error {
    Error::call(action, io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pages: &[u64]) -> PageSet {
        let last = pages.iter().max().map_or(0, |last| last + 1);
        PageSet::collect((0..last).map(|page| pages.contains(&page)))
    }

    #[test]
    fn page_set_holds_collected_pages() {
        let pages = [0, 1, 63, 64, 127, 200];
        assert_eq!(set(&pages).len(), 6);
        assert_eq!(set(&pages).iter().map(|page| page.0).collect::<Vec<_>>(), pages);
        assert!(set(&pages).contains(PageIndex(64)) && !set(&pages).contains(PageIndex(65)));
        assert!(!set(&pages).contains(PageIndex(u64::MAX)));
        assert!(set(&[]).is_empty());
    }

    #[test]
    fn overlap_counts_both_over_either() {
        assert_eq!(set(&[1, 2, 3]).overlap(&set(&[2, 3, 300])), 0.5);
        assert_eq!(set(&[]).overlap(&set(&[])), 1.0);
        assert_eq!(set(&[1]).overlap(&set(&[])), 0.0);
    }
}
