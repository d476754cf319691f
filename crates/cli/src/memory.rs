//! What happens when the system has no more memory for this program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

use filemap_kernel::probe;

/// The system's allocator. Where it has nothing left, such as under `ulimit -v`, the program says
/// so in one line and exits; by itself it would abort.
pub struct OrExit;

const MESSAGE: &[u8] =
    b"filemap: no memory is left for this process; raise its limit (ulimit -v), \
    end other programs, or give a smaller job\n";

/// The parent of a probe's child tells how that ended.
static QUIET: AtomicBool = AtomicBool::new(false);

/// A thread has met the end of the memory.
static TELLING: AtomicBool = AtomicBool::new(false);

/// Leaves the message to the parent, where this process is a probe's child.
pub fn quiet_in_child() {
    QUIET.store(probe::is_child(), Ordering::Relaxed);
}

fn or_exit(memory: *mut u8) -> *mut u8 {
    if !memory.is_null() {
        return memory;
    }
    if TELLING.swap(true, Ordering::Relaxed) {
        // Another thread got here first, and ends the process.
        loop {
            // SAFETY: it waits, and nothing else.
            unsafe { libc::pause() };
        }
    }
    if !QUIET.load(Ordering::Relaxed) {
        // SAFETY: the message has this length. Nothing here allocates.
        unsafe { libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
    }
    // SAFETY: it ends the process, and runs nothing that could want memory.
    unsafe { libc::_exit(probe::OOM_EXIT_CODE) }
}

// SAFETY: every call is handed on to the system's allocator, and what it returns is handed back.
unsafe impl GlobalAlloc for OrExit {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises what the system's allocator asks for.
        or_exit(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        or_exit(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        or_exit(unsafe { System.realloc(memory, layout, new_size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
