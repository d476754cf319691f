//! Filters of system calls. A program that installs one may be ended by a call that it does not
//! expect, so that the library makes none from then on.

use std::ffi::{c_int, c_long, c_ulong};

use filemap_control::layout::Reason;

use crate::next::next;
use crate::{disposition, observer, stand_down, start};

/// Leaves everything to the program, before a filter is in force. It may be one of all threads.
fn leave() {
    // A child that shares its parent's memory: what the library knows is the parent's.
    if start::is_borrowed() {
        return;
    }
    stand_down::now(Reason::Seccomp);
    observer::leave();
    start::finish();
    if disposition::is_installed() {
        disposition::unmark();
    }
    start::silence();
}

/// prctl(2). Callers leave out what the operation does not take.
///
/// # Safety
/// That of prctl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn prctl(
    operation: c_int,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_int {
    if operation == libc::PR_SET_SECCOMP {
        leave();
    }
    next!(
        c"prctl",
        unsafe extern "C-unwind" fn(c_int, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;
        operation, second, third, fourth, fifth
    )
}

/// syscall(2). Callers leave out what the call does not take.
///
/// # Safety
/// That of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    first: c_long,
    second: c_long,
    third: c_long,
    fourth: c_long,
    fifth: c_long,
    sixth: c_long,
) -> c_long {
    if number == libc::SYS_seccomp {
        leave();
    }
    // The program goes around sigaction(3), or around sigprocmask(2) where nobody may.
    let is_changed = match number {
        libc::SYS_rt_sigaction => first == disposition::signal().into(),
        libc::SYS_rt_sigprocmask => disposition::is_forced(),
        _ => false,
    };
    if is_changed && second != 0 && disposition::is_installed() && !start::is_borrowed() {
        disposition::leave_to_program();
    }
    next!(
        c"syscall",
        unsafe extern "C-unwind" fn(
            c_long,
            c_long,
            c_long,
            c_long,
            c_long,
            c_long,
            c_long,
        ) -> c_long;
        number, first, second, third, fourth, fifth, sixth
    )
}
