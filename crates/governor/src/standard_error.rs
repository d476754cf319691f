//! What the library says to whoever has started the program.

use std::mem::MaybeUninit;
use std::ptr;

use libc::{sigset_t, timespec};

/// Signals that a write may send: nobody reads the pipe, or the file may not grow.
const OF_WRITES: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Writes `line` to standard error. Where that cannot be written to nothing happens: no signal is
/// left to end the program.
pub fn write(line: &str) {
    let mut signals = empty_set();
    let mut before = empty_set();
    // SAFETY: the sets are initialised, and the signals exist.
    unsafe {
        OF_WRITES.iter().for_each(|signal| {
            libc::sigaddset(&mut signals, *signal);
        });
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, &mut before);
    }
    let mut pending = empty_set();
    // SAFETY: the set is ours.
    unsafe { libc::sigpending(&mut pending) };
    // Not the C library's, which is interposed, and where a thread may be cancelled.
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    for signal in OF_WRITES {
        // SAFETY: the sets are initialised. One that was pending before is the program's.
        unsafe {
            if libc::sigismember(&pending, signal) == 0 {
                take(signal);
            }
        }
    }
    // SAFETY: the set is what the mask was.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut()) };
}

/// Takes a blocked signal, if it is pending.
fn take(signal: i32) {
    let mut only = empty_set();
    let at_once = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set is initialised, and the signal exists.
    unsafe {
        libc::sigaddset(&mut only, signal);
        libc::sigtimedwait(&only, ptr::null_mut(), &at_once);
    }
}

fn empty_set() -> sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: sigemptyset initialises what it is given.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}
