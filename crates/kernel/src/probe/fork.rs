//! Forked processes of a probe's child: the processes of its program, and the children of fork
//! steps.

use std::ffi::{c_int, c_void};
use std::io::Error as IoError;
use std::process::exit;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};

use crate::child::set_parent_death_signal;
use crate::{Error, page_size};

/// Forks `processes` processes while this one has a single thread. Returns the index of this
/// process: 0 in the parent, with the PIDs of the others.
pub(super) fn fork_processes(processes: usize) -> Result<(usize, Vec<u32>), Error> {
    let parent = getpid();
    let mut pids = Vec::with_capacity(processes);
    for number in 1..=processes {
        // SAFETY: this process has a single thread, so the child is unrestricted.
        match unsafe { libc::fork() } {
            0 => {
                let lives = set_parent_death_signal(parent);
                lives.map_err(|error| Error::call("end with the process that forked", error))?;
                return Ok((number, Vec::new()));
            }
            pid => match u32::try_from(pid) {
                Ok(pid) => pids.push(pid),
                Err(_) => return Err(Error::call("fork a process", IoError::last_os_error())),
            },
        }
    }
    Ok((0, pids))
}

/// Waits until `processes` forked processes have exited. If one fails, this process exits the same
/// way, which ends the others too.
pub(super) fn wait_processes(processes: usize) {
    for _ in 0..processes {
        let status = loop {
            match wait(WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                ended => break ended.ok().flatten().map(|(_, status)| status),
            }
        };
        match status.map(|status| (status.exit_status(), status)) {
            Some((Some(0), _)) => {}
            // It has already reported the error.
            Some((Some(code), _)) => exit(code),
            Some((None, status)) => die_by_signal(status),
            None => return,
        }
    }
}

/// Terminates this process by the signal that terminated another one.
fn die_by_signal(status: WaitStatus) -> ! {
    let signal = status.terminating_signal().unwrap_or(libc::SIGKILL);
    // SAFETY: the default action has no handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: as above; the kernel reported this signal number.
    let signal = unsafe { Signal::from_raw_unchecked(signal) };
    let _ = kill_process(getpid(), signal);
    // Reached only if this thread blocks the signal.
    exit(1)
}

/// Stack for the children forked by a thread, one at a time. They do not get their parent's stack,
/// because [`super::memory::ProcessMemory::exclude_from_forks`] excludes it.
pub(super) struct ForkStack {
    top: *mut c_void,
}

// SAFETY: only one thread uses it at a time, and its addresses are valid in all.
unsafe impl Send for ForkStack {}

impl ForkStack {
    pub(super) fn new() -> Result<ForkStack, Error> {
        let bytes = 4 * page_size() as usize;
        // MAP_SHARED, so that writing to it after a fork causes no copy-on-write fault in the
        // parent.
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(null_mut(), bytes, protection, flags) };
        let base = base.map_err(|errno| Error::call("map the stack of a child", errno))?;
        // SAFETY: the end of the mapping; its last page is writable.
        let top = unsafe {
            let top = base.cast::<u8>().add(bytes);
            top.sub(1).write_volatile(0);
            top.cast()
        };
        Ok(ForkStack { top })
    }

    /// Forks a child that exits immediately, and waits for it. Its exit sends no signal. Returns
    /// the duration of the fork.
    pub(super) fn fork(&self) -> Result<Duration, Error> {
        let failed = |error| Error::call("fork a child", error);
        let start = Instant::now();
        // SAFETY: the child has its own stack, and runs only `child_main`, which accesses no other
        // memory. The C library has not registered any with the kernel either, because the probe
        // was started without restartable sequences.
        let pid = unsafe { libc::clone(child_main, self.top, 0, null_mut()) };
        let took = start.elapsed();
        if pid < 0 {
            return Err(failed(IoError::last_os_error()));
        }
        let mut status = 0;
        loop {
            // SAFETY: the status outlives the call.
            if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } == pid {
                break;
            }
            let error = IoError::last_os_error();
            if error.raw_os_error() != Some(libc::EINTR) {
                return Err(failed(error));
            }
        }
        match status {
            0 => Ok(took),
            _ => Err(Error::Child {
                message: format!("a forked child exited with status {status:#x}"),
            }),
        }
    }
}

/// Main function of the child; returning from it ends the child.
extern "C" fn child_main(_: *mut c_void) -> c_int {
    0
}
