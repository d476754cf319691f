//! The mapping of the child, at an address of our choice.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::ptr::null_mut;

use rustix::mm::{
    Advice as MapAdvice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous,
    mprotect,
};

use super::{Advice, Mapping, Plan, SplitProt};
use crate::{Error, page_size};

/// A mapped file. It stays mapped until the process ends.
pub(super) struct Mapped {
    /// The open file that the mapping and the reads share.
    pub(super) file: File,
    base: *mut u8,
    pages: u64,
    page: usize,
    writable: bool,
}

impl Mapped {
    /// Maps `file`, opened by [`open`] for this plan, as the plan says.
    pub(super) fn map(file: File, plan: &Plan) -> Result<Self, Error> {
        let Mapping { offset, pages, shift, private, .. } = &plan.mapping;
        let page = page_size();
        let bytes = usize::try_from(pages.bytes(page)).map_err(|_| too_long(&plan.path))?;
        let base = reserve(bytes, shift.0 * page)?;
        let mut protection = ProtFlags::READ;
        protection.set(ProtFlags::WRITE, plan.stores());
        protection.set(ProtFlags::EXEC, plan.mapping.executable);
        let kind = if *private { MapFlags::PRIVATE } else { MapFlags::SHARED };
        // SAFETY: the range lies inside an area that `reserve` took for us and nobody else uses.
        unsafe {
            mmap(base.cast(), bytes, protection, kind | MapFlags::FIXED, &file, offset.0 * page)
        }
        .map_err(|errno| Error::os("map", &plan.path, errno))?;
        let mapped =
            Mapped { file, base, pages: pages.0, page: page as usize, writable: plan.stores() };
        mapped.advise(plan.mapping.advice)?;
        mapped.split(&plan.mapping, protection)?;
        Ok(mapped)
    }

    /// A page of anonymous memory that can be accessed like a mapped file.
    pub(super) fn anonymous(file: File) -> Result<Self, Error> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe {
            mmap_anonymous(null_mut(), page_size() as usize, protection, MapFlags::PRIVATE)
        }
        .map_err(|errno| Error::call("map a page", errno))?;
        Ok(Mapped { file, base: base.cast(), pages: 1, page: page_size() as usize, writable: true })
    }

    /// Where it begins.
    pub(super) fn address(&self) -> usize {
        self.base as usize
    }

    /// Reads a byte of a page.
    #[inline]
    pub(super) fn touch(&self, page: u64) {
        assert!(page < self.pages, "an access outside the mapping");
        // SAFETY: the page is mapped readable for the life of the process; nobody in this
        // process holds a reference to it, and a file that changes gives another byte only.
        unsafe { self.base.add(page as usize * self.page).read_volatile() };
    }

    /// Writes a byte of a page.
    #[inline]
    pub(super) fn store(&self, page: u64) {
        assert!(page < self.pages && self.writable, "a store outside a writable mapping");
        // SAFETY: the page is mapped writable and private for the life of the process, and
        // nobody holds a reference to it.
        unsafe { self.base.add(page as usize * self.page).write_volatile(1) };
    }

    fn advise(&self, advice: Advice) -> Result<(), Error> {
        let advice = match advice {
            Advice::Normal => return Ok(()),
            Advice::Random => MapAdvice::Random,
            Advice::Sequential => MapAdvice::Sequential,
            Advice::HugePage => MapAdvice::LinuxHugepage,
        };
        let bytes = (self.pages * page_size()) as usize;
        // SAFETY: exactly this mapping; none of these kinds of advice changes what it holds.
        unsafe { madvise(self.base.cast(), bytes, advice) }.map_err(|errno| match errno {
            rustix::io::Errno::INVAL => Error::unavailable(
                "this advice",
                "use another advice, or a kernel with transparent huge pages",
            ),
            errno => Error::call("advise the mapping", errno),
        })
    }

    fn split(&self, mapping: &Mapping, protection: ProtFlags) -> Result<(), Error> {
        let Some(split) = mapping.split else { return Ok(()) };
        let mut other = MprotectFlags::from_bits_retain(protection.bits());
        other |= match split.prot {
            SplitProt::Exec => MprotectFlags::EXEC,
            SplitProt::Write => MprotectFlags::WRITE,
        };
        let step = split.pages.0.saturating_mul(2) as usize;
        for first in (split.pages.0..self.pages).step_by(step) {
            let pages = split.pages.0.min(self.pages - first);
            let bytes = (pages * page_size()) as usize;
            // SAFETY: a part of this mapping, whose pages stay readable.
            let result = unsafe {
                mprotect(self.base.add((first * page_size()) as usize).cast(), bytes, other)
            };
            result.map_err(|errno| Error::call("protect a piece of the mapping", errno))?;
        }
        Ok(())
    }
}

/// Opens the plan's file and checks that the mapping lies inside it.
pub(super) fn open(plan: &Plan) -> Result<File, Error> {
    // The pieces of a shared mapping can be made writable only if the file is.
    let writable = |split: filemap_core::vma::Split| split.prot == SplitProt::Write;
    let writes = !plan.mapping.private && plan.mapping.split.is_some_and(writable);
    let file = OpenOptions::new()
        .read(true)
        .write(writes)
        .open(&plan.path)
        .map_err(|error| Error::os("open", &plan.path, error))?;
    check_length(&file, plan)?;
    Ok(file)
}

/// Finds an address `shift_bytes` behind one where a page-table page begins, with room for
/// `bytes`. What is taken beyond that stays reserved and keeps other mappings away.
fn reserve(bytes: usize, shift_bytes: u64) -> Result<*mut u8, Error> {
    let table = page_size() * page_size() / 8;
    let shift = (shift_bytes % table) as usize;
    let table = table as usize;
    let whole = bytes.checked_add(shift + 2 * table);
    let whole = whole.ok_or_else(|| too_long(Path::new("/proc/self/mem")))?;
    // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
    let area = unsafe {
        mmap_anonymous(
            null_mut(),
            whole,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    }
    .map_err(|errno| Error::call("reserve addresses for the mapping", errno))?;
    // At least a page before the mapping and behind it is left, so that it is a VMA of its own.
    let aligned = (area as usize + 1).next_multiple_of(table);
    Ok((aligned + shift) as *mut u8)
}

/// Refuses what is no file, and a mapping beyond its end, with a better reason than the kernel's.
fn check_length(file: &File, plan: &Plan) -> Result<(), Error> {
    let path = &plan.path;
    let metadata = file.metadata().map_err(|error| Error::os("read the size of", path, error))?;
    if !metadata.is_file() {
        return Err(Error::Plan(format!("'{}' is not a regular file: name one", path.display())));
    }
    let pages = plan.mapping.offset.0.saturating_add(plan.mapping.pages.0);
    if pages <= metadata.len().div_ceil(page_size()) {
        return Ok(());
    }
    Err(Error::Plan(format!(
        "the mapping ends after {pages} pages, and '{}' has {} bytes: map less",
        path.display(),
        metadata.len()
    )))
}

fn too_long(path: &Path) -> Error {
    Error::Plan(format!("the mapping of '{}' does not fit into memory: map less", path.display()))
}
