//! Programs that run as children of this one.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, set_parent_process_death_signal, setsid,
};

use crate::shutdown;

/// Interval at which a running child is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Shields the child from terminal signals, and has the kernel kill it when this process ends, even
/// by SIGKILL.
pub(crate) fn die_with_parent(command: &mut Command) {
    let parent = getpid();
    command.process_group(0);
    // SAFETY: between fork and exec only two system calls are made; nothing is allocated.
    unsafe { command.pre_exec(move || set_parent_death_signal(parent)) };
}

/// Likewise for a child in its own session, which has no controlling terminal: reading from one
/// would stop a background process.
pub(crate) fn die_with_parent_in_session(command: &mut Command) {
    let parent = getpid();
    let before_exec = move || {
        setsid()?;
        set_parent_death_signal(parent)
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated.
    unsafe { command.pre_exec(before_exec) };
}

/// Has the kernel kill this process when the thread of `parent` that started it exits. Does not
/// allocate, so a child may call it between fork and exec.
///
/// # Errors
/// The parent has already exited.
pub fn set_parent_death_signal(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have exited before the call took effect.
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}

/// Runs a program without input, and returns its (short) output.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    die_with_parent(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = ChildProcess::spawn(command)?;
    let (stdout, stderr) = (running.0.stdout.take(), running.0.stderr.take());
    // Both pipes are drained, since either could fill up.
    let stderr = std::thread::spawn(move || read_all(stderr));
    let stdout = read_all(stdout)?;
    let stderr = stderr.join().expect("reading does not panic")?;
    Ok(Output { status: running.wait_exit()?, stdout, stderr })
}

fn read_all(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes)).map(|_| bytes)
}

/// A running child; killed and reaped on drop.
#[derive(Debug)]
pub(crate) struct ChildProcess(pub(crate) Child);

impl ChildProcess {
    /// Starts a child that is killed when this process ends because of a signal.
    ///
    /// # Errors
    /// The child cannot be started, or this process is shutting down.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        shutdown::spawn(command).map(ChildProcess)
    }

    /// Kills the child if it is still running. Returns its exit status.
    pub(crate) fn kill_and_wait(&mut self) -> io::Result<ExitStatus> {
        // Fails only if the child has already been reaped.
        let _ = self.0.kill();
        self.wait_exit()
    }

    /// Waits for the child to exit. Returns its exit status.
    pub(crate) fn wait_exit(&mut self) -> io::Result<ExitStatus> {
        loop {
            if self.poll_exit()
                && let Some(status) = self.try_reap()?
            {
                return Ok(status);
            }
        }
    }

    /// Waits until the child exits, `until` returns a value, or `limit` has passed.
    ///
    /// # Errors
    /// The child cannot be watched.
    pub(crate) fn wait<T>(
        &mut self,
        limit: Duration,
        mut until: impl FnMut() -> Option<T>,
    ) -> io::Result<WaitResult<T>> {
        let start = Instant::now();
        loop {
            if self.poll_exit()
                && let Some(status) = self.try_reap()?
            {
                return Ok(WaitResult::Exited(status));
            }
            if let Some(reason) = until() {
                return Ok(WaitResult::Interrupted(reason));
            }
            if start.elapsed() >= limit {
                return Ok(WaitResult::TimedOut);
            }
        }
    }

    /// Waits briefly for the child's death. Returns whether it may be dead.
    ///
    /// wait(2) for a live child could consume the ptrace stop of one of its threads.
    fn poll_exit(&self) -> bool {
        let slice = Timespec::try_from(POLL_INTERVAL).expect("a tenth of a second fits");
        match pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty()) {
            Ok(child) => {
                poll(&mut [PollFd::new(&child, PollFlags::IN)], Some(&slice)).is_ok_and(|n| n > 0)
            }
            Err(_) => {
                std::thread::sleep(POLL_INTERVAL / 20);
                true
            }
        }
    }

    /// Reaps the child if it is dead. Its PID may be reused from then on.
    fn try_reap(&mut self) -> io::Result<Option<ExitStatus>> {
        shutdown::try_reap(&mut self.0)
    }
}

/// Why a wait for a child ended.
#[derive(Debug)]
pub(crate) enum WaitResult<T> {
    /// The child exited.
    Exited(ExitStatus),
    /// The child is running, but the caller's condition was met.
    Interrupted(T),
    /// The child is still running after the time limit.
    TimedOut,
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.kill_and_wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_has_both_streams_and_status() {
        let mut shell = Command::new("sh");
        let output = output(shell.args(["-c", "echo a; echo b >&2; exit 3"])).unwrap();
        assert_eq!((output.stdout, output.stderr), (b"a\n".to_vec(), b"b\n".to_vec()));
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn dropping_kills_child() {
        let running = ChildProcess::spawn(Command::new("sleep").arg("1000")).unwrap();
        let pid = running.0.id();
        assert!(shutdown::is_listed(pid));
        drop(running);
        assert!(!shutdown::is_listed(pid));
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}
