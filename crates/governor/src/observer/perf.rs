//! A perf event that reports each major fault to the thread that made it, before its next
//! instruction: nothing is lost, and minor faults cost nothing.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use filemap_control::layout::Reason;
use libc::siginfo_t;

/// Words of perf_event_attr up to sig_data, which Linux 5.13 added.
const WORDS: usize = 16;

const TYPE_SOFTWARE: u64 = 1;
const PAGE_FAULTS_MAJ: u64 = 6;
const SAMPLE_ADDR: u64 = 1 << 3;
const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const INHERIT_THREAD: u64 = 1 << 35;
const REMOVE_ON_EXEC: u64 = 1 << 36;
const SIGTRAP: u64 = 1 << 37;

/// What the signals of this event carry, so that those of the program's own events are not mistaken
/// for them.
const SIG_DATA: u64 = 0x6669_6c65_6d61_7001;

const FLAG_CLOEXEC: u64 = 1 << 3;

/// Enables an event and those that threads have inherited.
const IOC_ENABLE: u64 = 0x2400;

/// Disables them.
const IOC_DISABLE: u64 = 0x2401;

/// The event's descriptor; -1 while there is none.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

/// Where descriptors of ours begin: seven eighths of the usual limit, so that the program's own
/// have the numbers that they would have had.
const FIRST_DESCRIPTOR: u64 = 896;

/// The numbers that describe the event.
fn attributes() -> [u64; WORDS] {
    let mut words = [0; WORDS];
    let flags = DISABLED
        | INHERIT
        | EXCLUDE_KERNEL
        | EXCLUDE_HYPERVISOR
        | INHERIT_THREAD
        | REMOVE_ON_EXEC
        | SIGTRAP;
    let size = (WORDS * size_of::<u64>()) as u64;
    let values = [
        (0, TYPE_SOFTWARE | size << 32),
        (1, PAGE_FAULTS_MAJ),
        (2, 1),
        (3, SAMPLE_ADDR),
        (5, flags),
        (15, SIG_DATA),
    ];
    for (index, value) in values {
        if let Some(word) = words.get_mut(index) {
            *word = value;
        }
    }
    words
}

/// Opens the event for this thread and all that it will start. It reports nothing until it is
/// enabled. Returns whether that was permitted.
pub fn open() -> bool {
    let attributes = attributes();
    // SAFETY: the kernel reads as many bytes as the attributes say that they have.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            0 as c_int,
            -1 as c_int,
            -1 as c_int,
            FLAG_CLOEXEC,
        )
    };
    let Ok(low @ 0..) = c_int::try_from(opened) else { return false };
    DESCRIPTOR.store(out_of_the_way(low), Ordering::Release);
    true
}

/// The same descriptor with a number that the program does not come to.
fn out_of_the_way(low: c_int) -> c_int {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.unwrap_or(u64::MAX).min(FIRST_DESCRIPTOR / 7 * 8);
    let first = c_int::try_from(limit / 8 * 7).unwrap_or(low);
    // SAFETY: the descriptor is ours, and a number is all that the call takes.
    let high = unsafe { libc::fcntl(low, libc::F_DUPFD_CLOEXEC, first) };
    if high < 0 {
        return low;
    }
    close(low);
    high
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
    unsafe { *info.cast::<u64>().add(3) == SIG_DATA }
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
    request(IOC_ENABLE);
}

/// Ends the observation in all threads.
pub fn stop() {
    request(IOC_DISABLE);
}

/// In the child of a fork, where the descriptor is of the parent's event: opens one of its own.
pub fn reopen_after_fork() -> bool {
    if let Some(parents) = descriptor() {
        DESCRIPTOR.store(-1, Ordering::Release);
        close(parents);
    }
    open()
}
