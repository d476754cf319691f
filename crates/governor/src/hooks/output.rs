//! Calls that hand the program's memory to the kernel. Where that is a mapping of a file, it is the
//! kernel that comes to pages that are missing, and no signal can report these.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;

use libc::{FILE, off_t, off64_t, size_t, sockaddr, socklen_t, ssize_t};

use crate::next::next;
use crate::purpose::{is_told_of_reads, read_by_kernel};

/// The bytes of a buffer.
pub fn bytes(buffer: *const c_void, length: size_t) -> Range<usize> {
    buffer.addr()..buffer.addr().saturating_add(length)
}

/// write(2).
///
/// # Safety
/// That of write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn write(
    descriptor: c_int,
    buffer: *const c_void,
    length: size_t,
) -> ssize_t {
    read_by_kernel(bytes(buffer, length), || {
        next!(
            c"write",
            unsafe extern "C-unwind" fn(c_int, *const c_void, size_t) -> ssize_t;
            descriptor, buffer, length
        )
    })
}

/// pwrite(2).
///
/// # Safety
/// That of pwrite(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwrite(
    descriptor: c_int,
    buffer: *const c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    read_by_kernel(bytes(buffer, length), || {
        next!(
            c"pwrite",
            unsafe extern "C-unwind" fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
            descriptor, buffer, length, offset
        )
    })
}

/// pwrite64(3).
///
/// # Safety
/// That of pwrite(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwrite64(
    descriptor: c_int,
    buffer: *const c_void,
    length: size_t,
    offset: off64_t,
) -> ssize_t {
    read_by_kernel(bytes(buffer, length), || {
        next!(
            c"pwrite64",
            unsafe extern "C-unwind" fn(c_int, *const c_void, size_t, off64_t) -> ssize_t;
            descriptor, buffer, length, offset
        )
    })
}

/// send(2).
///
/// # Safety
/// That of send(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn send(
    socket: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    read_by_kernel(bytes(buffer, length), || {
        next!(
            c"send",
            unsafe extern "C-unwind" fn(c_int, *const c_void, size_t, c_int) -> ssize_t;
            socket, buffer, length, flags
        )
    })
}

/// sendto(2).
///
/// # Safety
/// That of sendto(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendto(
    socket: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> ssize_t {
    read_by_kernel(bytes(buffer, length), || {
        next!(
            c"sendto",
            unsafe extern "C-unwind" fn(
                c_int,
                *const c_void,
                size_t,
                c_int,
                *const sockaddr,
                socklen_t,
            ) -> ssize_t;
            socket, buffer, length, flags, to, to_length
        )
    })
}

/// fwrite(3), which writes large buffers from where they are.
///
/// # Safety
/// That of fwrite(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fwrite(
    buffer: *const c_void,
    size: size_t,
    count: size_t,
    stream: *mut FILE,
) -> size_t {
    read_by_kernel(bytes(buffer, size.saturating_mul(count)), || {
        next!(
            c"fwrite",
            unsafe extern "C-unwind" fn(*const c_void, size_t, size_t, *mut FILE) -> size_t;
            buffer, size, count, stream
        )
    })
}

/// fwrite_unlocked(3).
///
/// # Safety
/// That of fwrite_unlocked(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fwrite_unlocked(
    buffer: *const c_void,
    size: size_t,
    count: size_t,
    stream: *mut FILE,
) -> size_t {
    read_by_kernel(bytes(buffer, size.saturating_mul(count)), || {
        next!(
            c"fwrite_unlocked",
            unsafe extern "C-unwind" fn(*const c_void, size_t, size_t, *mut FILE) -> size_t;
            buffer, size, count, stream
        )
    })
}

/// The bytes of a text. The C library reads it in any case.
///
/// # Safety
/// It ends with a zero.
unsafe fn bytes_of_text(text: *const c_char) -> Range<usize> {
    if !is_told_of_reads() || text.is_null() {
        return 0..0;
    }
    // SAFETY: the caller's contract.
    let length = unsafe { CStr::from_ptr(text) }.count_bytes();
    bytes(text.cast(), length)
}

/// fputs(3).
///
/// # Safety
/// That of fputs(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fputs(text: *const c_char, stream: *mut FILE) -> c_int {
    // SAFETY: the caller's contract.
    read_by_kernel(unsafe { bytes_of_text(text) }, || {
        next!(
            c"fputs",
            unsafe extern "C-unwind" fn(*const c_char, *mut FILE) -> c_int;
            text, stream
        )
    })
}

/// puts(3).
///
/// # Safety
/// That of puts(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn puts(text: *const c_char) -> c_int {
    // SAFETY: the caller's contract.
    read_by_kernel(
        unsafe { bytes_of_text(text) },
        || next!(c"puts", unsafe extern "C-unwind" fn(*const c_char) -> c_int; text),
    )
}
