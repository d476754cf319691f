//! Mappings: mmap(2) and its relatives.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;

use libc::{off_t, off64_t, size_t};

use crate::next::next;
use crate::purpose::{self, Mapped};
use crate::start;

/// The pages that hold `length` bytes from `address` on.
fn pages(address: *mut c_void, length: size_t) -> Range<usize> {
    let page = start::page_size();
    let start = address.addr() / page * page;
    let end = address.addr().saturating_add(length).checked_next_multiple_of(page);
    start..end.unwrap_or(usize::MAX)
}

fn noted(address: *mut c_void, new: (size_t, c_int, c_int, c_int), offset: i64) -> *mut c_void {
    let (length, protection, flags, descriptor) = new;
    if address != libc::MAP_FAILED {
        let range = pages(address, length);
        // The handler makes pointers of the program's addresses.
        address.expose_provenance();
        let offset_bytes = offset.cast_unsigned();
        purpose::mapped(&Mapped { range, protection, flags, descriptor, offset_bytes });
    }
    address
}

/// Tells of what a new mapping takes the place of.
fn mapping_over(address: *mut c_void, length: size_t, flags: c_int) {
    if flags & libc::MAP_FIXED != 0 && length > 0 {
        purpose::mapping_over(&pages(address, length));
    }
}

/// mmap(2).
///
/// # Safety
/// That of mmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mmap(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: off_t,
) -> *mut c_void {
    mapping_over(address, length, flags);
    let made = next!(
        c"mmap",
        unsafe extern "C-unwind" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;
        address, length, protection, flags, descriptor, offset
    );
    noted(made, (length, protection, flags, descriptor), offset)
}

/// mmap64(3).
///
/// # Safety
/// That of mmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mmap64(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: off64_t,
) -> *mut c_void {
    mapping_over(address, length, flags);
    let made = next!(
        c"mmap64",
        unsafe extern "C-unwind" fn(
            *mut c_void,
            size_t,
            c_int,
            c_int,
            c_int,
            off64_t,
        ) -> *mut c_void;
        address, length, protection, flags, descriptor, offset
    );
    noted(made, (length, protection, flags, descriptor), offset)
}

/// munmap(2).
///
/// # Safety
/// That of munmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    // Another thread may map something there as soon as it is free, so that this is told first.
    let range = pages(address, length);
    let is_told = address.addr() == range.start && length > 0 && purpose::unmapping(&range);
    let result = next!(
        c"munmap",
        unsafe extern "C-unwind" fn(*mut c_void, size_t) -> c_int;
        address, length
    );
    if result != 0 && is_told {
        purpose::not_unmapped(&range);
    }
    result
}

/// mremap(2). Callers leave out `to` where `flags` do not ask for it.
///
/// # Safety
/// That of mremap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mremap(
    address: *mut c_void,
    length: size_t,
    new_length: size_t,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    // Without a length nothing moves: the same pages get a second mapping.
    let from = if length == 0 { address.addr()..address.addr() } else { pages(address, length) };
    let is_fixed = flags & libc::MREMAP_FIXED != 0 && new_length > 0;
    let onto = if is_fixed { pages(to, new_length) } else { 0..0 };
    let moving = purpose::moving(from, &onto);
    let made = next!(
        c"mremap",
        unsafe extern "C-unwind" fn(*mut c_void, size_t, size_t, c_int, *mut c_void) -> *mut c_void;
        address, length, new_length, flags, to
    );
    if made == libc::MAP_FAILED {
        purpose::not_moved(moving);
        return made;
    }
    made.expose_provenance();
    purpose::moved(moving, pages(made, new_length));
    made
}

/// mprotect(2).
///
/// # Safety
/// That of mprotect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mprotect(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
) -> c_int {
    purpose::protect(&pages(address, length), protection, || {
        next!(
            c"mprotect",
            unsafe extern "C-unwind" fn(*mut c_void, size_t, c_int) -> c_int;
            address, length, protection
        )
    })
}

/// Gives advice by `call`, where the kernel is to hear of it. It refuses what does not begin with a
/// page.
fn given(
    address: *mut c_void,
    length: size_t,
    advice: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let range = pages(address, length);
    if address.addr() == range.start { purpose::advise(&range, advice, call) } else { call() }
}

/// madvise(2).
///
/// # Safety
/// That of madvise(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn madvise(
    address: *mut c_void,
    length: size_t,
    advice: c_int,
) -> c_int {
    given(address, length, advice, || {
        next!(
            c"madvise",
            unsafe extern "C-unwind" fn(*mut c_void, size_t, c_int) -> c_int;
            address, length, advice
        )
    })
}

/// posix_madvise(3), whose advice has the same numbers.
///
/// # Safety
/// That of posix_madvise(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_madvise(
    address: *mut c_void,
    length: size_t,
    advice: c_int,
) -> c_int {
    given(address, length, advice, || {
        next!(
            c"posix_madvise",
            unsafe extern "C-unwind" fn(*mut c_void, size_t, c_int) -> c_int;
            address, length, advice
        )
    })
}

/// mlock(2), which reads all pages.
///
/// # Safety
/// That of mlock(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mlock(address: *const c_void, length: size_t) -> c_int {
    purpose::locked(pages(address.cast_mut(), length), || {
        next!(
            c"mlock",
            unsafe extern "C-unwind" fn(*const c_void, size_t) -> c_int;
            address, length
        )
    })
}

/// mlock2(2).
///
/// # Safety
/// That of mlock2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mlock2(
    address: *const c_void,
    length: size_t,
    flags: libc::c_uint,
) -> c_int {
    purpose::locked(pages(address.cast_mut(), length), || {
        next!(
            c"mlock2",
            unsafe extern "C-unwind" fn(*const c_void, size_t, libc::c_uint) -> c_int;
            address, length, flags
        )
    })
}

/// mlockall(2).
///
/// # Safety
/// That of mlockall(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mlockall(flags: c_int) -> c_int {
    let is_now = flags & libc::MCL_CURRENT != 0;
    let everything = if is_now { pages(ptr::null_mut(), usize::MAX) } else { 0..0 };
    purpose::locked(
        everything,
        || next!(c"mlockall", unsafe extern "C-unwind" fn(c_int) -> c_int; flags),
    )
}
