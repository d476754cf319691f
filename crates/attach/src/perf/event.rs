//! The attributes of a perf event, and its descriptor.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::{Error, process};

/// A bit of the flags of an event, by its place in `struct perf_event_attr`.
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

/// A part of a sample, in the order in which they are written.
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;

/// What is read of an event: how often it happened, and how many records of it were lost.
const FORMAT_LOST: u64 = 1 << 4;

/// `struct perf_event_attr` of `linux/perf_event.h`, up to `sig_data`. Every record has the
/// thread and the time by CLOCK_MONOTONIC, and each time that the event happens is a sample.
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

    /// A bit of `PERF_SAMPLE_`, of what a sample has besides.
    pub(crate) fn with_sample(mut self, part: u64) -> Attributes {
        self.0[3] |= part;
        self
    }

    /// Wakes who waits for the ring of this event when so many bytes were written.
    pub(crate) fn with_wakeup_bytes(mut self, bytes: u32) -> Attributes {
        self.0[6] = bytes.into();
        self.with_flags(&[Flag::Watermark])
    }

    /// Of a kernel before 6.0, which does not count what is lost.
    fn without_lost_count(mut self) -> Attributes {
        self.0[4] = 0;
        self
    }
}

/// The descriptor is closed by exec.
const CLOEXEC: u64 = 1 << 3;

/// Opens an event of a thread, of the calling one where that is 0, on one CPU.
pub(crate) fn open(attributes: &Attributes, tid: u32, cpu: u32) -> io::Result<OwnedFd> {
    match perf_event_open(attributes, tid, cpu) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            perf_event_open(&attributes.without_lost_count(), tid, cpu)
        }
        opened => opened,
    }
}

/// The same, where the event writes into the ring of `target`.
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
    // SAFETY: the kernel reads as many bytes as the attributes say that they have.
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

/// The request that has an event write into the ring of another.
const SET_OUTPUT: u64 = 0x2405;

fn redirect(event: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    // SAFETY: both are descriptors of ours, and the request reads no memory.
    match unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as _, to.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How many records of an event, and of those that were inherited from it, found no room; 0 where
/// the kernel does not count them.
pub(crate) fn lost_records(event: &OwnedFd) -> u64 {
    let mut counts = [0; 16];
    match rustix::io::read(event, &mut counts) {
        Ok(16) => u64::from_ne_bytes(*counts.last_chunk().expect("sixteen bytes")),
        _ => 0,
    }
}

const ENABLE: u64 = 0x2400;

/// Switches an event on. It makes a system call only.
pub(crate) fn enable(event: RawFd) {
    // SAFETY: the request reads no memory.
    unsafe { libc::ioctl(event, ENABLE as _, 0) };
}

/// A thread makes others while its events are opened: this often new ones are looked for.
const MAX_ROUNDS: u32 = 16;

/// Opens the events of each thread of a process by `follow`, and of those that it makes meanwhile.
///
/// # Errors
/// The process is gone; what `follow` gives for a thread that has not ended, as `refused` has it.
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
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                followed => followed.map_err(&refused)?,
            }
        }
    }
    Ok(())
}

/// The numbers of the CPUs that are on.
pub(crate) fn online_cpus() -> Vec<u32> {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = cpu_list(&listed);
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// The numbers of a list such as `0-3,7`.
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
