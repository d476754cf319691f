//! Anonymous memory filled with folios of one size.

use std::fs;
use std::ptr::null_mut;

use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};

use filemap_job::folio_ops::PMD_BYTES;

use crate::procstat::Faults;
use crate::{Error, page_size};

/// Shows how much of the process is mapped by PMD entries.
const ROLLUP: &str = "/proc/self/smaps_rollup";

/// A VMA of anonymous memory that starts at a PMD boundary. It stays mapped until
/// [`Memory::unmap`], also in forked processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    base: usize,
    bytes: usize,
    page: usize,
    /// Number of minor faults while filling it.
    pub(super) faults: u64,
}

impl Memory {
    /// Maps `bytes`, filled with folios of `folio_bytes` as far as the kernel provides them, all
    /// mapped by page-table entries.
    pub(super) fn fill(bytes: u64, folio_bytes: u64) -> Result<Memory, Error> {
        let mut memory = Memory::map(bytes as usize)?;
        let advice = if folio_bytes == page_size() {
            Advice::LinuxNoHugepage
        } else {
            Advice::LinuxHugepage
        };
        // SAFETY: mapped above, with no references to it.
        match unsafe { madvise(memory.at(0), memory.bytes, advice) } {
            // A kernel without huge pages has neither the advice nor large folios.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(Error::call("advise the memory", errno)),
        }
        let before = Faults::current_thread().minor;
        memory.write_all();
        memory.faults = Faults::current_thread().minor - before;
        if folio_bytes == PMD_BYTES {
            memory.split_entries()?;
        }
        Ok(memory)
    }

    fn map(bytes: usize) -> Result<Memory, Error> {
        let failed = |errno| Error::call("map the memory", errno);
        let huge = PMD_BYTES as usize;
        let whole = bytes + 2 * huge;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe { mmap_anonymous(null_mut(), whole, protection, flags) };
        let start = start.map_err(failed)? as usize;
        // The unmapped parts on both sides keep it a separate VMA.
        let base = (start + 1).next_multiple_of(huge);
        for (from, to) in [(start, base), (base + bytes, start + whole)] {
            // SAFETY: a part of the mapping above, without references to it.
            unsafe { munmap(from as *mut _, to - from) }.map_err(failed)?;
        }
        Ok(Memory { base, bytes, page: page_size() as usize, faults: 0 })
    }

    /// Splits PMD entries into page-table entries without splitting folios, by changing the
    /// protection of one page per folio back and forth.
    fn split_entries(&self) -> Result<(), Error> {
        let failed = |errno| Error::call("map a huge page by page", errno);
        let both = MprotectFlags::READ | MprotectFlags::WRITE;
        for at in (0..self.bytes).step_by(PMD_BYTES as usize) {
            for protection in [MprotectFlags::READ, both] {
                // SAFETY: a page of this memory, which is not written meanwhile.
                unsafe { mprotect(self.at(at), self.page, protection) }.map_err(failed)?;
            }
        }
        match huge_kib(&fs::read_to_string(ROLLUP).unwrap_or_default()) {
            // Unknown counts as success.
            None | Some(0) => Ok(()),
            Some(kib) => Err(Error::Child {
                message: format!("{kib} KiB of its memory are still mapped by huge entries"),
            }),
        }
    }

    /// Number of pages.
    pub(super) fn pages(&self) -> usize {
        self.bytes / self.page
    }

    /// Page number of its start in the address space.
    pub(super) fn first_page(&self) -> u64 {
        (self.base / self.page) as u64
    }

    /// Writes a byte to each page, in order.
    pub(super) fn write_all(&self) {
        // SAFETY: the numbers are below `pages`.
        (0..self.pages()).for_each(|page| unsafe { self.write(page) });
    }

    /// Returns a closure that writes a byte to each page of `order`. Bounds are checked here,
    /// outside of the timed part.
    pub(super) fn writes<'a>(&'a self, order: &'a [u32]) -> impl Fn() + 'a {
        let is_page = |&page: &u32| (page as usize) < self.pages();
        assert!(order.iter().all(is_page), "a write outside the memory");
        move || {
            for &page in order {
                // SAFETY: the assertion above checked all of `order`, which stays borrowed.
                unsafe { self.write(page as usize) }
            }
        }
    }

    /// Unmaps it. This process must not write to it afterwards.
    pub(super) fn unmap(&self) -> Result<(), Error> {
        // SAFETY: exactly the mapping, with no references to it.
        unsafe { munmap(self.at(0), self.bytes) }
            .map_err(|errno| Error::call("unmap the memory", errno))
    }

    /// Writes a byte to a page.
    ///
    /// # Safety
    /// `page` is below [`Memory::pages`].
    #[inline]
    unsafe fn write(&self, page: usize) {
        // SAFETY: a page of this mapping by the function's contract; it is writable until `unmap`
        // and has no references.
        unsafe { self.at(page * self.page).cast::<u8>().write_volatile(1) };
    }

    fn at(&self, bytes: usize) -> *mut libc::c_void {
        (self.base + bytes) as *mut libc::c_void
    }
}

/// `AnonHugePages` in the text of a process's smaps, in KiB.
fn huge_kib(smaps: &str) -> Option<u64> {
    let rest = smaps.lines().find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    rest.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_every_page_faults() {
        let memory = Memory::fill(4 << 20, page_size()).unwrap();
        assert_eq!(memory.base % PMD_BYTES as usize, 0);
        assert_eq!(memory.pages() as u64, (4 << 20) / page_size());
        assert!(memory.faults >= memory.pages() as u64, "{memory:?}");
        memory.unmap().unwrap();
    }

    #[test]
    #[should_panic = "a write outside the memory"]
    fn refuses_an_order_with_pages_outside() {
        let memory = Memory::map(2 << 20).unwrap();
        let pages = memory.pages() as u32;
        memory.writes(&[0, pages - 1])();
        let _ = memory.writes(&[0, pages]);
    }

    #[test]
    fn parses_anon_huge_pages() {
        assert_eq!(huge_kib("Rss: 8 kB\nAnonHugePages:      4096 kB\nb: 1 kB"), Some(4096));
        assert_eq!(huge_kib("Rss: 8 kB\n"), None);
    }
}
