//! Processes that a probe's child forks off itself: they have its memory.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal,
    waitpid,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::wire::{frame, read};
use crate::Error;

/// A forked process. It is killed and reaped when this drops.
pub(super) struct Forked {
    pid: Option<Pid>,
    answers: PipeReader,
}

impl Forked {
    /// Forks a process that says that it is there, does `work`, and sleeps until it is killed.
    /// What it answers is read by [`Forked::hear`].
    ///
    /// # Errors
    /// When there can be no other process.
    pub(super) fn start(
        work: impl FnOnce(&mut PipeWriter) -> Result<(), Error>,
    ) -> Result<Forked, Error> {
        let (answers, mut answer) = pipe().map_err(|error| Error::call("make a pipe", error))?;
        let parent = getpid();
        let Some(pid) = fork()? else {
            let bound = set_parent_process_death_signal(Some(Signal::KILL));
            // The parent may have died before the line above took effect.
            if bound.is_err() || getppid() != Some(parent) || work(&mut answer).is_err() {
                exit(1);
            }
            loop {
                // SAFETY: it takes and gives nothing.
                unsafe { libc::pause() };
            }
        };
        Ok(Forked { pid: Some(pid), answers })
    }

    /// The next words that it answers.
    ///
    /// # Errors
    /// When it ended before.
    pub(super) fn hear<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        read(&mut self.answers).map_err(|_| Error::Child {
            message: "a process that it forked ended early; see the kernel's log".to_string(),
        })
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        if let Some(pid) = self.pid.take() {
            // It is not reaped yet, so that the number is its own.
            let _ = kill_process(pid, Signal::KILL);
            let _ = reap(pid);
        }
    }
}

/// What processes wait at: each takes a byte out of a pipe.
pub(super) struct Gate {
    waits: PipeReader,
    lets: PipeWriter,
}

impl Gate {
    pub(super) fn new() -> Result<Gate, Error> {
        let (waits, lets) = pipe().map_err(|error| Error::call("make a pipe", error))?;
        Ok(Gate { waits, lets })
    }

    /// Waits until this process may go on.
    pub(super) fn pass(&self) -> Result<(), Error> {
        let passed = (&self.waits).read_exact(&mut [0]);
        passed.map_err(|error| Error::call("wait for the start", error))
    }

    /// Lets as many `processes` go on.
    pub(super) fn open_for(&mut self, processes: usize) -> Result<(), Error> {
        let opened = self.lets.write_all(&vec![1; processes]);
        opened.map_err(|error| Error::call("let a forked process begin", error))
    }
}

/// Has a forked process say `what`.
pub(super) fn say(answer: &mut PipeWriter, what: &impl Serialize) -> Result<(), Error> {
    answer.write_all(&frame(what)).map_err(|error| Error::call("answer", error))
}

/// Forks this process, which has no other thread: nothing in the parent is the child, whose number
/// it is.
///
/// # Errors
/// When there can be no other process.
pub(super) fn fork() -> Result<Option<Pid>, Error> {
    // SAFETY: this process has one thread, so that nothing is locked or half done in the child.
    match unsafe { libc::fork() } {
        -1 => Err(Error::call("fork", io::Error::last_os_error())),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Ends a forked process at once, and leaves what belongs to its parent alone.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: it does not return, and takes no pointer.
    unsafe { libc::_exit(code) }
}

/// Waits until the forked process `pid` is gone.
///
/// # Errors
/// When there is no such child.
pub(super) fn reap(pid: Pid) -> Result<(), Error> {
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::call("wait for a forked process", errno)),
        }
    }
}
