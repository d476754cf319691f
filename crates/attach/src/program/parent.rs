//! Runs a program as a child that this process is transparent to: the child shares its files,
//! terminal and process group, receives the signals sent to this process, and determines how this
//! process ends.

use std::fs;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use super::lookup::{LaunchError, Program};
use super::start::launch_error;
use super::{inherited, signal_set};
use crate::without_injections;

/// Signals of interval timers. A timer set before this process started belongs to this process
/// only; fork(2) does not pass it on.
const TIMER_SIGNALS: [i32; 3] = [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF];

/// Signals that stop a process until SIGCONT.
pub const STOP_SIGNALS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Shells report death by signal N as exit code 128 + N.
const SIGNAL_EXIT_BASE: i32 = 128;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildExit {
    /// Exit code; `None` if a signal killed it.
    pub exit_code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    pub elapsed: Duration,
}

/// Runs `program` and waits for its end, forwarding signals of `waited` to it. The child inherits
/// environment and files. `before` runs in the child right before exec, and must be
/// async-signal-safe.
///
/// # Errors
/// The program cannot be run.
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
        if let Some(signal_info) = waited.next()
            && signal_info.is_to_forward(pid)
        {
            // SAFETY: the child has not been reaped, so its PID cannot have been reused.
            unsafe { libc::kill(pid, signal_info.signal) };
        }
        // Pending signals of one number coalesce, so one SIGCHLD may stand for several changes.
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

/// Resets SIGCHLD, so that children can be waited for even if the parent of this process ignores
/// it. Programs started by this process still inherit the original disposition.
pub fn reset_sigchld() {
    // SAFETY: a default disposition runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Stops this process by the `signal` that stopped the child, until SIGCONT. That SIGCONT then
/// stays pending to be forwarded.
fn stop(signal: i32) {
    // An ignored signal would not stop this process.
    let signal = if inherited::was_ignored(signal) { libc::SIGSTOP } else { signal };
    // SAFETY: the default disposition stops, and runs no code of ours.
    unsafe { libc::raise(signal) };
    if signal != libc::SIGSTOP {
        let only = signal_set::from_signals([signal]);
        signal_set::change_mask(libc::SIG_UNBLOCK, &only);
        signal_set::change_mask(libc::SIG_BLOCK, &only);
    }
}

/// Kills this process by `signal`, without a core dump of its own. Returns the exit code to use if
/// it survives.
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

/// State change of a child.
enum ChildChange {
    /// Stopped by this signal.
    Stopped(i32),
    /// Exited with a code, or killed by a signal.
    Exited { exit_code: Option<i32>, signal: Option<i32> },
}

/// Consumes and returns the next state change of child `pid`, if any.
fn poll_child(pid: i32) -> Option<ChildChange> {
    if !has_child_event(pid) {
        return None;
    }
    let mut status = 0;
    let flags = libc::WNOHANG | libc::WUNTRACED;
    // SAFETY: the call fills the status.
    let changed = without_injections(|| unsafe { libc::waitpid(pid, &mut status, flags) });
    if changed != pid {
        return None;
    }
    Some(if libc::WIFSTOPPED(status) {
        // The ptrace stop of a thread that this process holds is not a stop of the program.
        let is_own = status >> 16 != 0 || !STOP_SIGNALS.contains(&libc::WSTOPSIG(status));
        return (!is_own).then_some(ChildChange::Stopped(libc::WSTOPSIG(status)));
    } else if libc::WIFSIGNALED(status) {
        ChildChange::Exited { exit_code: None, signal: Some(libc::WTERMSIG(status)) }
    } else {
        ChildChange::Exited { exit_code: Some(libc::WEXITSTATUS(status)), signal: None }
    })
}

/// Whether the child may have changed state. Checked first because SIGCHLD also announces each
/// ptrace stop of any thread held by this process, and waiting for the child under
/// [`without_injections`] blocks all injections.
fn has_child_event(pid: i32) -> bool {
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: siginfo_t may be all zero; it stays so if nothing has changed.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let asked = libc::waitid(libc::P_PID, pid.unsigned_abs(), &raw mut info, flags);
        asked != 0 || info.si_pid() != 0
    }
}

/// A signal received by this process.
struct ReceivedSignal {
    signal: i32,
    /// PID of the sender; `None` if the kernel sent it.
    sender: Option<i32>,
}

impl ReceivedSignal {
    /// Whether the signal is to be forwarded to the child `pid`.
    ///
    /// Signals of the terminal reach the child directly. So do signals that the child and its
    /// descendants send to their process group, which includes this process without their
    /// knowledge. Any other sender may mean this process alone, even from within the group: a
    /// script that kills what it started shares a group with it.
    fn is_to_forward(&self, pid: i32) -> bool {
        match self.sender {
            _ if self.signal == libc::SIGCHLD => false,
            None => TIMER_SIGNALS.contains(&self.signal),
            Some(sender) => !is_descendant(sender, pid),
        }
    }
}

/// Whether process `pid` is `ancestor` or a descendant of it, as far as `PPid` shows.
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

/// Blocked signals that this process waits for; dropping this restores the mask.
pub struct BlockedSignals {
    signals: libc::sigset_t,
    /// The signal mask before.
    before: libc::sigset_t,
}

impl BlockedSignals {
    /// Blocks SIGCHLD, and every other signal that can be blocked and was not ignored at startup.
    /// Signals for faults of this process, such as SIGSEGV, still kill it.
    pub fn block() -> BlockedSignals {
        let all = (1..=libc::SIGRTMAX()).filter(|&signal| !inherited::was_ignored(signal));
        let signals = signal_set::from_signals(all.chain([libc::SIGCHLD]));
        reset_sigchld();
        let before = signal_set::change_mask(libc::SIG_BLOCK, &signals);
        BlockedSignals { signals, before }
    }

    /// Waits for the next signal for up to `time`.
    pub fn next_within(&self, time: Duration) -> Option<i32> {
        let time = libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: the set and the time outlive the call; no siginfo_t is requested.
        let signal = unsafe { libc::sigtimedwait(&self.signals, null_mut(), &time) };
        (signal > 0).then_some(signal)
    }

    /// Stops this process by `signal`, until SIGCONT.
    pub fn stop(&self, signal: i32) {
        stop(signal);
    }

    /// Waits for the next signal; `None` if interrupted, for instance by a stop.
    fn next(&self) -> Option<ReceivedSignal> {
        let info = signal_set::wait(&self.signals).ok()?;
        // SAFETY: `si_pid` is valid for signals sent by processes.
        let sender = (info.si_code <= 0).then(|| unsafe { info.si_pid() });
        Some(ReceivedSignal { signal: info.si_signo, sender })
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // Signals that arrived while the program was ending were meant for it.
        // SAFETY: the set and the time outlive the call; no siginfo_t is requested.
        unsafe { while libc::sigtimedwait(&self.signals, null_mut(), &at_once) > 0 {} }
        signal_set::change_mask(libc::SIG_SETMASK, &self.before);
    }
}
