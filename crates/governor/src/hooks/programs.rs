//! Calls by which another program gets the mask of this one. It has to be the mask that this
//! program believes to have.
//!
//! execl(3) and its kin take any number of words, which no Rust function can: what they start finds
//! the mask as it is.

use std::ffi::{c_char, c_int};

use libc::{FILE, pid_t};

use crate::disposition::with_true_mask;
use crate::next::next;

/// A list of words that a null pointer ends.
type Words = *const *const c_char;

/// execve(2).
///
/// # Safety
/// That of execve(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execve(
    path: *const c_char,
    words: Words,
    environment: Words,
) -> c_int {
    with_true_mask(|| {
        next!(
            c"execve",
            unsafe extern "C-unwind" fn(*const c_char, Words, Words) -> c_int;
            path, words, environment
        )
    })
}

/// execv(3).
///
/// # Safety
/// That of execv(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execv(path: *const c_char, words: Words) -> c_int {
    with_true_mask(
        || next!(c"execv", unsafe extern "C-unwind" fn(*const c_char, Words) -> c_int; path, words),
    )
}

/// execvp(3).
///
/// # Safety
/// That of execvp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvp(file: *const c_char, words: Words) -> c_int {
    with_true_mask(|| {
        next!(
            c"execvp",
            unsafe extern "C-unwind" fn(*const c_char, Words) -> c_int;
            file, words
        )
    })
}

/// execvpe(3).
///
/// # Safety
/// That of execvpe(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvpe(
    file: *const c_char,
    words: Words,
    environment: Words,
) -> c_int {
    with_true_mask(|| {
        next!(
            c"execvpe",
            unsafe extern "C-unwind" fn(*const c_char, Words, Words) -> c_int;
            file, words, environment
        )
    })
}

/// fexecve(3).
///
/// # Safety
/// That of fexecve(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fexecve(
    descriptor: c_int,
    words: Words,
    environment: Words,
) -> c_int {
    with_true_mask(|| {
        next!(
            c"fexecve",
            unsafe extern "C-unwind" fn(c_int, Words, Words) -> c_int;
            descriptor, words, environment
        )
    })
}

type Actions = *const libc::posix_spawn_file_actions_t;
type Attributes = *const libc::posix_spawnattr_t;
type Spawn = unsafe extern "C-unwind" fn(
    *mut pid_t,
    *const c_char,
    Actions,
    Attributes,
    Words,
    Words,
) -> c_int;

/// posix_spawn(3).
///
/// # Safety
/// That of posix_spawn(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawn(
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
pub unsafe extern "C-unwind" fn posix_spawnp(
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

/// system(3).
///
/// # Safety
/// That of system(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn system(command: *const c_char) -> c_int {
    with_true_mask(
        || next!(c"system", unsafe extern "C-unwind" fn(*const c_char) -> c_int; command),
    )
}

/// popen(3).
///
/// # Safety
/// That of popen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE {
    with_true_mask(|| {
        next!(
            c"popen",
            unsafe extern "C-unwind" fn(*const c_char, *const c_char) -> *mut FILE;
            command, mode
        )
    })
}
