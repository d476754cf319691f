//! Calls that hand several parts of the program's memory to the kernel at once.

use std::ffi::{c_int, c_uint};
use std::ops::Range;

use libc::{iovec, mmsghdr, msghdr, off_t, off64_t, size_t, ssize_t};

use crate::next::next;
use crate::purpose::{all_read_by_kernel, is_told_of_reads};

/// The most parts of a vector, and the most messages, that are looked at: as many as the kernel
/// takes.
const MOST: usize = 1024;

/// The parts of a vector of `count`, if it is one that the kernel takes. Where nobody is
/// told it is not looked at.
///
/// # Safety
/// There are as many while the parts are used.
pub unsafe fn parts(
    vector: *const iovec,
    count: size_t,
) -> impl Iterator<Item = Range<usize>> + Clone {
    let is_one = count <= MOST && !vector.is_null() && vector.is_aligned() && is_told_of_reads();
    let count = if is_one { count } else { 0 };
    (0..count).map(move |number| {
        // SAFETY: the caller says that there are as many.
        let part = unsafe { vector.add(number).read() };
        part.iov_base.addr()..part.iov_base.addr().saturating_add(part.iov_len)
    })
}

/// The parts of a message.
///
/// # Safety
/// It is one, or null, while the parts are used.
pub unsafe fn parts_of(message: *const msghdr) -> impl Iterator<Item = Range<usize>> + Clone {
    let is_one = !message.is_null() && message.is_aligned() && is_told_of_reads();
    // SAFETY: the caller says that it is one.
    let message = is_one.then(|| unsafe { message.read() });
    message.into_iter().flat_map(|message| {
        // SAFETY: the same of what it points to.
        unsafe { parts(message.msg_iov, message.msg_iovlen) }
    })
}

/// What is no number of parts is too many.
pub fn from_int(count: c_int) -> size_t {
    size_t::try_from(count).unwrap_or(size_t::MAX)
}

/// writev(2).
///
/// # Safety
/// That of writev(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn writev(
    descriptor: c_int,
    vector: *const iovec,
    count: c_int,
) -> ssize_t {
    // SAFETY: the caller's contract.
    let parts = unsafe { parts(vector, from_int(count)) };
    all_read_by_kernel(parts, || {
        next!(
            c"writev",
            unsafe extern "C-unwind" fn(
                c_int,
                *const iovec,
                c_int,
            ) -> ssize_t;
            descriptor, vector, count
        )
    })
}

/// pwritev(2).
///
/// # Safety
/// That of pwritev(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev(
    descriptor: c_int,
    vector: *const iovec,
    count: c_int,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller's contract.
    let parts = unsafe { parts(vector, from_int(count)) };
    all_read_by_kernel(parts, || {
        next!(
            c"pwritev",
            unsafe extern "C-unwind" fn(
                c_int,
                *const iovec,
                c_int,
                off_t,
            ) -> ssize_t;
            descriptor, vector, count, offset
        )
    })
}

/// pwritev64(3).
///
/// # Safety
/// That of pwritev64(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev64(
    descriptor: c_int,
    vector: *const iovec,
    count: c_int,
    offset: off64_t,
) -> ssize_t {
    // SAFETY: the caller's contract.
    let parts = unsafe { parts(vector, from_int(count)) };
    all_read_by_kernel(parts, || {
        next!(
            c"pwritev64",
            unsafe extern "C-unwind" fn(
                c_int,
                *const iovec,
                c_int,
                off64_t,
            ) -> ssize_t;
            descriptor, vector, count, offset
        )
    })
}

/// pwritev2(2).
///
/// # Safety
/// That of pwritev2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev2(
    descriptor: c_int,
    vector: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's contract.
    let parts = unsafe { parts(vector, from_int(count)) };
    all_read_by_kernel(parts, || {
        next!(
            c"pwritev2",
            unsafe extern "C-unwind" fn(
                c_int,
                *const iovec,
                c_int,
                off_t,
                c_int,
            ) -> ssize_t;
            descriptor, vector, count, offset, flags
        )
    })
}

/// pwritev64v2(3).
///
/// # Safety
/// That of pwritev64v2(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev64v2(
    descriptor: c_int,
    vector: *const iovec,
    count: c_int,
    offset: off64_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's contract.
    let parts = unsafe { parts(vector, from_int(count)) };
    all_read_by_kernel(parts, || {
        next!(
            c"pwritev64v2",
            unsafe extern "C-unwind" fn(
                c_int,
                *const iovec,
                c_int,
                off64_t,
                c_int,
            ) -> ssize_t;
            descriptor, vector, count, offset, flags
        )
    })
}

/// vmsplice(2).
///
/// # Safety
/// That of vmsplice(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vmsplice(
    descriptor: c_int,
    vector: *const iovec,
    count: size_t,
    flags: c_uint,
) -> ssize_t {
    // SAFETY: the caller's contract.
    let parts = unsafe { parts(vector, count) };
    all_read_by_kernel(parts, || {
        next!(
            c"vmsplice",
            unsafe extern "C-unwind" fn(
                c_int,
                *const iovec,
                size_t,
                c_uint,
            ) -> ssize_t;
            descriptor, vector, count, flags
        )
    })
}

/// sendmsg(2).
///
/// # Safety
/// That of sendmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(
    socket: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's contract.
    let parts = unsafe { parts_of(message) };
    all_read_by_kernel(parts, || {
        next!(
            c"sendmsg",
            unsafe extern "C-unwind" fn(c_int, *const msghdr, c_int) -> ssize_t;
            socket, message, flags
        )
    })
}

/// sendmmsg(2).
///
/// # Safety
/// That of sendmmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmmsg(
    socket: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    let is_one = !messages.is_null() && messages.is_aligned() && is_told_of_reads();
    // The kernel takes the first ones of too many.
    let known = if is_one { (count as usize).min(MOST) } else { 0 };
    let parts = (0..known).flat_map(|number| {
        // SAFETY: the caller says that there are as many.
        unsafe { parts_of(&raw const (*messages.add(number)).msg_hdr) }
    });
    all_read_by_kernel(parts, || {
        next!(
            c"sendmmsg",
            unsafe extern "C-unwind" fn(c_int, *mut mmsghdr, c_uint, c_int) -> c_int;
            socket, messages, count, flags
        )
    })
}
