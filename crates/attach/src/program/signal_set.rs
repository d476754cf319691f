//! Sets of signals. Nothing here allocates, so that a child may use it between fork and exec.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr::null;

use libc::{c_int, siginfo_t, sigset_t};

/// The set of `signals`. A number that is no signal's is left out.
pub fn from_signals(signals: impl IntoIterator<Item = c_int>) -> sigset_t {
    // SAFETY: a set is plain memory, which the first call makes empty.
    unsafe {
        let mut set = zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Blocks or unblocks the signals of `set` in this thread, as `how` says (`SIG_BLOCK` and its
/// kin). Returns what was blocked before.
pub fn change_mask(how: c_int, set: &sigset_t) -> sigset_t {
    // SAFETY: both sets live; what was there before is filled by the call.
    unsafe {
        let mut before = zeroed();
        libc::pthread_sigmask(how, set, &mut before);
        before
    }
}

/// What is blocked in this thread.
pub fn blocked() -> sigset_t {
    // SAFETY: the set is plain memory that the call fills; nothing is changed.
    unsafe {
        let mut set = zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, null(), &mut set);
        set
    }
}

/// Whether `signal` is in `set`.
pub fn contains(set: &sigset_t, signal: c_int) -> bool {
    // SAFETY: the set lives and is only looked at.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// Takes the next signal of `set`, all of which are blocked.
///
/// # Errors
/// When waiting was interrupted, such as by a stop.
pub fn wait(set: &sigset_t) -> io::Result<siginfo_t> {
    let mut info = MaybeUninit::uninit();
    // SAFETY: the set lives, and the call fills `info` unless it fails.
    unsafe {
        match libc::sigwaitinfo(set, info.as_mut_ptr()) {
            signal if signal > 0 => Ok(info.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
