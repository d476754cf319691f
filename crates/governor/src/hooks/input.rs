//! Calls that read from files, and advice on them.

use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, off64_t, size_t, ssize_t};

use super::output::bytes;
use super::vectors::{from_int, parts};
use crate::next::next;
use crate::purpose::{self, all_written_by_kernel, written_by_kernel};

/// Tells of what was read, if anything was, and returns the call's result.
fn told(descriptor: c_int, offset: Option<i64>, result: ssize_t) -> ssize_t {
    if let Some(length) = u64::try_from(result).ok().filter(|length| *length > 0) {
        let offset = offset.and_then(|offset| u64::try_from(offset).ok());
        purpose::has_read(descriptor, offset, length);
    }
    result
}

/// read(2).
///
/// # Safety
/// That of read(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn read(
    descriptor: c_int,
    buffer: *mut c_void,
    length: size_t,
) -> ssize_t {
    purpose::reading(descriptor);
    let result = written_by_kernel(bytes(buffer, length), || {
        next!(
            c"read",
            unsafe extern "C-unwind" fn(c_int, *mut c_void, size_t) -> ssize_t;
            descriptor, buffer, length
        )
    });
    told(descriptor, None, result)
}

/// pread(2).
///
/// # Safety
/// That of pread(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pread(
    descriptor: c_int,
    buffer: *mut c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    purpose::reading(descriptor);
    let result = written_by_kernel(bytes(buffer, length), || {
        next!(
            c"pread",
            unsafe extern "C-unwind" fn(c_int, *mut c_void, size_t, off_t) -> ssize_t;
            descriptor, buffer, length, offset
        )
    });
    told(descriptor, Some(offset), result)
}

/// pread64(3).
///
/// # Safety
/// That of pread(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pread64(
    descriptor: c_int,
    buffer: *mut c_void,
    length: size_t,
    offset: off64_t,
) -> ssize_t {
    purpose::reading(descriptor);
    let result = written_by_kernel(bytes(buffer, length), || {
        next!(
            c"pread64",
            unsafe extern "C-unwind" fn(c_int, *mut c_void, size_t, off64_t) -> ssize_t;
            descriptor, buffer, length, offset
        )
    });
    told(descriptor, Some(offset), result)
}

/// read(2), as programs call it that are built with _FORTIFY_SOURCE.
///
/// # Safety
/// That of read(2); the buffer has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __read_chk(
    descriptor: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
) -> ssize_t {
    purpose::reading(descriptor);
    let result = written_by_kernel(bytes(buffer, length), || {
        next!(
            c"__read_chk",
            unsafe extern "C-unwind" fn(c_int, *mut c_void, size_t, size_t) -> ssize_t;
            descriptor, buffer, length, room
        )
    });
    told(descriptor, None, result)
}

/// pread(2), as programs call it that are built with _FORTIFY_SOURCE.
///
/// # Safety
/// That of pread(2); the buffer has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __pread_chk(
    descriptor: c_int,
    buffer: *mut c_void,
    length: size_t,
    offset: off_t,
    room: size_t,
) -> ssize_t {
    purpose::reading(descriptor);
    let result = written_by_kernel(bytes(buffer, length), || {
        next!(
            c"__pread_chk",
            unsafe extern "C-unwind" fn(c_int, *mut c_void, size_t, off_t, size_t) -> ssize_t;
            descriptor, buffer, length, offset, room
        )
    });
    told(descriptor, Some(offset), result)
}

/// pread64(3), as programs call it that are built with _FORTIFY_SOURCE.
///
/// # Safety
/// That of pread(2); the buffer has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __pread64_chk(
    descriptor: c_int,
    buffer: *mut c_void,
    length: size_t,
    offset: off64_t,
    room: size_t,
) -> ssize_t {
    purpose::reading(descriptor);
    let result = written_by_kernel(bytes(buffer, length), || {
        next!(
            c"__pread64_chk",
            unsafe extern "C-unwind" fn(c_int, *mut c_void, size_t, off64_t, size_t) -> ssize_t;
            descriptor, buffer, length, offset, room
        )
    });
    told(descriptor, Some(offset), result)
}

/// readv(2).
///
/// # Safety
/// That of readv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readv(
    descriptor: c_int,
    vector: *const iovec,
    count: c_int,
) -> ssize_t {
    purpose::reading(descriptor);
    // SAFETY: the caller's contract.
    let parts = unsafe { parts(vector, from_int(count)) };
    let result = all_written_by_kernel(parts, || {
        next!(
            c"readv",
            unsafe extern "C-unwind" fn(c_int, *const iovec, c_int) -> ssize_t;
            descriptor, vector, count
        )
    });
    told(descriptor, None, result)
}

/// preadv(2).
///
/// # Safety
/// That of preadv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn preadv(
    descriptor: c_int,
    vector: *const iovec,
    count: c_int,
    offset: off_t,
) -> ssize_t {
    purpose::reading(descriptor);
    // SAFETY: the caller's contract.
    let parts = unsafe { parts(vector, from_int(count)) };
    let result = all_written_by_kernel(parts, || {
        next!(
            c"preadv",
            unsafe extern "C-unwind" fn(c_int, *const iovec, c_int, off_t) -> ssize_t;
            descriptor, vector, count, offset
        )
    });
    told(descriptor, Some(offset), result)
}

/// preadv64(3).
///
/// # Safety
/// That of preadv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn preadv64(
    descriptor: c_int,
    vector: *const iovec,
    count: c_int,
    offset: off64_t,
) -> ssize_t {
    purpose::reading(descriptor);
    // SAFETY: the caller's contract.
    let parts = unsafe { parts(vector, from_int(count)) };
    let result = all_written_by_kernel(parts, || {
        next!(
            c"preadv64",
            unsafe extern "C-unwind" fn(c_int, *const iovec, c_int, off64_t) -> ssize_t;
            descriptor, vector, count, offset
        )
    });
    told(descriptor, Some(offset), result)
}

/// Whether the kernel is to hear of an advice. It refuses a part with a negative number.
fn is_heard(descriptor: c_int, offset: i64, length: i64, advice: c_int) -> bool {
    match (u64::try_from(offset), u64::try_from(length)) {
        (Ok(offset), Ok(length)) => purpose::advising_file(descriptor, offset, length, advice),
        _ => true,
    }
}

/// posix_fadvise(3).
///
/// # Safety
/// That of posix_fadvise(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_fadvise(
    descriptor: c_int,
    offset: off_t,
    length: off_t,
    advice: c_int,
) -> c_int {
    if !is_heard(descriptor, offset, length, advice) {
        return 0;
    }
    next!(
        c"posix_fadvise",
        unsafe extern "C-unwind" fn(c_int, off_t, off_t, c_int) -> c_int;
        descriptor, offset, length, advice
    )
}

/// posix_fadvise64(3).
///
/// # Safety
/// That of posix_fadvise(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_fadvise64(
    descriptor: c_int,
    offset: off64_t,
    length: off64_t,
    advice: c_int,
) -> c_int {
    if !is_heard(descriptor, offset, length, advice) {
        return 0;
    }
    next!(
        c"posix_fadvise64",
        unsafe extern "C-unwind" fn(c_int, off64_t, off64_t, c_int) -> c_int;
        descriptor, offset, length, advice
    )
}

/// readahead(2).
///
/// # Safety
/// That of readahead(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readahead(
    descriptor: c_int,
    offset: off64_t,
    length: size_t,
) -> ssize_t {
    let from = u64::try_from(offset);
    if from.is_ok_and(|from| !purpose::reading_ahead(descriptor, from, length as u64)) {
        return 0;
    }
    next!(
        c"readahead",
        unsafe extern "C-unwind" fn(c_int, off64_t, size_t) -> ssize_t;
        descriptor, offset, length
    )
}
