//! A perf event that reports each major fault to the thread that made it, before its next
//! instruction: nothing is lost, and minor faults cost nothing. Where they are wanted, it reports
//! them too.

use std::ffi::c_int;

use filemap_control::request::event;
use libc::siginfo_t;

use super::descriptor;
use crate::start;

/// Opens the event for this thread and all that it will start. It reports nothing until it is
/// enabled. Returns whether that was permitted.
pub fn open() -> bool {
    let is_all = start::settings().is_some_and(|settings| settings.all_faults);
    let faults = if is_all { event::Faults::All } else { event::Faults::Major };
    let attributes = event::attributes(faults);
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
    descriptor::keep(low)
}

/// Whether the signal comes from this event.
pub fn sent(info: *const siginfo_t) -> bool {
    // The data of the event are behind the address, which is behind the three numbers of 32 bits
    // that all signals have and as many bits to align it.
    // SAFETY: the kernel passes a whole siginfo_t, which has room for them.
    unsafe { *info.cast::<u64>().add(3) == event::SIG_DATA }
}

fn request(number: u64) {
    if let Some(descriptor) = descriptor::get() {
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
