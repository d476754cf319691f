//! Calls that wait with another mask of signals: while they wait, the shared signal is blocked or
//! not as the program believes. One that must not be blocked truly is not: handlers of others run
//! meanwhile.

use std::ffi::c_int;

use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec};

use super::mask::{has, marked};
use crate::disposition::{self, with_true_mask};
use crate::next::next;

/// Runs `call`, which waits with the mask that it is given in place of the program's.
///
/// # Safety
/// The mask is null or valid.
unsafe fn with_mask<R>(mask: *const sigset_t, call: impl FnOnce(*const sigset_t) -> R) -> R {
    if !disposition::is_installed() || !disposition::is_forced() {
        return with_true_mask(|| call(mask));
    }
    // SAFETY: the caller's contract.
    match unsafe { mask.as_ref() } {
        // A handler of another signal may touch what is protected while this waits.
        Some(wanted) if has(wanted, disposition::signal()) => {
            call(&marked(libc::SIG_SETMASK, wanted))
        }
        Some(_) => with_true_mask(|| call(mask)),
        None => call(mask),
    }
}

/// sigsuspend(2).
///
/// # Safety
/// That of sigsuspend(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigsuspend(mask: *const sigset_t) -> c_int {
    let wait =
        |mask| next!(c"sigsuspend", unsafe extern "C-unwind" fn(*const sigset_t) -> c_int; mask);
    // SAFETY: the caller's contract.
    unsafe { with_mask(mask, wait) }
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
    let wait = |mask| {
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
    };
    // SAFETY: the caller's contract.
    unsafe { with_mask(mask, wait) }
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
    let wait = |mask| {
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
    };
    // SAFETY: the caller's contract.
    unsafe { with_mask(mask, wait) }
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
    let wait = |mask| {
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
    };
    // SAFETY: the caller's contract.
    unsafe { with_mask(mask, wait) }
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
    let wait = |mask| {
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
    };
    // SAFETY: the caller's contract.
    unsafe { with_mask(mask, wait) }
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
    let wait = |mask| {
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
    };
    // SAFETY: the caller's contract.
    unsafe { with_mask(mask, wait) }
}
