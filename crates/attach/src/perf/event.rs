//! Attributes and descriptors of perf events.

use std::collections::HashSet;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::{Error, process};

/// Bit number in the flags word of `struct perf_event_attr`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flag {
    Disabled = 0,
    Inherit = 1,
    ExcludeKernel = 5,
    Mmap = 8,
    Comm = 9,
    EnableOnExec = 12,
    Task = 13,
    Watermark = 14,
    MmapData = 17,
    SampleIdAll = 18,
    Mmap2 = 23,
    CommExec = 24,
    UseClock = 25,
}

/// `PERF_SAMPLE_TID` and `PERF_SAMPLE_TIME`.
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;

/// `PERF_FORMAT_LOST`: read(2) returns the event count and the number of lost records.
const FORMAT_LOST: u64 = 1 << 4;

/// `struct perf_event_attr` of `linux/perf_event.h`, up to `sig_data`. Every record holds TID and
/// CLOCK_MONOTONIC time (`sample_id_all`), and the sample period is 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes([u64; 16]);

impl Attributes {
    pub(crate) const SOFTWARE: u64 = 1;
    pub(crate) const TRACEPOINT: u64 = 2;

    pub(crate) fn new(kind: u64, config: u64) -> Attributes {
        let mut words = [0; 16];
        words[0] = kind | (size_of::<Attributes>() as u64) << 32;
        words[1] = config;
        words[2] = 1;
        words[3] = TID | TIME;
        words[4] = FORMAT_LOST;
        words[11] = (libc::CLOCK_MONOTONIC as u64) << 32;
        Attributes(words).with_flags(&[Flag::SampleIdAll, Flag::UseClock])
    }

    pub(crate) fn with_flags(mut self, flags: &[Flag]) -> Attributes {
        self.0[5] |= flags.iter().fold(0, |bits, flag| bits | 1 << *flag as u64);
        self
    }

    /// Adds a `PERF_SAMPLE_*` bit to the contents of samples.
    pub(crate) fn with_sample(mut self, part: u64) -> Attributes {
        self.0[3] |= part;
        self
    }

    /// Sets the wakeup watermark of this event's ring, in bytes.
    pub(crate) fn with_wakeup_bytes(mut self, bytes: u32) -> Attributes {
        self.0[6] = bytes.into();
        self.with_flags(&[Flag::Watermark])
    }

    /// Attributes for kernels before 6.0, which lack `PERF_FORMAT_LOST`.
    fn without_lost_count(mut self) -> Attributes {
        self.0[4] = 0;
        self
    }
}

/// `PERF_FLAG_FD_CLOEXEC`
const CLOEXEC: u64 = 1 << 3;

/// Opens an event of thread `tid` (0 for the calling thread) on one CPU.
pub(crate) fn open(attributes: &Attributes, tid: u32, cpu: u32) -> io::Result<OwnedFd> {
    match perf_event_open(attributes, tid, cpu) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            perf_event_open(&attributes.without_lost_count(), tid, cpu)
        }
        opened => opened,
    }
}

/// [`open`], with the records of the event redirected to the ring of `target`.
pub(crate) fn open_into(
    target: &OwnedFd,
    attributes: &Attributes,
    tid: u32,
    cpu: u32,
) -> io::Result<OwnedFd> {
    let event = open(attributes, tid, cpu)?;
    redirect(&event, target)?;
    Ok(event)
}

fn perf_event_open(attributes: &Attributes, tid: u32, cpu: u32) -> io::Result<OwnedFd> {
    let no_group = -1;
    // SAFETY: the kernel reads as many bytes as the size field in the attributes says.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.0.as_ptr(),
            tid.cast_signed(),
            cpu.cast_signed(),
            no_group,
            CLOEXEC,
        )
    };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) })
}

/// `PERF_EVENT_IOC_SET_OUTPUT`
const SET_OUTPUT: u64 = 0x2405;

fn redirect(event: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    // SAFETY: both are open descriptors, and the request reads no memory.
    match unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as _, to.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Number of records lost by an event and those inherited from it, for lack of space in the ring; 0
/// if the kernel does not count them.
pub(crate) fn lost_records(event: &OwnedFd) -> u64 {
    let mut counts = [0; 16];
    match rustix::io::read(event, &mut counts) {
        Ok(16) => u64::from_ne_bytes(*counts.last_chunk().expect("sixteen bytes")),
        _ => 0,
    }
}

/// `PERF_EVENT_IOC_SET_FILTER`
const SET_FILTER: u64 = 0x4008_2406;

/// Makes a tracepoint event, and those inherited from it, report only what `filter` matches.
pub(crate) fn set_filter(event: &OwnedFd, filter: &CStr) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the kernel reads the text up to its NUL.
    match unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER as _, filter.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

const ENABLE: u64 = 0x2400;

/// Enables an event. Async-signal-safe: consists of a single system call.
pub(crate) fn enable(event: RawFd) {
    // SAFETY: the request reads no memory.
    unsafe { libc::ioctl(event, ENABLE as _, 0) };
}

/// Maximum number of times that the thread list is read: threads may be created while events are
/// opened for others.
const MAX_ROUNDS: u32 = 16;

/// Calls `follow` for each thread of a process, including those created meanwhile.
///
/// # Errors
/// The process is gone, or `follow` failed for a live thread; `refused` converts that error.
pub(crate) fn each_thread(
    pid: u32,
    mut follow: impl FnMut(u32) -> io::Result<()>,
    refused: impl Fn(io::Error) -> Error,
) -> Result<(), Error> {
    let mut followed = HashSet::new();
    for _ in 0..MAX_ROUNDS {
        let threads = process::threads(pid)?;
        let new: Vec<_> = threads.into_iter().filter(|tid| followed.insert(*tid)).collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            match follow(tid) {
                // The thread has exited.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                followed => followed.map_err(&refused)?,
            }
        }
    }
    Ok(())
}

/// IDs of the online CPUs.
pub(crate) fn online_cpus() -> Vec<u32> {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = cpu_list(&listed);
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Parses a CPU list such as `0-3,7`.
fn cpu_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpu_list("0-1\n"), [0, 1]);
        assert_eq!(cpu_list("0,2-4,9"), [0, 2, 3, 4, 9]);
        assert_eq!(cpu_list(""), []);
    }
}
