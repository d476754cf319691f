//! Mappings: mmap(2) and its relatives.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;

use libc::{off_t, off64_t, size_t};

use crate::govern::{self, Mapped};
use crate::lending::lend;
use crate::next::next;
use crate::start;

/// Advice on what is read, and in which pages. The program's word on that stands.
const ON_READING: [c_int; 7] = [
    libc::MADV_NORMAL,
    libc::MADV_RANDOM,
    libc::MADV_SEQUENTIAL,
    libc::MADV_HUGEPAGE,
    libc::MADV_NOHUGEPAGE,
    libc::MADV_COLLAPSE,
    libc::MADV_POPULATE_READ,
];

/// The pages that hold `length` bytes from `address` on.
fn pages(address: *mut c_void, length: size_t) -> Range<usize> {
    let page = rustix::param::page_size();
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
        govern::mapped(&Mapped { range, protection, flags, offset_bytes }, descriptor);
    }
    address
}

/// mmap(2).
///
/// # Safety
/// That of mmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: off_t,
) -> *mut c_void {
    let made = next!(
        c"mmap",
        unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;
        address, length, protection, flags, descriptor, offset
    );
    noted(made, (length, protection, flags, descriptor), offset)
}

/// mmap64(3).
///
/// # Safety
/// That of mmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: off64_t,
) -> *mut c_void {
    let made = next!(
        c"mmap64",
        unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off64_t) -> *mut c_void;
        address, length, protection, flags, descriptor, offset
    );
    noted(made, (length, protection, flags, descriptor), offset)
}

/// munmap(2).
///
/// # Safety
/// That of munmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    // Another thread may map something there as soon as it is free, so that it is forgotten first.
    let range = pages(address, length);
    let is_forgotten = address.addr() == range.start && length > 0 && govern::forget(&range);
    let result = next!(
        c"munmap",
        unsafe extern "C" fn(*mut c_void, size_t) -> c_int;
        address, length
    );
    if result != 0 && is_forgotten {
        govern::left_in_place(&range);
    }
    result
}

/// mremap(2). Callers leave out `to` where `flags` do not ask for it.
///
/// # Safety
/// That of mremap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    length: size_t,
    new_length: size_t,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    // Without a length nothing moves: the same pages get a second mapping.
    let moving = if length == 0 { None } else { govern::lift(&pages(address, length)) };
    let made = next!(
        c"mremap",
        unsafe extern "C" fn(*mut c_void, size_t, size_t, c_int, *mut c_void) -> *mut c_void;
        address, length, new_length, flags, to
    );
    if made == libc::MAP_FAILED {
        if let Some(moving) = moving {
            govern::set_down(moving, pages(address, length));
        }
        return made;
    }
    made.expose_provenance();
    let now = pages(made, new_length);
    match moving {
        Some(moving) => govern::set_down(moving, now),
        None if length == 0 => govern::doubled(address.addr(), &now),
        None => govern::moved_unseen(&now),
    }
    made
}

/// mprotect(2). A mapping that may be written to or executed is none for a governor.
///
/// # Safety
/// That of mprotect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
) -> c_int {
    let result = next!(
        c"mprotect",
        unsafe extern "C" fn(*mut c_void, size_t, c_int) -> c_int;
        address, length, protection
    );
    if result == 0 && protection & (libc::PROT_WRITE | libc::PROT_EXEC) != 0 {
        govern::give_back(&pages(address, length));
    }
    result
}

/// The program is about to give an advice.
fn advising(range: &Range<usize>, advice: c_int) {
    if ON_READING.contains(&advice) {
        govern::give_back(range);
    }
}

/// madvise(2).
///
/// # Safety
/// That of madvise(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, length: size_t, advice: c_int) -> c_int {
    advising(&pages(address, length), advice);
    next!(
        c"madvise",
        unsafe extern "C" fn(*mut c_void, size_t, c_int) -> c_int;
        address, length, advice
    )
}

/// posix_madvise(3), whose advice has the same numbers.
///
/// # Safety
/// That of posix_madvise(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_madvise(
    address: *mut c_void,
    length: size_t,
    advice: c_int,
) -> c_int {
    advising(&pages(address, length), advice);
    next!(
        c"posix_madvise",
        unsafe extern "C" fn(*mut c_void, size_t, c_int) -> c_int;
        address, length, advice
    )
}

/// mlock(2), which reads all pages.
///
/// # Safety
/// That of mlock(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(address: *const c_void, length: size_t) -> c_int {
    lend(pages(address.cast_mut(), length), || {
        next!(
            c"mlock",
            unsafe extern "C" fn(*const c_void, size_t) -> c_int;
            address, length
        )
    })
}

/// mlock2(2).
///
/// # Safety
/// That of mlock2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(
    address: *const c_void,
    length: size_t,
    flags: libc::c_uint,
) -> c_int {
    lend(pages(address.cast_mut(), length), || {
        next!(
            c"mlock2",
            unsafe extern "C" fn(*const c_void, size_t, libc::c_uint) -> c_int;
            address, length, flags
        )
    })
}

/// mlockall(2).
///
/// # Safety
/// That of mlockall(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    let everything = match start::running() {
        Some(_) if flags & libc::MCL_CURRENT != 0 => pages(ptr::null_mut(), usize::MAX),
        _ => 0..0,
    };
    lend(everything, || next!(c"mlockall", unsafe extern "C" fn(c_int) -> c_int; flags))
}
