//! Calls that wait with another mask of signals, and calls by which another program gets the mask
//! of this one. Both need the mask that the program believes to have.

use std::ffi::{c_char, c_int};

use libc::{epoll_event, fd_set, nfds_t, pid_t, pollfd, sigset_t, timespec};

use crate::disposition::with_true_mask;
use crate::next::next;

/// sigsuspend(2).
///
/// # Safety
/// That of sigsuspend(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigsuspend(mask: *const sigset_t) -> c_int {
    with_true_mask(|| next!(c"sigsuspend", unsafe extern "C" fn(*const sigset_t) -> c_int; mask))
}

/// ppoll(2).
///
/// # Safety
/// That of ppoll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    descriptors: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    with_true_mask(|| {
        next!(
            c"ppoll",
            unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;
            descriptors, count, limit, mask
        )
    })
}

/// pselect(2).
///
/// # Safety
/// That of pselect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
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
            unsafe extern "C" fn(
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
pub unsafe extern "C" fn epoll_pwait(
    descriptor: c_int,
    events: *mut epoll_event,
    most: c_int,
    limit: c_int,
    mask: *const sigset_t,
) -> c_int {
    with_true_mask(|| {
        next!(
            c"epoll_pwait",
            unsafe extern "C" fn(
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

/// A list of words that a null pointer ends.
type Words = *const *const c_char;

/// execve(2).
///
/// # Safety
/// That of execve(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, words: Words, environment: Words) -> c_int {
    with_true_mask(|| {
        next!(
            c"execve",
            unsafe extern "C" fn(*const c_char, Words, Words) -> c_int;
            path, words, environment
        )
    })
}

/// execv(3).
///
/// # Safety
/// That of execv(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, words: Words) -> c_int {
    with_true_mask(
        || next!(c"execv", unsafe extern "C" fn(*const c_char, Words) -> c_int; path, words),
    )
}

/// execvp(3).
///
/// # Safety
/// That of execvp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, words: Words) -> c_int {
    with_true_mask(
        || next!(c"execvp", unsafe extern "C" fn(*const c_char, Words) -> c_int; file, words),
    )
}

/// execvpe(3).
///
/// # Safety
/// That of execvpe(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, words: Words, environment: Words) -> c_int {
    with_true_mask(|| {
        next!(
            c"execvpe",
            unsafe extern "C" fn(*const c_char, Words, Words) -> c_int;
            file, words, environment
        )
    })
}

/// fexecve(3).
///
/// # Safety
/// That of fexecve(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(descriptor: c_int, words: Words, environment: Words) -> c_int {
    with_true_mask(|| {
        next!(
            c"fexecve",
            unsafe extern "C" fn(c_int, Words, Words) -> c_int;
            descriptor, words, environment
        )
    })
}

type Actions = *const libc::posix_spawn_file_actions_t;
type Attributes = *const libc::posix_spawnattr_t;
type Spawn =
    unsafe extern "C" fn(*mut pid_t, *const c_char, Actions, Attributes, Words, Words) -> c_int;

/// posix_spawn(3).
///
/// # Safety
/// That of posix_spawn(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    child: *mut pid_t,
    path: *const c_char,
    actions: Actions,
    attributes: Attributes,
    words: Words,
    environment: Words,
) -> c_int {
    with_true_mask(
        || next!(c"posix_spawn", Spawn; child, path, actions, attributes, words, environment),
    )
}

/// posix_spawnp(3).
///
/// # Safety
/// That of posix_spawnp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    child: *mut pid_t,
    file: *const c_char,
    actions: Actions,
    attributes: Attributes,
    words: Words,
    environment: Words,
) -> c_int {
    with_true_mask(
        || next!(c"posix_spawnp", Spawn; child, file, actions, attributes, words, environment),
    )
}
