//! The observer's descriptor, of a perf event or of page tables. It is none of the program's.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use filemap_control::layout::Reason;

/// -1 while there is none.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

/// Where descriptors of ours begin: seven eighths of the usual limit, so that the program's own
/// have the numbers that they would have had.
const FIRST: u64 = 896;

/// The descriptor, which the program must not close.
pub fn get() -> Option<c_int> {
    Some(DESCRIPTOR.load(Ordering::Acquire)).filter(|descriptor| *descriptor >= 0)
}

/// Keeps what `low` stands for, under a number that the program does not come to. Returns whether
/// there was one.
pub fn keep(low: c_int) -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.unwrap_or(u64::MAX).min(FIRST / 7 * 8);
    let first = c_int::try_from(limit / 8 * 7).unwrap_or(low);
    // SAFETY: the descriptor is ours, and a number is all that the call takes.
    let high = unsafe { libc::fcntl(low, libc::F_DUPFD_CLOEXEC, first) };
    close(low);
    DESCRIPTOR.store(high.max(-1), Ordering::Release);
    high >= 0
}

/// Moves it to another number, since the program wants this one. Where no other is free the program
/// gets it, and nothing is observed any more.
///
/// The thread that scans page tables may ask the program's descriptor once, which is no file for
/// its request.
pub fn make_way() {
    if let Some(descriptor) = get() {
        // SAFETY: the descriptor is ours.
        let other = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, descriptor + 1) };
        if other >= 0 {
            DESCRIPTOR.store(other, Ordering::Release);
        } else {
            crate::stand_down::now(Reason::NoObserver);
            DESCRIPTOR.store(-1, Ordering::Release);
        }
        close(descriptor);
    }
}

/// Closes it.
pub fn drop_it() {
    if let Some(descriptor) = get() {
        DESCRIPTOR.store(-1, Ordering::Release);
        close(descriptor);
    }
}

fn close(descriptor: c_int) {
    // SAFETY: it is ours. This is not the C library's close, which is interposed.
    unsafe { rustix::io::close(descriptor) };
}
