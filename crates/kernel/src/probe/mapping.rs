//! Mappings of the child, at addresses that it chooses.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use filemap_core::address::mapping::SplitProt;
use filemap_core::address::vma::{AdviceFlag, HugeHint, ReadHint};
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::Mapping;
use filemap_job::program::{Madvise, NamedMapping, Protection};
use rustix::io::Errno;
use rustix::mm::{
    Advice as MapAdvice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous,
    mprotect, munmap,
};

use super::thread::RETURN_OPCODE;
use crate::{Error, page_size};

/// Whether [`RETURN_OPCODE`] is valid code on this machine.
const HAS_RETURN: bool = cfg!(target_arch = "x86_64");

/// The addresses of a mapping, mapped or not. They are reserved until it is first unmapped; from
/// then on nothing else is mapped while threads run their steps.
pub(super) struct ProbeMapping<'a> {
    spec: &'a NamedMapping,
    /// Number of pages; for segments, up to the end of the last one.
    pages: PageCount,
    reservation: AddressReservation,
    page: usize,
    /// Executable, on a machine where [`RETURN_OPCODE`] is code.
    callable: bool,
    /// Meanwhile only the thread that maps and unmaps it uses it.
    is_mapped: AtomicBool,
    /// Whether its addresses are reserved while it is not mapped.
    is_reserved: AtomicBool,
}

/// Reserved addresses.
#[derive(Clone, Copy, Debug)]
struct AddressReservation {
    start: usize,
    bytes: usize,
    /// Start of the mapping: at least a page after the start of the reservation.
    base: usize,
}

/// A mapped part of the file.
struct MappedPart {
    /// Offset in the mapping, in bytes.
    start: usize,
    bytes: usize,
    /// Offset in the file, in bytes.
    offset: u64,
    protection: ProtFlags,
}

impl<'a> ProbeMapping<'a> {
    /// Reserves addresses for the mapping `spec` of the file at `path`.
    pub(super) fn reserve(spec: &'a NamedMapping, path: &Path) -> Result<Self, Error> {
        let (page, pages) = (page_size(), spec.span());
        let bytes = usize::try_from(pages.bytes(page)).map_err(|_| too_long_error(path))?;
        let room = AddressReservation::take(bytes, spec.mapping.shift.0 * page, path)?;
        let callable = spec.mapping.exec && HAS_RETURN;
        let (is_there, is_reserved) = (AtomicBool::new(false), AtomicBool::new(true));
        Ok(ProbeMapping {
            spec,
            pages,
            reservation: room,
            page: page as usize,
            callable,
            is_mapped: is_there,
            is_reserved,
        })
    }

    /// Maps its part of `file`, which is at `path`.
    pub(super) fn map(&self, file: &File, path: &Path) -> Result<(), Error> {
        let mut kind = if self.spec.is_private() { MapFlags::PRIVATE } else { MapFlags::SHARED };
        kind |= if self.is_reserved.load(Ordering::Relaxed) {
            MapFlags::FIXED
        } else {
            MapFlags::FIXED_NOREPLACE
        };
        for part in parts(self.spec) {
            // SAFETY: the range lies inside the reservation, which nobody else uses, or does not
            // replace any mapping (MAP_FIXED_NOREPLACE).
            unsafe {
                let address = self.at(part.start);
                mmap(address, part.bytes, part.protection, kind, file, part.offset)
            }
            .map_err(|errno| map_error(path, part.protection, errno))?;
            self.advise_part(&part)?;
            self.split(part.protection)?;
        }
        self.is_mapped.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Unmaps it, including its page-table pages.
    pub(super) fn unmap(&self) -> Result<(), Error> {
        self.is_mapped.store(false, Ordering::Relaxed);
        self.is_reserved.store(false, Ordering::Relaxed);
        // The whole reservation: a neighbour in the same page-table page would keep that page.
        // SAFETY: nobody else uses the reservation or holds a reference into it.
        let done = unsafe { munmap(self.reservation.start as *mut _, self.reservation.bytes) };
        done.map_err(|errno| Error::call("take the mapping away", errno))
    }

    /// Unmaps `pages` pages from page `first` on. Nothing else is mapped there while threads run
    /// their steps.
    pub(super) fn unmap_part(&self, first: PageCount, pages: PageCount) -> Result<(), Error> {
        assert!((first + pages) <= self.pages, "a part outside the mapping");
        let page = page_size();
        // At an end of the mapping the reservation is unmapped too: a neighbour in the same
        // page-table page would keep that page.
        let AddressReservation { start, bytes, base } = self.reservation;
        let from = match first.0 {
            0 => start,
            _ => base + first.bytes(page) as usize,
        };
        let end = if first + pages == self.pages {
            start + bytes
        } else {
            base + (first + pages).bytes(page) as usize
        };
        // SAFETY: a part of this mapping and its reservation, with no references to it; a valid
        // program no longer touches its pages.
        let done = unsafe { munmap(from as *mut _, end - from) };
        done.map_err(|errno| Error::call("unmap a part of the mapping", errno))
    }

    /// The reserved address range.
    pub(super) fn reserved_range(&self) -> Range<usize> {
        self.reservation.start..self.reservation.start + self.reservation.bytes
    }

    /// Its address.
    pub(super) fn address(&self) -> usize {
        self.reservation.base
    }

    /// Number of pages.
    pub(super) fn pages(&self) -> u64 {
        self.pages.0
    }

    /// The page of the file that `page` maps.
    pub(super) fn file_page(&self, page: PageIndex) -> u64 {
        self.spec.file_page(page).expect("a valid program").0
    }

    /// Reads a byte of a page.
    #[inline]
    pub(super) fn touch(&self, page: u64) {
        self.check(page);
        // SAFETY: the page stays mapped readable until the calling thread unmaps it. Nobody in this
        // process holds a reference to it, and a change of the file only changes the byte read.
        unsafe { (self.address_of(page) as *const u8).read_volatile() };
    }

    /// Writes a byte of a page.
    #[inline]
    pub(super) fn store(&self, page: u64) {
        self.check(page);
        assert!(self.spec.mapping.private, "a store outside a private mapping");
        // SAFETY: the page stays mapped writable and private until the calling thread unmaps it,
        // and nobody holds a reference to it.
        unsafe { (self.address_of(page) as *mut u8).write_volatile(RETURN_OPCODE) };
    }

    /// Calls the code at the start of a page.
    #[inline]
    pub(super) fn call(&self, page: u64) {
        self.check(page);
        assert!(self.callable, "a call outside executable code");
        // SAFETY: the page stays mapped executable until the calling thread unmaps it, and whoever
        // made the plan has checked that it begins with a return instruction.
        unsafe {
            let code = self.address_of(page) as *const u8;
            std::mem::transmute::<*const u8, extern "C" fn()>(code)();
        }
    }

    #[inline]
    fn check(&self, page: u64) {
        let is_there = self.is_mapped.load(Ordering::Relaxed);
        assert!(is_there && page < self.pages.0, "an access outside the mapping");
    }

    #[inline]
    fn address_of(&self, page: u64) -> usize {
        self.reservation.base + page as usize * self.page
    }

    fn at(&self, bytes: usize) -> *mut libc::c_void {
        (self.reservation.base + bytes) as *mut libc::c_void
    }

    /// Gives the initial advice of a part.
    fn advise_part(&self, part: &MappedPart) -> Result<(), Error> {
        let read = match self.spec.mapping.advice.read {
            ReadHint::Normal => None,
            ReadHint::Random => Some(MapAdvice::Random),
            ReadHint::Sequential => Some(MapAdvice::Sequential),
        };
        let huge = match self.spec.mapping.advice.huge {
            HugeHint::None => None,
            HugeHint::Huge => Some(MapAdvice::LinuxHugepage),
            HugeHint::NoHuge => Some(MapAdvice::LinuxNoHugepage),
        };
        let mut all = [read, huge].into_iter().flatten();
        all.try_for_each(|advice| self.advise(part.start, part.bytes, advice))
    }

    /// Gives advice for `pages` pages from page `first` on.
    pub(super) fn madvise(
        &self,
        advice: Madvise,
        first: PageCount,
        pages: PageCount,
    ) -> Result<(), Error> {
        assert!((first + pages) <= self.pages, "advice outside the mapping");
        let advice = match advice {
            Madvise::Flag(AdviceFlag::Read(ReadHint::Normal)) => MapAdvice::Normal,
            Madvise::Flag(AdviceFlag::Read(ReadHint::Random)) => MapAdvice::Random,
            Madvise::Flag(AdviceFlag::Read(ReadHint::Sequential)) => MapAdvice::Sequential,
            Madvise::Flag(AdviceFlag::Huge) => MapAdvice::LinuxHugepage,
            Madvise::Flag(AdviceFlag::NoHuge) => MapAdvice::LinuxNoHugepage,
            Madvise::WillNeed => MapAdvice::WillNeed,
            Madvise::DontNeed => MapAdvice::LinuxDontNeed,
            Madvise::Cold => MapAdvice::LinuxCold,
            Madvise::PageOut => MapAdvice::LinuxPageOut,
            Madvise::PopulateRead => MapAdvice::LinuxPopulateRead,
        };
        let page = page_size();
        self.advise(first.bytes(page) as usize, pages.bytes(page) as usize, advice)
    }

    fn advise(&self, start: usize, bytes: usize, advice: MapAdvice) -> Result<(), Error> {
        // SAFETY: a part of this mapping, with no references to it; its contents come from the file
        // or the probe.
        let result = unsafe { madvise(self.at(start), bytes, advice) };
        result.map_err(|errno| match errno {
            Errno::INVAL => Error::unavailable(
                "this advice",
                "use another advice, or a kernel with transparent huge pages",
            ),
            errno => Error::call("advise the mapping", errno),
        })
    }

    /// Changes the protection of `pages` pages from page `first` on, by adding `protection` to the
    /// mapping's own.
    pub(super) fn protect(
        &self,
        protection: Protection,
        first: PageCount,
        pages: PageCount,
    ) -> Result<(), Error> {
        assert!((first + pages) <= self.pages, "a protection outside the mapping");
        let mut flags = MprotectFlags::READ;
        let Mapping { private, exec, .. } = self.spec.mapping;
        flags.set(MprotectFlags::WRITE, private || protection == Protection::Write);
        flags.set(MprotectFlags::EXEC, exec || protection == Protection::Exec);
        let page = page_size();
        let (start, bytes) = (first.bytes(page) as usize, pages.bytes(page) as usize);
        // SAFETY: a part of this mapping; its pages stay readable.
        let done = unsafe { mprotect(self.at(start), bytes, flags) };
        done.map_err(|errno| Error::call("protect a part of the mapping", errno))
    }

    fn split(&self, protection: ProtFlags) -> Result<(), Error> {
        let Some(split) = self.spec.mapping.effective_split() else { return Ok(()) };
        let pages = self.pages.0;
        let mut other = MprotectFlags::from_bits_retain(protection.bits());
        other |= match split.prot {
            SplitProt::Exec => MprotectFlags::EXEC,
            SplitProt::Write => MprotectFlags::WRITE,
        };
        let step = split.pages.0.saturating_mul(2) as usize;
        for first in (split.pages.0..pages).step_by(step) {
            let bytes = split.pages.0.min(pages - first) as usize * self.page;
            // SAFETY: a part of this mapping; its pages stay readable.
            let result = unsafe { mprotect(self.at(first as usize * self.page), bytes, other) };
            result.map_err(|errno| Error::call("protect a piece of the mapping", errno))?;
        }
        Ok(())
    }
}

impl AddressReservation {
    /// Reserves space for `bytes`, starting `shift_bytes` after the start of a page-table page. The
    /// rest of the reservation keeps other mappings away.
    fn take(bytes: usize, shift_bytes: u64, path: &Path) -> Result<AddressReservation, Error> {
        let table = page_size() * page_size() / 8;
        let shift = (shift_bytes % table) as usize;
        let table = table as usize;
        let whole = bytes.checked_add(shift + 2 * table).ok_or_else(|| too_long_error(path))?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe { mmap_anonymous(null_mut(), whole, ProtFlags::empty(), flags) };
        let start = start
            .map_err(|errno| Error::call("reserve addresses for the mapping", errno))?
            as usize;
        // At least a page stays free before and after the mapping, so that it is a separate VMA.
        let base = (start + 1).next_multiple_of(table) + shift;
        Ok(AddressReservation { start, bytes: whole, base })
    }
}

/// A page of anonymous memory that can be accessed like a mapping of a file with the properties of
/// `spec`, of one page.
pub(super) fn map_anonymous_page(spec: &NamedMapping) -> Result<ProbeMapping<'_>, Error> {
    let mut protection = ProtFlags::READ | ProtFlags::WRITE;
    protection.set(ProtFlags::EXEC, spec.mapping.exec);
    let bytes = page_size() as usize;
    // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
    let base = unsafe { mmap_anonymous(null_mut(), bytes, protection, MapFlags::PRIVATE) }
        .map_err(|errno| Error::call("map a page", errno))? as usize;
    let callable = spec.mapping.exec && HAS_RETURN;
    let room = AddressReservation { start: base, bytes, base };
    let (is_there, is_reserved) = (AtomicBool::new(true), AtomicBool::new(false));
    Ok(ProbeMapping {
        spec,
        pages: PageCount(1),
        reservation: room,
        page: bytes,
        callable,
        is_mapped: is_there,
        is_reserved,
    })
}

/// The mapped parts of the file.
fn parts(spec: &NamedMapping) -> Vec<MappedPart> {
    let page = page_size();
    let part = |start: PageCount, offset: PageIndex, pages: PageCount, protection| MappedPart {
        start: start.bytes(page) as usize,
        bytes: pages.bytes(page) as usize,
        offset: offset.0 * page,
        protection,
    };
    let with = |writable, executable| {
        let mut protection = ProtFlags::READ;
        protection.set(ProtFlags::WRITE, writable);
        protection.set(ProtFlags::EXEC, executable);
        protection
    };
    if spec.segments.is_empty() {
        let Mapping { offset, pages, private, exec, .. } = spec.mapping;
        return vec![part(PageCount(0), offset, pages, with(private, exec))];
    }
    let segments = spec.segments.iter().map(|segment| {
        let protection = with(segment.writable, segment.executable);
        part(segment.start, segment.offset, segment.pages, protection)
    });
    segments.collect()
}

/// The error for a failed mapping of the file.
fn map_error(path: &Path, protection: ProtFlags, errno: Errno) -> Error {
    if errno == Errno::PERM && protection.contains(ProtFlags::EXEC) {
        return Error::unavailable(
            format!("an executable mapping of '{}'", path.display()),
            "its filesystem is mounted noexec: name a directory elsewhere in TMPDIR",
        );
    }
    if errno == Errno::EXIST {
        return Error::Child {
            message: format!(
                "the addresses of a mapping of '{}' were taken while it was unmapped",
                path.display()
            ),
        };
    }
    Error::os("map", path, errno)
}

fn too_long_error(path: &Path) -> Error {
    Error::InvalidProcess(format!(
        "the mapping of '{}' does not fit into memory: map less",
        path.display()
    ))
}
