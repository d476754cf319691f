//! Calls that hand a text to the kernel: paths, which may lie in mapped memory.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::{DIR, FILE, mode_t, size_t, ssize_t};

use crate::next::next;
use crate::purpose::texts_read_by_kernel;

/// Interposes a function, whose arguments in brackets are texts.
macro_rules! with_texts {
    (
        $(#[$about:meta])*
        $name:literal $function:ident($($argument:ident: $kind:ty),*) -> $result:ty
        [$($text:ident),*]
    ) => {
        $(#[$about])*
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $function($($argument: $kind),*) -> $result {
            texts_read_by_kernel([$($text),*], || {
                next!(
                    $name,
                    unsafe extern "C-unwind" fn($($kind),*) -> $result;
                    $($argument),*
                )
            })
        }
    };
}

with_texts! {
    /// open(2). Callers leave out what the flags do not ask for.
    c"open" open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int [path]
}

with_texts! {
    /// open64(3).
    c"open64" open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int [path]
}

with_texts! {
    /// openat(2).
    c"openat" openat(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int [path]
}

with_texts! {
    /// openat64(3).
    c"openat64" openat64(
        at: c_int, path: *const c_char, flags: c_int, mode: mode_t
    ) -> c_int [path]
}

with_texts! {
    /// open(2), as programs call it that are built with _FORTIFY_SOURCE.
    c"__open_2" __open_2(path: *const c_char, flags: c_int) -> c_int [path]
}

with_texts! {
    /// open64(3), as programs call it that are built with _FORTIFY_SOURCE.
    c"__open64_2" __open64_2(path: *const c_char, flags: c_int) -> c_int [path]
}

with_texts! {
    /// fopen(3).
    c"fopen" fopen(path: *const c_char, mode: *const c_char) -> *mut FILE [path]
}

with_texts! {
    /// fopen64(3).
    c"fopen64" fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE [path]
}

with_texts! {
    /// opendir(3).
    c"opendir" opendir(path: *const c_char) -> *mut DIR [path]
}

with_texts! {
    /// stat(2).
    c"stat" stat(path: *const c_char, to: *mut c_void) -> c_int [path]
}

with_texts! {
    /// stat64(3).
    c"stat64" stat64(path: *const c_char, to: *mut c_void) -> c_int [path]
}

with_texts! {
    /// lstat(2).
    c"lstat" lstat(path: *const c_char, to: *mut c_void) -> c_int [path]
}

with_texts! {
    /// lstat64(3).
    c"lstat64" lstat64(path: *const c_char, to: *mut c_void) -> c_int [path]
}

with_texts! {
    /// fstatat(2).
    c"fstatat" fstatat(
        at: c_int, path: *const c_char, to: *mut c_void, flags: c_int
    ) -> c_int [path]
}

with_texts! {
    /// fstatat64(3).
    c"fstatat64" fstatat64(
        at: c_int, path: *const c_char, to: *mut c_void, flags: c_int
    ) -> c_int [path]
}

with_texts! {
    /// statx(2).
    c"statx" statx(
        at: c_int, path: *const c_char, flags: c_int, mask: c_uint, to: *mut c_void
    ) -> c_int [path]
}

with_texts! {
    /// access(2).
    c"access" access(path: *const c_char, mode: c_int) -> c_int [path]
}

with_texts! {
    /// faccessat(2).
    c"faccessat" faccessat(
        at: c_int, path: *const c_char, mode: c_int, flags: c_int
    ) -> c_int [path]
}

with_texts! {
    /// readlink(2).
    c"readlink" readlink(path: *const c_char, to: *mut c_char, length: size_t) -> ssize_t [path]
}

with_texts! {
    /// readlinkat(2).
    c"readlinkat" readlinkat(
        at: c_int, path: *const c_char, to: *mut c_char, length: size_t
    ) -> ssize_t [path]
}

with_texts! {
    /// unlink(2).
    c"unlink" unlink(path: *const c_char) -> c_int [path]
}

with_texts! {
    /// unlinkat(2).
    c"unlinkat" unlinkat(at: c_int, path: *const c_char, flags: c_int) -> c_int [path]
}

with_texts! {
    /// rename(2).
    c"rename" rename(from: *const c_char, to: *const c_char) -> c_int [from, to]
}

with_texts! {
    /// mkdir(2).
    c"mkdir" mkdir(path: *const c_char, mode: mode_t) -> c_int [path]
}

with_texts! {
    /// rmdir(2).
    c"rmdir" rmdir(path: *const c_char) -> c_int [path]
}

with_texts! {
    /// chdir(2).
    c"chdir" chdir(path: *const c_char) -> c_int [path]
}
