//! The thread's mask of signals. A thread that blocked the shared signal truly would not be
//! observed, or would be killed by it, and many programs block all signals in threads that read. So
//! that signal (`disposition::signal`) stays unblocked, and that the program has asked for it is
//! kept in the mask itself, as a signal that nobody sends: wherever the kernel or the C library
//! saves, restores or hands on the mask, this goes with it.

use std::ffi::c_int;

use libc::{pthread_attr_t, sigset_t};

use crate::disposition;
use crate::next::next;

/// Blocked in place of the shared signal. Neither the kernel nor the C library has any use for it.
const MARK: c_int = libc::SIGSTKFLT;

/// Whoever blocks so many signals that this one is among them blocks that one too.
const NEIGHBOUR: c_int = libc::SIGPWR;

pub fn has(set: &sigset_t, signal: c_int) -> bool {
    // SAFETY: the set is initialised.
    unsafe { libc::sigismember(set, signal) == 1 }
}

fn put(set: &mut sigset_t, signal: c_int, is_in: bool) {
    // SAFETY: the set is initialised, and the signal exists.
    unsafe {
        if is_in {
            libc::sigaddset(set, signal);
        } else {
            libc::sigdelset(set, signal);
        }
    }
}

/// Whether a thread with this mask believes that the shared signal is blocked while it is not.
pub fn is_marked(mask: &sigset_t) -> bool {
    has(mask, MARK) && !has(mask, disposition::signal())
}

/// The mask that a thread believes to have.
pub fn believed(mask: &sigset_t) -> sigset_t {
    let mut believed = *mask;
    if has(mask, MARK) {
        put(&mut believed, disposition::signal(), true);
    }
    put(&mut believed, MARK, has(mask, NEIGHBOUR));
    believed
}

/// The set to use in place of the program's.
pub fn marked(how: c_int, wanted: &sigset_t) -> sigset_t {
    let mut set = *wanted;
    let has_shared = has(wanted, disposition::signal());
    put(&mut set, MARK, has_shared);
    put(&mut set, disposition::signal(), has_shared && how == libc::SIG_UNBLOCK);
    set
}

/// Changes the mask by `change`, which is given the set to use instead of the program's.
///
/// # Safety
/// `set` and `old` are null or valid.
unsafe fn with_shared_kept(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
    change: impl FnOnce(*const sigset_t) -> c_int,
) -> c_int {
    if !disposition::is_installed() {
        return change(set);
    }
    // SAFETY: the caller's pointer is null or valid.
    let result = match unsafe { set.as_ref() } {
        Some(wanted) => change(&marked(how, wanted)),
        None => change(set),
    };
    // SAFETY: the caller's pointer is null or valid.
    if let Some(old) = unsafe { old.as_mut() }.filter(|_| result == 0) {
        *old = believed(old);
    }
    result
}

/// sigprocmask(2).
///
/// # Safety
/// That of sigprocmask(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigprocmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    let change = |set| {
        next!(
            c"sigprocmask",
            unsafe extern "C-unwind" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
            how, set, old
        )
    };
    // SAFETY: the caller's contract.
    unsafe { with_shared_kept(how, set, old, change) }
}

/// pthread_sigmask(3).
///
/// # Safety
/// That of pthread_sigmask(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_sigmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    let change = |set| {
        next!(
            c"pthread_sigmask",
            unsafe extern "C-unwind" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
            how, set, old
        )
    };
    // SAFETY: the caller's contract.
    unsafe { with_shared_kept(how, set, old, change) }
}

/// The set of the first signals whose bits are set in `mask`, as functions older than sets have it.
pub fn set_of(mask: c_int) -> sigset_t {
    // SAFETY: a set is plain memory, which the first call fills.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in (1..c_int::BITS as c_int).filter(|signal| mask >> (signal - 1) & 1 == 1) {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Changes the mask by `how`, and returns the old one as a number.
fn change_of(how: c_int, mask: c_int) -> c_int {
    let (set, mut old) = (set_of(mask), set_of(0));
    // SAFETY: both sets live.
    if unsafe { sigprocmask(how, &set, &mut old) } < 0 {
        return -1;
    }
    // SAFETY: the set is initialised.
    let has = |signal: &c_int| unsafe { libc::sigismember(&old, *signal) == 1 };
    let signals = (1..c_int::BITS as c_int).filter(has);
    signals.fold(0, |mask, signal| mask | 1 << (signal - 1))
}

/// sigsetmask(3), which shells use.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn sigsetmask(mask: c_int) -> c_int {
    change_of(libc::SIG_SETMASK, mask)
}

/// sigblock(3).
#[unsafe(no_mangle)]
pub extern "C-unwind" fn sigblock(mask: c_int) -> c_int {
    change_of(libc::SIG_BLOCK, mask)
}

/// siggetmask(3).
#[unsafe(no_mangle)]
pub extern "C-unwind" fn siggetmask() -> c_int {
    change_of(libc::SIG_BLOCK, 0)
}

/// pthread_attr_setsigmask_np(3): the mask with which a thread begins.
///
/// # Safety
/// That of pthread_attr_setsigmask_np(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_attr_setsigmask_np(
    attributes: *mut pthread_attr_t,
    set: *const sigset_t,
) -> c_int {
    let change = |set| {
        next!(
            c"pthread_attr_setsigmask_np",
            unsafe extern "C-unwind" fn(*mut pthread_attr_t, *const sigset_t) -> c_int;
            attributes, set
        )
    };
    // SAFETY: the caller's contract.
    unsafe { with_shared_kept(libc::SIG_SETMASK, set, std::ptr::null_mut(), change) }
}

/// pthread_attr_getsigmask_np(3).
///
/// # Safety
/// That of pthread_attr_getsigmask_np(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_attr_getsigmask_np(
    attributes: *const pthread_attr_t,
    set: *mut sigset_t,
) -> c_int {
    let ask = |_| {
        next!(
            c"pthread_attr_getsigmask_np",
            unsafe extern "C-unwind" fn(*const pthread_attr_t, *mut sigset_t) -> c_int;
            attributes, set
        )
    };
    // SAFETY: the caller's contract.
    unsafe { with_shared_kept(libc::SIG_SETMASK, std::ptr::null(), set, ask) }
}
