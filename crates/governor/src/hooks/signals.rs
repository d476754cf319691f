//! What the program wants done with the signal that it shares with the library. Other signals are
//! none of the library's, but for what is blocked in their handlers.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use libc::{sigaction as Action, sighandler_t};

use super::{mask, waits};
use crate::disposition::{self, empty_set, only_shared, with_true_mask};
use crate::next::next;

fn is_shared(signal: c_int) -> bool {
    disposition::is_installed() && signal == disposition::signal()
}

/// sigaction(2).
///
/// # Safety
/// That of sigaction(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigaction(
    signal: c_int,
    new: *const Action,
    old: *mut Action,
) -> c_int {
    if is_shared(signal) {
        // SAFETY: the caller's contract.
        return unsafe { disposition::exchange(new, old) };
    }
    let set = |new: *const Action| {
        next!(
            c"sigaction",
            unsafe extern "C-unwind" fn(c_int, *const Action, *mut Action) -> c_int;
            signal, new, old
        )
    };
    if !disposition::is_installed() || !disposition::is_forced() {
        return set(new);
    }
    // A handler of another signal may touch what is protected.
    // SAFETY: the caller's pointers are null or valid.
    let marked = unsafe { new.as_ref() }
        .map(|new| Action { sa_mask: mask::marked(libc::SIG_SETMASK, &new.sa_mask), ..*new });
    let result = set(marked.as_ref().map_or(new, std::ptr::from_ref));
    // SAFETY: the same.
    if let Some(old) = unsafe { old.as_mut() }.filter(|_| result == 0) {
        old.sa_mask = mask::believed(&old.sa_mask);
    }
    result
}

/// The other name of sigaction(2).
///
/// # Safety
/// That of sigaction(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __sigaction(
    signal: c_int,
    new: *const Action,
    old: *mut Action,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { sigaction(signal, new, old) }
}

/// Sets a handler of one argument with `flags`, and returns the one before.
fn set(handler: sighandler_t, flags: c_int) -> sighandler_t {
    let mut mask = empty_set();
    if flags & libc::SA_NODEFER == 0 {
        // SAFETY: the set is initialised.
        unsafe { libc::sigaddset(&mut mask, disposition::signal()) };
    }
    let new = Action { sa_sigaction: handler, sa_mask: mask, sa_flags: flags, sa_restorer: None };
    let mut old = MaybeUninit::<Action>::zeroed();
    // SAFETY: both are valid, and all fields of `old` may be zero.
    unsafe {
        disposition::exchange(&new, old.as_mut_ptr());
        old.assume_init().sa_sigaction
    }
}

/// signal(2), with the meaning that BSD gave it.
///
/// # Safety
/// That of signal(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    if is_shared(signal) {
        return set(handler, libc::SA_RESTART);
    }
    next!(
        c"signal",
        unsafe extern "C-unwind" fn(c_int, sighandler_t) -> sighandler_t;
        signal, handler
    )
}

/// Another name of signal(2).
///
/// # Safety
/// That of signal(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bsd_signal(number: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's contract.
    unsafe { signal(number, handler) }
}

/// Another name of signal(2).
///
/// # Safety
/// That of signal(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ssignal(number: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's contract.
    unsafe { signal(number, handler) }
}

/// signal(2), with the meaning that System V gave it.
///
/// # Safety
/// That of signal(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __sysv_signal(
    signal: c_int,
    handler: sighandler_t,
) -> sighandler_t {
    if is_shared(signal) {
        return set(handler, libc::SA_RESETHAND | libc::SA_NODEFER);
    }
    next!(
        c"__sysv_signal",
        unsafe extern "C-unwind" fn(c_int, sighandler_t) -> sighandler_t;
        signal, handler
    )
}

/// The other name of it.
///
/// # Safety
/// That of signal(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sysv_signal(number: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's contract.
    unsafe { __sysv_signal(number, handler) }
}

/// sigignore(3).
///
/// # Safety
/// That of sigignore(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigignore(signal: c_int) -> c_int {
    if is_shared(signal) {
        set(libc::SIG_IGN, 0);
        return 0;
    }
    next!(c"sigignore", unsafe extern "C-unwind" fn(c_int) -> c_int; signal)
}

/// What sigset(3) calls it that a signal is blocked.
const SIG_HOLD: sighandler_t = 2;

/// Blocks or unblocks the shared signal as far as the program knows. Returns whether it was
/// blocked.
fn hold(how: c_int) -> bool {
    let mut before = empty_set();
    // SAFETY: both sets are initialised.
    unsafe { mask::sigprocmask(how, &only_shared(), &mut before) };
    mask::has(&before, disposition::signal())
}

/// sigset(3).
///
/// # Safety
/// That of sigset(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigset(signal: c_int, handler: sighandler_t) -> sighandler_t {
    if !is_shared(signal) {
        return next!(
            c"sigset",
            unsafe extern "C-unwind" fn(c_int, sighandler_t) -> sighandler_t;
            signal, handler
        );
    }
    if handler == SIG_HOLD {
        let mut old = MaybeUninit::<Action>::zeroed();
        // SAFETY: `old` is valid, and all of its fields may be zero.
        let before = unsafe {
            disposition::exchange(std::ptr::null(), old.as_mut_ptr());
            old.assume_init().sa_sigaction
        };
        return if hold(libc::SIG_BLOCK) { SIG_HOLD } else { before };
    }
    let before = set(handler, 0);
    if hold(libc::SIG_UNBLOCK) { SIG_HOLD } else { before }
}

/// sighold(3).
///
/// # Safety
/// That of sighold(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sighold(signal: c_int) -> c_int {
    if is_shared(signal) {
        hold(libc::SIG_BLOCK);
        return 0;
    }
    next!(c"sighold", unsafe extern "C-unwind" fn(c_int) -> c_int; signal)
}

/// sigrelse(3).
///
/// # Safety
/// That of sigrelse(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigrelse(signal: c_int) -> c_int {
    if is_shared(signal) {
        hold(libc::SIG_UNBLOCK);
        return 0;
    }
    next!(c"sigrelse", unsafe extern "C-unwind" fn(c_int) -> c_int; signal)
}

/// sigpause(3), of BSD, which takes a mask.
///
/// # Safety
/// That of sigpause(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigpause(mask: c_int) -> c_int {
    if disposition::is_installed() && disposition::is_forced() {
        // SAFETY: the set lives while the call waits.
        return unsafe { waits::sigsuspend(&mask::set_of(mask)) };
    }
    with_true_mask(|| next!(c"sigpause", unsafe extern "C-unwind" fn(c_int) -> c_int; mask))
}

/// sigpause(3), of X/Open, which takes a signal.
///
/// # Safety
/// That of sigpause(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __xpg_sigpause(signal: c_int) -> c_int {
    with_true_mask(|| next!(c"__xpg_sigpause", unsafe extern "C-unwind" fn(c_int) -> c_int; signal))
}
