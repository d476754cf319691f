//! What is mapped where: single pages by their entries, and ranges by the PAGEMAP_SCAN request of
//! Linux 6.7.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use filemap_control::request::scan::{PAGEMAP_SCAN, Region, Scan};
use rustix::fs::{Mode, OFlags};

/// Runs of pages that one request returns: they are on the stack, which may be small.
const REGIONS: usize = 16;

/// Bits of an entry of the page tables: it is mapped, and it is a file's or shared.
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;

/// The page tables of this process; `None` where they cannot be read.
pub fn open() -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(c"/proc/self/pagemap", flags, Mode::empty()).ok()
}

/// Whether the page at `address` is a copy of the process's own, as one is that was written to in a
/// private mapping. It is not where the page tables cannot be read.
pub fn is_copy(address: usize, page_size: usize) -> bool {
    let mut entry = [0; size_of::<u64>()];
    let at = address / page_size * size_of::<u64>();
    let read = open().and_then(|tables| rustix::io::pread(tables, &mut entry, at as u64).ok());
    let entry = u64::from_ne_bytes(entry);
    read == Some(size_of::<u64>()) && entry & PRESENT != 0 && entry & OF_FILE == 0
}

/// Tells `each` the runs of pages of `range` that are mapped, in order. `None` where the kernel has
/// no such request, or `tables` are none.
pub fn scan(
    tables: BorrowedFd<'_>,
    range: &Range<usize>,
    mut each: impl FnMut(Region),
) -> Option<()> {
    let mut start = range.start as u64;
    let end = range.end as u64;
    let mut regions = [Region::default(); REGIONS];
    while start < end {
        let place = regions.as_mut_ptr().expose_provenance() as u64;
        let mut scan = Scan::mapped(start, end, place, REGIONS as u64);
        // SAFETY: the kernel writes at most that many regions, and where it has come to.
        let found = unsafe { libc::ioctl(tables.as_raw_fd(), PAGEMAP_SCAN, &mut scan) };
        let found = usize::try_from(found).ok()?;
        regions.iter().take(found).for_each(|region| each(*region));
        if scan.walk_end <= start {
            return None;
        }
        start = scan.walk_end;
    }
    Some(())
}

/// How many pages of `range` are mapped.
pub fn mapped_pages(range: &Range<usize>, page_size: usize) -> Option<u64> {
    let mut bytes = 0;
    scan(open()?.as_fd(), range, |region| bytes += region.end - region.start)?;
    Some(bytes / page_size as u64)
}
