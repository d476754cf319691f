//! Ends of a process that run no destructors.

use std::ffi::c_int;

use crate::next::next;
use crate::start;

/// _exit(2).
///
/// # Safety
/// That of _exit(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _exit(status: c_int) -> ! {
    start::finish();
    next!(c"_exit", unsafe extern "C-unwind" fn(c_int) -> !; status)
}

/// _Exit(3).
///
/// # Safety
/// That of _exit(2).
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the C library's name")]
pub unsafe extern "C-unwind" fn _Exit(status: c_int) -> ! {
    start::finish();
    next!(c"_Exit", unsafe extern "C-unwind" fn(c_int) -> !; status)
}
