//! Calls that wait with another mask of signals: while they wait, SIGTRAP is blocked or not as the
//! program believes.

use std::ffi::c_int;

use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec};

use crate::disposition::with_true_mask;
use crate::next::next;

/// sigsuspend(2).
///
/// # Safety
/// That of sigsuspend(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigsuspend(mask: *const sigset_t) -> c_int {
    with_true_mask(
        || next!(c"sigsuspend", unsafe extern "C-unwind" fn(*const sigset_t) -> c_int; mask),
    )
}

/// ppoll(2).
///
/// # Safety
/// That of ppoll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ppoll(
    descriptors: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    with_true_mask(|| {
        next!(
            c"ppoll",
            unsafe extern "C-unwind" fn(
                *mut pollfd,
                nfds_t,
                *const timespec,
                *const sigset_t,
            ) -> c_int;
            descriptors, count, limit, mask
        )
    })
}

/// ppoll(2) as programs call it that were compiled to check sizes.
///
/// # Safety
/// That of ppoll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __ppoll_chk(
    descriptors: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
    bytes: size_t,
) -> c_int {
    with_true_mask(|| {
        next!(
            c"__ppoll_chk",
            unsafe extern "C-unwind" fn(
                *mut pollfd,
                nfds_t,
                *const timespec,
                *const sigset_t,
                size_t,
            ) -> c_int;
            descriptors, count, limit, mask, bytes
        )
    })
}

/// pselect(2).
///
/// # Safety
/// That of pselect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pselect(
    end: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    with_true_mask(|| {
        next!(
            c"pselect",
            unsafe extern "C-unwind" fn(
                c_int,
                *mut fd_set,
                *mut fd_set,
                *mut fd_set,
                *const timespec,
                *const sigset_t,
            ) -> c_int;
            end, read, write, except, limit, mask
        )
    })
}

/// epoll_pwait(2).
///
/// # Safety
/// That of epoll_pwait(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait(
    descriptor: c_int,
    events: *mut epoll_event,
    most: c_int,
    limit: c_int,
    mask: *const sigset_t,
) -> c_int {
    with_true_mask(|| {
        next!(
            c"epoll_pwait",
            unsafe extern "C-unwind" fn(
                c_int,
                *mut epoll_event,
                c_int,
                c_int,
                *const sigset_t,
            ) -> c_int;
            descriptor, events, most, limit, mask
        )
    })
}

/// epoll_pwait2(2).
///
/// # Safety
/// That of epoll_pwait2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait2(
    descriptor: c_int,
    events: *mut epoll_event,
    most: c_int,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    with_true_mask(|| {
        next!(
            c"epoll_pwait2",
            unsafe extern "C-unwind" fn(
                c_int,
                *mut epoll_event,
                c_int,
                *const timespec,
                *const sigset_t,
            ) -> c_int;
            descriptor, events, most, limit, mask
        )
    })
}
