//! Descriptors. The observer's own is none of the program's: to the program it is not open.

use std::ffi::{c_int, c_uint};

use crate::next::next;
use crate::observer::descriptor;
use crate::{purpose, start};

/// Whether `number` is the observer's, in the process that it observes.
fn is_hidden(number: c_int) -> bool {
    descriptor::get() == Some(number) && start::started().is_some()
}

/// The flag by which close_range(2) closes nothing before the next exec.
const CLOSED_LATER: c_int = libc::CLOSE_RANGE_CLOEXEC as c_int;

fn not_open() -> c_int {
    // SAFETY: errno belongs to this thread.
    unsafe { *libc::__errno_location() = libc::EBADF };
    -1
}

/// close(2).
///
/// # Safety
/// That of close(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(descriptor: c_int) -> c_int {
    if is_hidden(descriptor) {
        return not_open();
    }
    // Another thread may open something with this number as soon as it is free.
    purpose::closing(descriptor..=descriptor);
    next!(c"close", unsafe extern "C-unwind" fn(c_int) -> c_int; descriptor)
}

fn range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if flags & CLOSED_LATER == 0 && first <= last {
        let most = c_int::MAX.cast_unsigned();
        purpose::closing(first.min(most).cast_signed()..=last.min(most).cast_signed());
    }
    next!(
        c"close_range",
        unsafe extern "C-unwind" fn(c_uint, c_uint, c_int) -> c_int;
        first, last, flags
    )
}

/// close_range(2).
///
/// # Safety
/// That of close_range(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let hidden = descriptor::get().filter(|descriptor| is_hidden(*descriptor));
    let hidden = hidden.map(c_int::cast_unsigned);
    let Some(hidden) = hidden.filter(|hidden| (first..=last).contains(hidden)) else {
        return range(first, last, flags);
    };
    let below = if first < hidden { range(first, hidden - 1, flags) } else { 0 };
    if below != 0 || last == hidden {
        return below;
    }
    range(hidden + 1, last, flags)
}

/// closefrom(3).
///
/// # Safety
/// That of closefrom(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    let hidden = descriptor::get().filter(|descriptor| is_hidden(*descriptor));
    let Some(hidden) = hidden.filter(|hidden| first <= *hidden) else {
        purpose::closing(first.max(0)..=c_int::MAX);
        return next!(c"closefrom", unsafe extern "C-unwind" fn(c_int); first);
    };
    let first = first.max(0);
    if first < hidden {
        range(first.cast_unsigned(), (hidden - 1).cast_unsigned(), 0);
    }
    range((hidden + 1).cast_unsigned(), c_uint::MAX, 0);
}

/// Tells of the copy `to` of a descriptor, if there is one, and returns it.
fn told(from: c_int, to: c_int) -> c_int {
    if to >= 0 {
        purpose::duplicated(from, to);
    }
    to
}

/// dup2(2).
///
/// # Safety
/// That of dup2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup2(from: c_int, to: c_int) -> c_int {
    if is_hidden(from) {
        return not_open();
    }
    if is_hidden(to) {
        descriptor::make_way();
    }
    told(from, next!(c"dup2", unsafe extern "C-unwind" fn(c_int, c_int) -> c_int; from, to))
}

/// dup3(2).
///
/// # Safety
/// That of dup3(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    if is_hidden(from) {
        return not_open();
    }
    if is_hidden(to) {
        descriptor::make_way();
    }
    told(
        from,
        next!(c"dup3", unsafe extern "C-unwind" fn(c_int, c_int, c_int) -> c_int; from, to, flags),
    )
}
