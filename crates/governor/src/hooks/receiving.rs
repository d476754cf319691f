//! Calls by which the kernel fills the program's memory, other than with the contents of files.

use std::ffi::{c_int, c_uint, c_ulong, c_void};

use libc::{FILE, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use super::output::bytes;
use super::vectors::parts_of;
use crate::next::next;
use crate::purpose::{all_written_by_kernel, open_to_kernel, written_by_kernel};

/// recv(2).
///
/// # Safety
/// That of recv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recv(
    socket: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    written_by_kernel(bytes(buffer, length), || {
        next!(
            c"recv",
            unsafe extern "C-unwind" fn(c_int, *mut c_void, size_t, c_int) -> ssize_t;
            socket, buffer, length, flags
        )
    })
}

/// recvfrom(2).
///
/// # Safety
/// That of recvfrom(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvfrom(
    socket: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    written_by_kernel(bytes(buffer, length), || {
        next!(
            c"recvfrom",
            unsafe extern "C-unwind" fn(
                c_int,
                *mut c_void,
                size_t,
                c_int,
                *mut sockaddr,
                *mut socklen_t,
            ) -> ssize_t;
            socket, buffer, length, flags, from, from_length
        )
    })
}

/// recvmsg(2).
///
/// # Safety
/// That of recvmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(
    socket: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's contract.
    let parts = unsafe { parts_of(message) };
    all_written_by_kernel(parts, || {
        next!(
            c"recvmsg",
            unsafe extern "C-unwind" fn(c_int, *mut msghdr, c_int) -> ssize_t;
            socket, message, flags
        )
    })
}

/// getrandom(2).
///
/// # Safety
/// That of getrandom(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getrandom(
    buffer: *mut c_void,
    length: size_t,
    flags: c_uint,
) -> ssize_t {
    written_by_kernel(bytes(buffer, length), || {
        next!(
            c"getrandom",
            unsafe extern "C-unwind" fn(*mut c_void, size_t, c_uint) -> ssize_t;
            buffer, length, flags
        )
    })
}

/// fread(3), which reads large buffers to where they are.
///
/// # Safety
/// That of fread(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fread(
    buffer: *mut c_void,
    size: size_t,
    count: size_t,
    stream: *mut FILE,
) -> size_t {
    written_by_kernel(bytes(buffer, size.saturating_mul(count)), || {
        next!(
            c"fread",
            unsafe extern "C-unwind" fn(*mut c_void, size_t, size_t, *mut FILE) -> size_t;
            buffer, size, count, stream
        )
    })
}

/// fread_unlocked(3).
///
/// # Safety
/// That of fread_unlocked(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fread_unlocked(
    buffer: *mut c_void,
    size: size_t,
    count: size_t,
    stream: *mut FILE,
) -> size_t {
    written_by_kernel(bytes(buffer, size.saturating_mul(count)), || {
        next!(
            c"fread_unlocked",
            unsafe extern "C-unwind" fn(*mut c_void, size_t, size_t, *mut FILE) -> size_t;
            buffer, size, count, stream
        )
    })
}

/// ioctl(2). Callers leave out what the request does not take.
///
/// # Safety
/// That of ioctl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ioctl(
    descriptor: c_int,
    request: c_ulong,
    argument: *mut c_void,
) -> c_int {
    open_to_kernel(|| {
        next!(
            c"ioctl",
            unsafe extern "C-unwind" fn(c_int, c_ulong, *mut c_void) -> c_int;
            descriptor, request, argument
        )
    })
}
