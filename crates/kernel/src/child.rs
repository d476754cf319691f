//! Programs that run as children of this one.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, pidfd_open, set_parent_process_death_signal,
};

/// How often a running child is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Keeps signals of the terminal from the child, and has the kernel kill it when this process is
/// gone, however that went.
pub(crate) fn die_with_parent(command: &mut Command) {
    let parent = Pid::from_raw(std::process::id().cast_signed());
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the line above took effect.
        if getppid() == parent { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    command.process_group(0);
    // SAFETY: between fork and exec only two system calls are made; nothing is allocated.
    unsafe { command.pre_exec(before_exec) };
}

/// A child while it runs; killed and reaped when dropped.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Waits until the child ends, `until` has something to say, or `limit` is over.
    ///
    /// # Errors
    /// When the child cannot be watched.
    pub(crate) fn wait<T>(
        &mut self,
        limit: Duration,
        mut until: impl FnMut() -> Option<T>,
    ) -> std::io::Result<Ended<T>> {
        let ended = pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty())?;
        let deadline = Instant::now() + limit;
        let slice = Timespec::try_from(LOOK_EVERY).expect("a tenth of a second fits");
        loop {
            // Interrupted or timed out, the state is looked at all the same.
            let _ = poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&slice));
            if let Some(status) = self.0.try_wait()? {
                return Ok(Ended::Itself(status));
            }
            if let Some(reason) = until() {
                return Ok(Ended::Because(reason));
            }
            if Instant::now() >= deadline {
                return Ok(Ended::Late);
            }
        }
    }
}

/// Why nobody waits for a child any more.
#[derive(Debug)]
pub(crate) enum Ended<T> {
    /// It has ended.
    Itself(ExitStatus),
    /// It runs, and there is a reason not to wait.
    Because(T),
    /// It runs after its time.
    Late,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a child that has been reaped already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
