//! Whether a signal ends this process: from then on nothing is begun any more, and its children
//! are killed.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use crate::Error;

static ENDING: AtomicBool = AtomicBool::new(false);

/// Process ids of the children that may run, none of them reaped.
static CHILDREN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A child that was killed is gone by then, unless its disk has stopped.
const DEATH_TAKES: Duration = Duration::from_secs(10);

/// Ends every child and waits until they are gone; no other child is started from now on. Work
/// that takes long fails soon with [`Error::Ending`].
pub fn begin() {
    ENDING.store(true, Ordering::SeqCst);
    kill_all();
}

/// Whether [`begin`] was called.
pub fn has_begun() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// For loops that take long.
///
/// # Errors
/// [`Error::Ending`] once [`begin`] was called.
pub(crate) fn check() -> Result<(), Error> {
    if has_begun() { Err(Error::Ending) } else { Ok(()) }
}

/// Starts a child that is killed when this process ends because of a signal.
///
/// # Errors
/// When it cannot be started, or the process is ending.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut children = children();
    // Looked at under the lock: who ends the process kills what is listed.
    if has_begun() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let child = command.spawn()?;
    children.push(child.id());
    Ok(child)
}

/// Reaps a child of [`spawn`] that is dead; its number may become another's from then on.
pub(crate) fn reaped(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let mut children = children();
    let status = child.try_wait()?;
    if status.is_some() {
        children.retain(|&pid| pid != child.id());
    }
    Ok(status)
}

/// Kills every child and waits until it is dead.
fn kill_all() {
    let doomed: Vec<OwnedFd> = {
        let children = children();
        let pids = children.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed()));
        let watched = pids.filter_map(|pid| {
            let watched = pidfd_open(pid, PidfdFlags::empty()).ok();
            // One that has ended is not reaped yet, so that the number is still its own.
            let _ = kill_process(pid, Signal::KILL);
            // What it has started, where it leads a group of its own.
            let _ = kill_process_group(pid, Signal::KILL);
            watched
        });
        watched.collect()
    };
    let deadline = Instant::now() + DEATH_TAKES;
    for child in &doomed {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a few seconds fit");
        let _ = poll(&mut [PollFd::new(child, PollFlags::IN)], Some(&left));
    }
}

fn children() -> MutexGuard<'static, Vec<u32>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) fn is_listed(pid: u32) -> bool {
    children().contains(&pid)
}
