//! Memory of a probe's process other than the mappings of its program.

use std::ffi::c_void;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::Mutex;

use filemap_core::units::PageCount;
use filemap_job::program::DIRECT_BLOCK_BYTES;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mlock, mmap_anonymous, mprotect, munlock,
    munmap,
};

use crate::{Error, page_size};

/// Capacity for `/proc/self/maps`: reading it must not allocate.
const LIST_BYTES: usize = 256 << 10;

/// Mappings of this process outside the program's reservations.
pub(super) struct ProcessMemory<'r> {
    list: String,
    reserved: &'r [Range<usize>],
}

impl ProcessMemory<'_> {
    /// The current mappings outside of `rooms`.
    pub(super) fn outside(rooms: &[Range<usize>]) -> Result<ProcessMemory<'_>, Error> {
        let mut list = String::with_capacity(LIST_BYTES);
        let read =
            File::open("/proc/self/maps").and_then(|mut maps| maps.read_to_string(&mut list));
        read.map_err(|error| Error::call("read what the probe has mapped", error))?;
        Ok(ProcessMemory { list, reserved: rooms })
    }

    /// Locks all of it. Returns whether that succeeded. Later mappings are not locked, since files
    /// must not be.
    pub(super) fn lock(&self) -> bool {
        let lock = |(range, _): (Range<usize>, bool)| {
            // SAFETY: locking does not change contents.
            unsafe { mlock(range.start as *mut _, range.len()) }.is_ok()
        };
        // No short circuit: each range is tried.
        self.ranges().filter(|part| !lock(part.clone())).count() == 0
    }

    /// Excludes its writable ranges from later forks (MADV_DONTFORK): copy-on-write would cause
    /// faults.
    pub(super) fn exclude_from_forks(&self) {
        for (range, _) in self.ranges().filter(|(_, is_private)| *is_private) {
            // SAFETY: nothing changes for this process. Its children do not access these ranges
            // (`ForkStack::fork`).
            let _ = unsafe { madvise(range.start as *mut _, range.len(), Advice::LinuxDontFork) };
        }
    }

    /// Its accessible parts, and whether each is private and writable.
    fn ranges(&self) -> impl Iterator<Item = (Range<usize>, bool)> {
        let parts = self.list.lines().filter_map(parse_range);
        parts.filter(|(range, _)| {
            !self.reserved.iter().any(|room| room.start < range.end && range.start < room.end)
        })
    }
}

/// Parses a line of `/proc/PID/maps`.
fn parse_range(line: &str) -> Option<(Range<usize>, bool)> {
    let (addresses, rest) = line.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    // vDSO and vvar are not memory of the process.
    let is_own = !rest.starts_with("---") && !rest.contains("[v");
    let is_private = rest.starts_with("rw") && rest.as_bytes().get(3) == Some(&b'p');
    is_own.then_some((address(start)?..address(end)?, is_private))
}

/// A page of anonymous memory charged to the child's memory cgroup until dropped.
pub(super) struct ChargedPage(*mut c_void);

impl ChargedPage {
    /// Maps a page of its own, so that none of the child's existing pages is used.
    pub(super) fn new() -> Result<ChargedPage, Error> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let bytes = page_size() as usize;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(null_mut(), bytes, protection, flags) }
            .map_err(|errno| Error::call("map a page of memory", errno))?;
        // SAFETY: mapped writable above.
        unsafe { base.cast::<u8>().write_volatile(1) };
        Ok(ChargedPage(base))
    }
}

impl Drop for ChargedPage {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping of `new`, with no references to it.
        let _ = unsafe { munmap(self.0, page_size() as usize) };
    }
}

/// Anonymous memory that a process of the probe holds for all of its threads. Its addresses are
/// reserved before the run, when threads may not map anything.
pub(super) struct HeldMemory {
    base: *mut c_void,
    /// Size of the reservation in bytes.
    bytes: usize,
    /// Part of it that is held.
    held: Mutex<usize>,
}

// SAFETY: the addresses are only handed to system calls, under the lock of `held`.
unsafe impl Sync for HeldMemory {}

impl HeldMemory {
    /// Reserves addresses for `pages` pages.
    pub(super) fn reserve(pages: PageCount) -> Result<HeldMemory, Error> {
        let bytes = usize::try_from(pages.bytes(page_size())).unwrap_or(usize::MAX);
        // Inaccessible, so that it is not locked with the child's other memory before the limit
        // applies.
        let (protection, flags) = (ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(null_mut(), bytes.max(1), protection, flags) };
        let base = base.map_err(|errno| Error::call("reserve the anonymous memory", errno))?;
        Ok(HeldMemory { base, bytes, held: Mutex::new(0) })
    }

    /// Allocates `pages` pages and keeps them in memory.
    pub(super) fn allocate(&self, pages: PageCount) -> Result<(), Error> {
        let bytes = usize::try_from(pages.bytes(page_size())).unwrap_or(usize::MAX);
        let mut held = self.held.lock().expect("no holder panics");
        let bytes = bytes.min(self.bytes - *held);
        if bytes == 0 {
            return Ok(());
        }
        // If locking is not permitted, the pages are touched and stay unless the system swaps.
        // SAFETY: part of the mapping of `reserve`, to which there are no references; also for the
        // writes below.
        let start = unsafe { self.base.byte_add(*held) };
        unsafe { mprotect(start, bytes, MprotectFlags::READ | MprotectFlags::WRITE) }
            .map_err(|errno| Error::call("hold the anonymous memory", errno))?;
        if unsafe { mlock(start, bytes) }.is_err() {
            for at in (0..bytes).step_by(page_size() as usize) {
                unsafe { start.cast::<u8>().add(at).write_volatile(1) };
            }
        }
        *held += bytes;
        Ok(())
    }

    /// Frees up to `pages` pages of those allocated last.
    pub(super) fn free(&self, pages: PageCount) -> Result<(), Error> {
        let bytes = usize::try_from(pages.bytes(page_size())).unwrap_or(usize::MAX);
        let mut held = self.held.lock().expect("no holder panics");
        let bytes = bytes.min(*held);
        *held -= bytes;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: part of the mapping of `reserve`, to which there are no references.
        unsafe {
            let start = self.base.byte_add(*held);
            let _ = munlock(start, bytes);
            madvise(start, bytes, Advice::LinuxDontNeed)
        }
        .map_err(|errno| Error::call("free the anonymous memory", errno))
    }
}

/// Memory aligned to the blocks of direct reads.
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl ReadBuffer {
    /// Allocates `bytes` bytes, rounded up to whole blocks. Filled with ones, because zeros would
    /// not populate the memory.
    pub(super) fn new(bytes: u64) -> ReadBuffer {
        let block = DIRECT_BLOCK_BYTES as usize;
        let bytes = match bytes {
            0 => Vec::new(),
            some => vec![1; (some.next_multiple_of(DIRECT_BLOCK_BYTES)) as usize + block],
        };
        let from = bytes.as_ptr().align_offset(block).min(bytes.len());
        ReadBuffer { bytes, start: from }
    }

    /// The memory.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_reservations_and_kernel_mappings() {
        let list = "1000-2000 rw-p 00000000 00:00 0   [heap]\n\
                    3000-5000 r--s 00000000 fe:00 12  /a file\n\
                    5000-6000 ---p 00000000 00:00 0\n\
                    6000-8000 rw-s 00000000 00:01 7   /dev/zero (deleted)\n\
                    9000-a000 r-xp 00000000 00:00 0   [vdso]\n";
        let room = 0x2000..0x5000;
        let rooms = std::slice::from_ref(&room);
        let own = ProcessMemory { list: list.to_string(), reserved: rooms };
        let parts: Vec<_> = own.ranges().collect();
        assert_eq!(parts, [(0x1000..0x2000, true), (0x6000..0x8000, false)]);
    }

    #[test]
    fn buffer_is_aligned_and_large_enough() {
        for bytes in [0, 1, 4095, 4096, 4097, 1 << 20] {
            let mut buffer = ReadBuffer::new(bytes);
            let memory = buffer.bytes();
            assert!(memory.len() as u64 >= bytes.next_multiple_of(DIRECT_BLOCK_BYTES));
            let first = memory.as_ptr() as u64;
            assert!(bytes == 0 || first.is_multiple_of(DIRECT_BLOCK_BYTES));
        }
    }
}
