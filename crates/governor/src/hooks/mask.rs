//! The thread's mask of signals. A thread that blocked SIGTRAP truly would not be observed, and
//! many programs block all signals in threads that read. So SIGTRAP stays unblocked, and what the
//! program has asked for is kept here.

use std::cell::Cell;
use std::ffi::c_int;

use libc::sigset_t;

use crate::disposition;
use crate::next::next;

thread_local! {
    /// The program believes that SIGTRAP is blocked in this thread.
    static IS_BLOCKED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the program believes that SIGTRAP is blocked in this thread.
pub fn is_blocked() -> bool {
    IS_BLOCKED.get()
}

fn has_sigtrap(set: &sigset_t) -> bool {
    // SAFETY: the set is initialised.
    unsafe { libc::sigismember(set, libc::SIGTRAP) == 1 }
}

/// Changes the mask by `change`, which is given the set to use instead of the program's.
///
/// # Safety
/// `set` and `old` are null or valid.
unsafe fn with_sigtrap_kept(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
    change: impl FnOnce(*const sigset_t) -> c_int,
) -> c_int {
    if !disposition::is_installed() {
        return change(set);
    }
    let was_blocked = IS_BLOCKED.get();
    // SAFETY: the caller's pointer is null or valid.
    let wanted = unsafe { set.as_ref() };
    // A signal that is pending comes within the call, when the program wants it already.
    if let Some(wanted) = wanted {
        let has = has_sigtrap(wanted);
        IS_BLOCKED.set(match how {
            libc::SIG_BLOCK => was_blocked || has,
            libc::SIG_UNBLOCK => was_blocked && !has,
            _ => has,
        });
    }
    let result = match wanted {
        Some(wanted) if has_sigtrap(wanted) && how != libc::SIG_UNBLOCK => {
            let mut others = *wanted;
            // SAFETY: the set is initialised.
            unsafe { libc::sigdelset(&mut others, libc::SIGTRAP) };
            change(&others)
        }
        _ => change(set),
    };
    if result != 0 {
        IS_BLOCKED.set(was_blocked);
        return result;
    }
    // SAFETY: the caller's pointer is null or valid.
    if let Some(old) = unsafe { old.as_mut() }.filter(|_| was_blocked) {
        // SAFETY: the call has initialised the set.
        unsafe { libc::sigaddset(old, libc::SIGTRAP) };
    }
    result
}

/// sigprocmask(2).
///
/// # Safety
/// That of sigprocmask(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    let change = |set| {
        next!(
            c"sigprocmask",
            unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
            how, set, old
        )
    };
    // SAFETY: the caller's contract.
    unsafe { with_sigtrap_kept(how, set, old, change) }
}

/// pthread_sigmask(3).
///
/// # Safety
/// That of pthread_sigmask(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    let change = |set| {
        next!(
            c"pthread_sigmask",
            unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
            how, set, old
        )
    };
    // SAFETY: the caller's contract.
    unsafe { with_sigtrap_kept(how, set, old, change) }
}

/// The set of the first signals whose bits are set in `mask`, as functions older than sets have it.
fn set_of(mask: c_int) -> sigset_t {
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
pub extern "C" fn sigsetmask(mask: c_int) -> c_int {
    change_of(libc::SIG_SETMASK, mask)
}

/// sigblock(3).
#[unsafe(no_mangle)]
pub extern "C" fn sigblock(mask: c_int) -> c_int {
    change_of(libc::SIG_BLOCK, mask)
}

/// siggetmask(3).
#[unsafe(no_mangle)]
pub extern "C" fn siggetmask() -> c_int {
    change_of(libc::SIG_BLOCK, 0)
}
