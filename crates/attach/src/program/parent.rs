//! A program that runs as a child, and to which this process is as good as not there: it has the
//! same files, terminal and process group, signals are handed on to it, and this process ends as
//! it does.

use std::fs;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use super::lookup::{LaunchError, Program};
use super::start::launch_error;
use super::{inherited, signal_set};
use crate::without_injections;

/// Signals of timers. A timer that was set before this process began is its own, and its child
/// does not have it.
const TIMER_SIGNALS: [i32; 3] = [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF];

/// Signals that stop a process until it is continued.
pub const STOP_SIGNALS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// How much shells add to a signal for the exit code of what it ended.
const SIGNAL_EXIT_BASE: i32 = 128;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildExit {
    /// Its exit code; `None` where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    pub elapsed: Duration,
}

/// Runs `program` to its end. The environment and the files of this process are its own too, and
/// so is what is `waited` for. `before` runs in it just before it becomes the program, and makes
/// system calls only.
///
/// # Errors
/// When it cannot be run.
pub fn run(
    program: &Program,
    waited: &BlockedSignals,
    before: impl Fn() + Send + Sync + 'static,
) -> Result<ChildExit, LaunchError> {
    let mut command = program.command_after(move || {
        inherited::restore();
        before();
    });
    let start = Instant::now();
    let child = command.spawn().map_err(|error| launch_error(program, &error))?;
    let pid = child.id().cast_signed();
    loop {
        if let Some(came) = waited.next()
            && came.is_to_forward(pid)
        {
            // SAFETY: the child is not reaped, so that the number is its own.
            unsafe { libc::kill(pid, came.signal) };
        }
        // Signals of one kind that wait are one signal, so that a SIGCHLD may stand for several.
        while let Some(change) = poll_child(pid) {
            match change {
                ChildChange::Stopped(signal) => stop(signal),
                ChildChange::Exited { exit_code, signal } => {
                    return Ok(ChildExit { exit_code, signal, elapsed: start.elapsed() });
                }
            }
        }
    }
}

/// Leaves children to be waited for, also where whoever started this process ignores SIGCHLD. The
/// programs that this one starts ignore it as before.
pub fn reset_sigchld() {
    // SAFETY: a default disposition runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Stops this process as `signal` stopped the child, until it is continued. The SIGCONT that
/// continues it then waits to be handed on.
fn stop(signal: i32) {
    // What is ignored stops nothing.
    let signal = if inherited::was_ignored(signal) { libc::SIGSTOP } else { signal };
    // SAFETY: the default disposition stops, and runs no code of ours.
    unsafe { libc::raise(signal) };
    if signal != libc::SIGSTOP {
        let only = signal_set::from_signals([signal]);
        signal_set::change_mask(libc::SIG_UNBLOCK, &only);
        signal_set::change_mask(libc::SIG_BLOCK, &only);
    }
}

/// Ends this process by `signal`, without a core of its own. It returns the code to exit with only
/// where it is not ended by that.
pub fn exit_by_signal(signal: i32) -> u8 {
    // SAFETY: none of the calls touches memory; a default disposition runs no code of ours.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    signal_set::change_mask(libc::SIG_UNBLOCK, &signal_set::from_signals([signal]));
    u8::try_from(SIGNAL_EXIT_BASE + signal).unwrap_or(u8::MAX)
}

/// What became of a child.
enum ChildChange {
    /// This signal stopped it.
    Stopped(i32),
    /// It is gone, by its exit code or by a signal.
    Exited { exit_code: Option<i32>, signal: Option<i32> },
}

/// What became of the child `pid` since this was asked last.
fn poll_child(pid: i32) -> Option<ChildChange> {
    if !has_child_event(pid) {
        return None;
    }
    let mut status = 0;
    let flags = libc::WNOHANG | libc::WUNTRACED;
    // SAFETY: the status is filled by the call.
    let changed = without_injections(|| unsafe { libc::waitpid(pid, &mut status, flags) });
    if changed != pid {
        return None;
    }
    Some(if libc::WIFSTOPPED(status) {
        // A stop of a thread that this process holds for long is no stop of the program.
        let is_own = status >> 16 != 0 || !STOP_SIGNALS.contains(&libc::WSTOPSIG(status));
        return (!is_own).then_some(ChildChange::Stopped(libc::WSTOPSIG(status)));
    } else if libc::WIFSIGNALED(status) {
        ChildChange::Exited { exit_code: None, signal: Some(libc::WTERMSIG(status)) }
    } else {
        ChildChange::Exited { exit_code: Some(libc::WEXITSTATUS(status)), signal: None }
    })
}

/// Whether something may have become of it. A signal of the kernel tells of each thread of any
/// process that this one stops, and to wait for the child until no thread is stopped has all
/// others wait that are to be stopped.
fn has_child_event(pid: i32) -> bool {
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: all zero is what the call fills, and it stays where nothing has changed.
    unsafe {
        let mut told: libc::siginfo_t = std::mem::zeroed();
        let asked = libc::waitid(libc::P_PID, pid.unsigned_abs(), &raw mut told, flags);
        asked != 0 || told.si_pid() != 0
    }
}

/// A signal that came.
struct ReceivedSignal {
    signal: i32,
    /// The process that sent it; `None` where the kernel did.
    sender: Option<i32>,
}

impl ReceivedSignal {
    /// Whether it is to be handed on to the child `pid`.
    ///
    /// The terminal sends its signals to the child itself. So do the child and what it started
    /// when they signal their group, to which this process belongs without their knowledge. Any
    /// other sender may mean this process alone, even one of the same group: a script that kills
    /// what it started is in one group with it.
    fn is_to_forward(&self, pid: i32) -> bool {
        match self.sender {
            _ if self.signal == libc::SIGCHLD => false,
            None => TIMER_SIGNALS.contains(&self.signal),
            Some(sender) => !is_descendant(sender, pid),
        }
    }
}

/// Whether the process `pid` is `ancestor` or was started by it, as far as it can be told.
fn is_descendant(mut pid: i32, ancestor: i32) -> bool {
    while pid != ancestor {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        match parent.and_then(|parent| parent.trim().parse().ok()) {
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    true
}

/// Signals that this process waits for as long as it has this, and that do nothing else meanwhile.
pub struct BlockedSignals {
    signals: libc::sigset_t,
    /// What was blocked before.
    before: libc::sigset_t,
}

impl BlockedSignals {
    /// Blocks every signal that can be blocked and was not ignored when this process began, and
    /// SIGCHLD. An error of this process itself ends it all the same.
    pub fn block() -> BlockedSignals {
        let all = (1..=libc::SIGRTMAX()).filter(|&signal| !inherited::was_ignored(signal));
        let signals = signal_set::from_signals(all.chain([libc::SIGCHLD]));
        reset_sigchld();
        let before = signal_set::change_mask(libc::SIG_BLOCK, &signals);
        BlockedSignals { signals, before }
    }

    /// The next signal that comes within `time`, if one does.
    pub fn next_within(&self, time: Duration) -> Option<i32> {
        let time = libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: the set and the time live, and nothing is to be filled.
        let signal = unsafe { libc::sigtimedwait(&self.signals, null_mut(), &time) };
        (signal > 0).then_some(signal)
    }

    /// Stops this process as `signal` does, until it is continued.
    pub fn stop(&self, signal: i32) {
        stop(signal);
    }

    /// The next signal; `None` where waiting was interrupted, such as by a stop.
    fn next(&self) -> Option<ReceivedSignal> {
        let info = signal_set::wait(&self.signals).ok()?;
        // SAFETY: a signal that a process sent has the sender's number.
        let sender = (info.si_code <= 0).then(|| unsafe { info.si_pid() });
        Some(ReceivedSignal { signal: info.si_signo, sender })
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // What came while the program ended was for the program.
        // SAFETY: the set and the time live, and nothing is to be filled.
        unsafe { while libc::sigtimedwait(&self.signals, null_mut(), &at_once) > 0 {} }
        signal_set::change_mask(libc::SIG_SETMASK, &self.before);
    }
}
