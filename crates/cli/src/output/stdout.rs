//! Whether there is a stdout.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of stdout.
const STDOUT: i32 = 1;

static WAS_OPEN: AtomicBool = AtomicBool::new(true);

/// Whether this program was started with a stdout.
pub fn was_open() -> bool {
    WAS_OPEN.load(Ordering::Relaxed)
}

extern "C" fn look() {
    // SAFETY: the number is only asked about, and it may be that of no file.
    let stdout = unsafe { BorrowedFd::borrow_raw(STDOUT) };
    WAS_OPEN.store(rustix::io::fcntl_getfd(stdout).is_ok(), Ordering::Relaxed);
}

// Before Rust's runtime begins, which opens /dev/null in place of a stdout that is closed.
// SAFETY: entries of this section are called once, without arguments that matter, and `look`
// needs nothing that is not there yet.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
