//! Finds present pages in the page tables of a process by the PAGEMAP_SCAN ioctl of Linux 6.7.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use roaring::RoaringBitmap;

use crate::{Error, MappedRange};

/// A run of present pages: `struct page_region` of `linux/fs.h`, addresses in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PresentRegion {
    pub start: u64,
    pub end: u64,
    categories: u64,
}

/// `struct pm_scan_arg` of `linux/fs.h`.
#[repr(C)]
#[derive(Debug, Default)]
struct ScanRequest {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_length: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

const PAGEMAP_SCAN: u64 = 0xc060_6610;

/// Category of pages with a present page table entry.
const PAGE_IS_PRESENT: u64 = 1 << 3;

/// Maximum number of regions that one ioctl returns.
const MAX_REGIONS: usize = 512;

#[derive(Debug)]
pub struct PageTable(File);

impl PageTable {
    /// Opens `/proc/PID/pagemap`; `None` if access is denied or the process is gone.
    pub fn open(pid: u32) -> Option<PageTable> {
        File::open(format!("/proc/{pid}/pagemap")).ok().map(PageTable)
    }

    /// Calls `each` for every run of present pages in `start..end`, in order of addresses. Finds
    /// none if the process is gone.
    pub fn scan(&self, mut start: u64, end: u64, mut each: impl FnMut(PresentRegion)) {
        let mut regions = [PresentRegion::default(); MAX_REGIONS];
        while start < end {
            let Ok((found, walk_end)) = self.scan_step(start, end, &mut regions) else { return };
            regions[..found].iter().for_each(|region| each(*region));
            if walk_end <= start {
                return;
            }
            start = walk_end;
        }
    }

    fn scan_step(
        &self,
        start: u64,
        end: u64,
        regions: &mut [PresentRegion],
    ) -> io::Result<(usize, u64)> {
        let mut scan = ScanRequest {
            size: size_of::<ScanRequest>() as u64,
            start,
            end,
            regions: regions.as_mut_ptr().expose_provenance() as u64,
            regions_length: regions.len() as u64,
            all_of: PAGE_IS_PRESENT,
            returned: PAGE_IS_PRESENT,
            ..ScanRequest::default()
        };
        // SAFETY: the kernel writes at most `regions_length` regions to `regions`, and updates
        // `scan`.
        let found = unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut scan) };
        match usize::try_from(found) {
            Ok(found) => Ok((found, scan.walk_end)),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

/// Returns the address ranges within `range` whose pages are present in the page tables of a
/// process, in order. `None` before Linux 6.7, which lacks PAGEMAP_SCAN, or if the process is gone.
pub fn mapped_pages(pid: u32, range: &MappedRange) -> Option<Vec<Range<u64>>> {
    let page_table = PageTable::open(pid)?;
    let mut regions = [PresentRegion::default(); MAX_REGIONS];
    let (mut start, mut mapped) = (range.address, Vec::new());
    while start < range.end() {
        let (found, walk_end) = page_table.scan_step(start, range.end(), &mut regions).ok()?;
        mapped.extend(regions[..found].iter().map(|region| region.start..region.end));
        if walk_end <= start {
            return None;
        }
        start = walk_end;
    }
    Some(mapped)
}

/// Fails on kernels without PAGEMAP_SCAN.
pub fn check_supported() -> Result<(), Error> {
    let action = "reading the page tables (PAGEMAP_SCAN)";
    let remedy = "use Linux 6.7 or later, or permit perf events";
    let refused = |cause| Error::refusal(action, cause, remedy);
    let own = PageTable(File::open("/proc/self/pagemap").map_err(refused)?);
    let page_bytes = rustix::param::page_size() as u64;
    own.scan_step(page_bytes, 2 * page_bytes, &mut [PresentRegion::default()]).map_err(refused)?;
    Ok(())
}

/// A range whose touches are reported, with the page indices found present at the last scan.
#[derive(Debug)]
pub struct WatchedRange {
    range: MappedRange,
    present: RoaringBitmap,
    is_unscanned: bool,
    reports_initial: bool,
}

impl WatchedRange {
    /// Watches a range that has not been scanned. `tells_first` selects whether the first scan
    /// reports the pages that it finds present.
    pub fn new(range: MappedRange, tells_first: bool) -> WatchedRange {
        WatchedRange {
            range,
            present: RoaringBitmap::new(),
            is_unscanned: true,
            reports_initial: tells_first,
        }
    }

    pub fn starts_at(&self, range: &MappedRange) -> bool {
        self.range.address == range.address
    }

    /// Reports the addresses of pages that are present now and were not at the last scan.
    pub fn scan(&mut self, page_table: &PageTable, mut tell: impl FnMut(u64)) {
        let page_bytes = rustix::param::page_size() as u64;
        let begin = self.range.address;
        let number = |address: u64| ((address - begin) / page_bytes) as u32;
        let tells = !self.is_unscanned || self.reports_initial;
        let mut until = 0;
        page_table.scan(begin, self.range.end(), |region| {
            let pages = number(region.start)..number(region.end);
            // Forget pages that are no longer present, so that they are reported when they return.
            self.present.remove_range(until..pages.start);
            until = pages.end;
            let mut new = RoaringBitmap::new();
            new.insert_range(pages);
            new -= &self.present;
            if tells {
                new.iter().for_each(|page| tell(begin + u64::from(page) * page_bytes));
            }
            self.present |= new;
        });
        self.present.remove_range(until..=u32::MAX);
        self.is_unscanned = false;
    }
}
