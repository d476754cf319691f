//! Processes that a probe's child forks: one for each further process of its program.

use std::io::Error as IoError;
use std::process::exit;

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};

use crate::Error;
use crate::child::set_parent_death_signal;

/// Forks so many processes, while this one has a single thread. Returns which of them this is,
/// from 1, and 0 in the one that has forked the others, with their ids.
pub(super) fn fork_processes(processes: usize) -> Result<(usize, Vec<u32>), Error> {
    let parent = getpid();
    let mut pids = Vec::with_capacity(processes);
    for number in 1..=processes {
        // SAFETY: this process has one thread, so that its child may do whatever it may.
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

/// Waits until so many forked processes have ended. Where one fails, this process ends as it did:
/// the others end with it.
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
            // It has said why.
            Some((Some(code), _)) => exit(code),
            Some((None, status)) => die_by_signal(status),
            None => return,
        }
    }
}

/// Ends this process by the signal that ended another one.
fn die_by_signal(status: WaitStatus) -> ! {
    let signal = status.terminating_signal().unwrap_or(libc::SIGKILL);
    // SAFETY: a signal that ends processes does so where nothing handles it.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: as above; the number is one that the kernel has used.
    let signal = unsafe { Signal::from_raw_unchecked(signal) };
    let _ = kill_process(getpid(), signal);
    // A thread that blocks it takes it later.
    exit(1)
}
