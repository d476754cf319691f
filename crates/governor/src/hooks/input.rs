//! Calls that read from files, and advice on them.

use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, off64_t, size_t, ssize_t};

use crate::next::next;
use crate::purpose;

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
    let result = next!(
        c"read",
        unsafe extern "C-unwind" fn(c_int, *mut c_void, size_t) -> ssize_t;
        descriptor, buffer, length
    );
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
    let result = next!(
        c"pread",
        unsafe extern "C-unwind" fn(c_int, *mut c_void, size_t, off_t) -> ssize_t;
        descriptor, buffer, length, offset
    );
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
    let result = next!(
        c"pread64",
        unsafe extern "C-unwind" fn(c_int, *mut c_void, size_t, off64_t) -> ssize_t;
        descriptor, buffer, length, offset
    );
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
    let result = next!(
        c"readv",
        unsafe extern "C-unwind" fn(c_int, *const iovec, c_int) -> ssize_t;
        descriptor, vector, count
    );
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
    let result = next!(
        c"preadv",
        unsafe extern "C-unwind" fn(c_int, *const iovec, c_int, off_t) -> ssize_t;
        descriptor, vector, count, offset
    );
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
    let result = next!(
        c"preadv64",
        unsafe extern "C-unwind" fn(c_int, *const iovec, c_int, off64_t) -> ssize_t;
        descriptor, vector, count, offset
    );
    told(descriptor, Some(offset), result)
}

/// Where a part of a file begins, and how long it is, as the kernel understands it.
fn part(offset: i64, length: i64) -> (u64, u64) {
    (u64::try_from(offset).unwrap_or(0), u64::try_from(length).unwrap_or(0))
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
    let (from, bytes) = part(offset, length);
    if !purpose::advising_file(descriptor, from, bytes, advice) {
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
    let (from, bytes) = part(offset, length);
    if !purpose::advising_file(descriptor, from, bytes, advice) {
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
    let from = u64::try_from(offset).unwrap_or(0);
    if !purpose::reading_ahead(descriptor, from, length as u64) {
        return 0;
    }
    next!(
        c"readahead",
        unsafe extern "C-unwind" fn(c_int, off64_t, size_t) -> ssize_t;
        descriptor, offset, length
    )
}
