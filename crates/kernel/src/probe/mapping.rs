//! The mapping of the child, at an address of our choice.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::ptr::null_mut;

use filemap_core::units::{PageCount, PageIndex};
use rustix::io::Errno;
use rustix::mm::{
    Advice as MapAdvice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous,
    mprotect,
};

use super::{Advice, HugeHint, Mapping, Plan, RETURN, ReadHint, SplitProt};
use crate::{Error, page_size};

/// Whether [`RETURN`] is code of this machine.
const HAS_RETURN: bool = cfg!(target_arch = "x86_64");

/// A mapped file. It stays mapped until the process ends.
pub(super) struct Mapped {
    /// The open file that the mapping and the reads share.
    pub(super) file: File,
    base: *mut u8,
    pages: u64,
    page: usize,
    writable: bool,
    /// Executable, on a machine whose code [`RETURN`] is.
    callable: bool,
}

/// A part of the file, mapped.
struct Part {
    /// Where in the mapping, in bytes.
    start: usize,
    bytes: usize,
    /// Where in the file, in bytes.
    offset: u64,
    protection: ProtFlags,
}

impl Mapped {
    /// Maps `file`, opened by [`open`] for this plan, as the plan says.
    pub(super) fn map(file: File, plan: &Plan) -> Result<Self, Error> {
        let Mapping { pages, shift, private, executable, .. } = plan.mapping;
        let page = page_size();
        let bytes = usize::try_from(pages.bytes(page)).map_err(|_| too_long(&plan.path))?;
        let base = reserve(bytes, shift.0 * page)?;
        let private = private || !plan.segments.is_empty();
        let kind = if private { MapFlags::PRIVATE } else { MapFlags::SHARED };
        let (page, writable) = (page as usize, plan.stores());
        let callable = executable && HAS_RETURN;
        let mapped = Mapped { file, base, pages: pages.0, page, writable, callable };
        for part in parts(plan) {
            // SAFETY: the range lies inside an area that `reserve` took for us and nobody else
            // uses, as the plan was checked.
            unsafe {
                let address = base.add(part.start).cast();
                let kind = kind | MapFlags::FIXED;
                mmap(address, part.bytes, part.protection, kind, &mapped.file, part.offset)
            }
            .map_err(|errno| refused(&plan.path, part.protection, errno))?;
            mapped.advise(&part, plan.mapping.advice)?;
            mapped.split(&plan.mapping, part.protection)?;
        }
        Ok(mapped)
    }

    /// A page of anonymous memory that can be accessed like a mapped file, and called if it is
    /// `executable`.
    pub(super) fn anonymous(file: File, executable: bool) -> Result<Self, Error> {
        let mut protection = ProtFlags::READ | ProtFlags::WRITE;
        protection.set(ProtFlags::EXEC, executable);
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe {
            mmap_anonymous(null_mut(), page_size() as usize, protection, MapFlags::PRIVATE)
        }
        .map_err(|errno| Error::call("map a page", errno))?;
        let (base, page) = (base.cast(), page_size() as usize);
        let callable = executable && HAS_RETURN;
        Ok(Mapped { file, base, pages: 1, page, writable: true, callable })
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
        unsafe { self.base.add(page as usize * self.page).write_volatile(RETURN) };
    }

    /// Calls the code at the start of a page.
    #[inline]
    pub(super) fn call(&self, page: u64) {
        assert!(page < self.pages && self.callable, "a call outside executable code");
        // SAFETY: the page is mapped executable for the life of the process, and whoever made the
        // plan has seen to it that it begins with an instruction that only returns.
        unsafe {
            let code = self.base.add(page as usize * self.page);
            std::mem::transmute::<*mut u8, extern "C" fn()>(code)();
        }
    }

    fn advise(&self, part: &Part, advice: Advice) -> Result<(), Error> {
        let read = match advice.read {
            ReadHint::Normal => None,
            ReadHint::Random => Some(MapAdvice::Random),
            ReadHint::Sequential => Some(MapAdvice::Sequential),
        };
        let huge = match advice.huge {
            HugeHint::None => None,
            HugeHint::Huge => Some(MapAdvice::LinuxHugepage),
            HugeHint::NoHuge => Some(MapAdvice::LinuxNoHugepage),
        };
        for advice in [read, huge].into_iter().flatten() {
            // SAFETY: exactly this part; none of these kinds of advice changes what it holds.
            let result = unsafe { madvise(self.base.add(part.start).cast(), part.bytes, advice) };
            result.map_err(|errno| match errno {
                Errno::INVAL => Error::unavailable(
                    "this advice",
                    "use another advice, or a kernel with transparent huge pages",
                ),
                errno => Error::call("advise the mapping", errno),
            })?;
        }
        Ok(())
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

/// The parts of the file that `plan` maps.
fn parts(plan: &Plan) -> Vec<Part> {
    let page = page_size();
    let part = |start: PageCount, offset: PageIndex, pages: PageCount, protection| Part {
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
    let Mapping { offset, pages, executable, .. } = plan.mapping;
    if plan.segments.is_empty() {
        return vec![part(PageCount(0), offset, pages, with(plan.stores(), executable))];
    }
    let segments = plan.segments.iter().map(|segment| {
        let protection = with(segment.writable, segment.executable);
        part(segment.start, segment.offset, segment.pages, protection)
    });
    segments.collect()
}

/// Why the file could not be mapped.
fn refused(path: &Path, protection: ProtFlags, errno: Errno) -> Error {
    if errno == Errno::PERM && protection.contains(ProtFlags::EXEC) {
        return Error::unavailable(
            format!("an executable mapping of '{}'", path.display()),
            "its filesystem is mounted noexec: name a directory elsewhere in TMPDIR",
        );
    }
    Error::os("map", path, errno)
}

/// Opens the plan's file and checks that the mapping lies inside it.
pub(super) fn open(plan: &Plan) -> Result<File, Error> {
    // The pieces of a shared mapping can be made writable only if the file is.
    let writable = |split: filemap_core::address::mapping::Split| split.prot == SplitProt::Write;
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
    let ends = plan.segments.iter().map(|segment| segment.range().end.0);
    let mapping = plan.mapping.offset.0.saturating_add(plan.mapping.pages.0);
    let pages = ends.max().unwrap_or(mapping);
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
