//! Shutdown on a signal: nothing new is started, and the children are killed.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{park, sleep};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group,
    pidfd_open, set_child_subreaper, waitid,
};

use crate::Error;

static ENDING: AtomicBool = AtomicBool::new(false);

/// PIDs of children that may be running; none of them is reaped.
static CHILDREN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// How long a killed child may take to exit, which may include waiting for a disk.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Children that this process did not start, while it adopts orphans: `None` while it does not.
static FOREIGN: Mutex<Option<HashSet<Pid>>> = Mutex::new(None);

/// Time between SIGTERM and SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval between two polls of what still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Ends all children and waits for them; no more are started. Long operations fail with
/// [`Error::ShuttingDown`].
pub fn begin() {
    ENDING.store(true, Ordering::SeqCst);
    let foreign = FOREIGN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match foreign {
        Some(foreign) => end_descendants(&foreign),
        None => kill_all(),
    }
}

/// Blocks forever if shutdown has begun: the exit status is then not up to the caller.
pub fn wait_if_begun() {
    while has_begun() {
        park();
    }
}

/// While it exists, this process adopts orphaned descendants (PR_SET_CHILD_SUBREAPER), whatever
/// their group or session; but not if it already had other children. Dropping it, and [`begin`],
/// ends all of them. Meanwhile only this crate may start children.
#[derive(Debug)]
pub(crate) struct Subreaper {
    /// Children that existed before, such as those of a shell that called `exec` with this program.
    /// They are never reaped, so that their PIDs are not reused.
    foreign: HashSet<Pid>,
}

impl Subreaper {
    pub(crate) fn begin() -> io::Result<Subreaper> {
        let mut known = FOREIGN.lock().unwrap_or_else(PoisonError::into_inner);
        let foreign = known.get_or_insert_with(|| all_children().into_iter().collect());
        // Orphans of foreign children would be adopted too, and could not be told apart from ours.
        if foreign.is_empty() {
            set_child_subreaper(Some(getpid()))?;
        }
        Ok(Subreaper { foreign: foreign.clone() })
    }
}

impl Drop for Subreaper {
    fn drop(&mut self) {
        end_descendants(&self.foreign);
    }
}

/// Terminates all descendants, kills those that remain, and waits until none is left. Grandchildren
/// are reached once they are adopted. Spares `foreign`.
fn end_descendants(foreign: &HashSet<Pid>) {
    let start = Instant::now();
    let mut terminated = HashSet::new();
    let mut was_empty = false;
    while start.elapsed() < TERM_TIMEOUT + KILL_TIMEOUT {
        let is_empty = !signal_living(start.elapsed() >= TERM_TIMEOUT, &mut terminated, foreign);
        // The list is made thread by thread: a child that passes to another thread meanwhile, as
        // the thread that started it exits, is in none. The next list has it.
        if is_empty && was_empty {
            return;
        }
        was_empty = is_empty;
        sleep(POLL_INTERVAL);
    }
}

/// Sends SIGTERM to children not in `terminated`, or SIGKILL to all, and reaps dead ones without an
/// owner. Returns whether any is alive.
fn signal_living(kills: bool, terminated: &mut HashSet<Pid>, foreign: &HashSet<Pid>) -> bool {
    // Held so that nobody else reaps and PIDs are not reused.
    let waited_for = children();
    let mut any = false;
    for child in all_children().into_iter().filter(|child| !foreign.contains(child)) {
        let is_waited_for = waited_for.contains(&child.as_raw_pid().cast_unsigned());
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        // Reports a ptrace stop too, which WNOWAIT leaves pending.
        let found = waitid(WaitId::Pid(child), how | WaitIdOptions::NOWAIT);
        let is_held = matches!(&found, Ok(Some(status)) if status.trapped());
        if !is_held && !matches!(found, Ok(None)) {
            if !is_waited_for {
                let _ = waitid(WaitId::Pid(child), how);
            }
            continue;
        }
        any = true;
        let send = |signal| {
            let _ = kill_process(child, signal);
            // A child on the list leads its own process group.
            if is_waited_for {
                let _ = kill_process_group(child, signal);
            }
        };
        if kills {
            send(Signal::KILL);
        } else if terminated.insert(child) {
            send(Signal::TERM);
            // A stopped process does not handle signals.
            send(Signal::CONT);
        }
    }
    any
}

/// The children of this process, including adopted ones.
fn all_children() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = lists.flat_map(|list| {
        let pids = list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
        pids.collect::<Vec<i32>>()
    });
    pids.filter_map(Pid::from_raw).collect()
}

/// Whether [`begin`] was called.
pub fn has_begun() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// To be called in long loops.
///
/// # Errors
/// [`Error::ShuttingDown`] once [`begin`] was called.
pub(crate) fn check() -> Result<(), Error> {
    if has_begun() { Err(Error::ShuttingDown) } else { Ok(()) }
}

/// Starts a child that is killed when this process ends because of a signal.
///
/// # Errors
/// The child cannot be started, or this process is shutting down.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut children = children();
    // Checked under the lock: the shutdown kills the children on the list.
    if has_begun() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let child = command.spawn()?;
    children.push(child.id());
    Ok(child)
}

/// Reaps a child of [`spawn`] if it is dead. Its PID may be reused from then on.
pub(crate) fn try_reap(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let mut children = children();
    let status = child.try_wait()?;
    if status.is_some() {
        children.retain(|&pid| pid != child.id());
    }
    Ok(status)
}

/// Kills all children and waits until they are dead.
fn kill_all() {
    let doomed: Vec<OwnedFd> = {
        let children = children();
        let pids = children.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed()));
        let watched = pids.filter_map(|pid| {
            let watched = pidfd_open(pid, PidfdFlags::empty()).ok();
            // Not reaped yet, so the PID still belongs to it.
            let _ = kill_process(pid, Signal::KILL);
            // Its process group, if it leads one.
            let _ = kill_process_group(pid, Signal::KILL);
            watched
        });
        watched.collect()
    };
    let deadline = Instant::now() + KILL_TIMEOUT;
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
