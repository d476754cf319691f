//! A perf event that reports each major fault to the thread that made it, before its next
//! instruction: nothing is lost, and minor faults cost nothing.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use filemap_control::layout::Reason;
use filemap_control::request::event;
use libc::siginfo_t;

/// The event's descriptor; -1 while there is none.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

/// Where descriptors of ours begin: seven eighths of the usual limit, so that the program's own
/// have the numbers that they would have had.
const FIRST_DESCRIPTOR: u64 = 896;

/// Opens the event for this thread and all that it will start. It reports nothing until it is
/// enabled. Returns whether that was permitted.
pub fn open() -> bool {
    let attributes = event::attributes();
    // SAFETY: the kernel reads as many bytes as the attributes say that they have.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            0 as c_int,
            -1 as c_int,
            -1 as c_int,
            event::FLAG_CLOEXEC,
        )
    };
    let Ok(low @ 0..) = c_int::try_from(opened) else { return false };
    let high = out_of_the_way(low);
    close(low);
    DESCRIPTOR.store(high.unwrap_or(-1), Ordering::Release);
    high.is_some()
}

/// A copy of a descriptor with a number that the program does not come to.
fn out_of_the_way(low: c_int) -> Option<c_int> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.unwrap_or(u64::MAX).min(FIRST_DESCRIPTOR / 7 * 8);
    let first = c_int::try_from(limit / 8 * 7).unwrap_or(low);
    // SAFETY: the descriptor is ours, and a number is all that the call takes.
    let high = unsafe { libc::fcntl(low, libc::F_DUPFD_CLOEXEC, first) };
    (high >= 0).then_some(high)
}

fn close(descriptor: c_int) {
    // SAFETY: it is ours. This is not the C library's close, which is interposed.
    unsafe { rustix::io::close(descriptor) };
}

/// Whether the signal comes from this event.
pub fn sent(info: *const siginfo_t) -> bool {
    // The data of the event are behind the address, which is behind the three numbers of 32 bits
    // that all signals have and as many bits to align it.
    // SAFETY: the kernel passes a whole siginfo_t, which has room for them.
    unsafe { *info.cast::<u64>().add(3) == event::SIG_DATA }
}

/// The event's descriptor, which the program must not close.
pub fn descriptor() -> Option<c_int> {
    Some(DESCRIPTOR.load(Ordering::Acquire)).filter(|descriptor| *descriptor >= 0)
}

/// Moves the event to another descriptor, since the program wants this one. Where no other is free
/// the program gets it, and nothing is observed any more.
pub fn make_way() {
    if let Some(descriptor) = descriptor() {
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

fn request(number: u64) {
    if let Some(descriptor) = descriptor() {
        // SAFETY: the descriptor is ours, and the request takes no argument.
        unsafe { libc::ioctl(descriptor, number, 0) };
    }
}

/// Begins the observation in all threads. There has to be a handler by then.
pub fn enable() {
    request(event::IOC_ENABLE);
}

/// Ends the observation in all threads.
pub fn stop() {
    request(event::IOC_DISABLE);
}

/// In the child of a fork, where the descriptor is of the parent's event: opens one of its own.
pub fn reopen_after_fork() -> bool {
    if let Some(parents) = descriptor() {
        DESCRIPTOR.store(-1, Ordering::Release);
        close(parents);
    }
    open()
}
