//! Signal sets. Does not allocate, so that a child may use it between fork and exec.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr::null;

use libc::{c_int, siginfo_t, sigset_t};

/// The set of `signals`; invalid numbers are skipped.
pub fn from_signals(signals: impl IntoIterator<Item = c_int>) -> sigset_t {
    // SAFETY: sigset_t is plain memory, which sigemptyset initialises.
    unsafe {
        let mut set = zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Changes the signal mask of this thread by `set`; `how` is `SIG_BLOCK`, `SIG_UNBLOCK` or
/// `SIG_SETMASK`. Returns the previous mask.
pub fn change_mask(how: c_int, set: &sigset_t) -> sigset_t {
    // SAFETY: both sets outlive the call, which fills `before`.
    unsafe {
        let mut before = zeroed();
        libc::pthread_sigmask(how, set, &mut before);
        before
    }
}

/// The signal mask of this thread.
pub fn blocked() -> sigset_t {
    // SAFETY: the call fills the set and changes nothing.
    unsafe {
        let mut set = zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, null(), &mut set);
        set
    }
}

/// Whether `signal` is in `set`.
pub fn contains(set: &sigset_t, signal: c_int) -> bool {
    // SAFETY: the call only reads the set, which outlives it.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// Waits for and consumes the next signal of `set`. All of its signals must be blocked.
///
/// # Errors
/// EINTR, for instance after a stop.
pub fn wait(set: &sigset_t) -> io::Result<siginfo_t> {
    let mut info = MaybeUninit::uninit();
    // SAFETY: the set outlives the call, which fills `info` on success.
    unsafe {
        match libc::sigwaitinfo(set, info.as_mut_ptr()) {
            signal if signal > 0 => Ok(info.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
