//! Forked processes of a probe's child, which share its memory.

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

/// A forked process; killed and reaped on drop.
pub(super) struct ForkedProcess {
    pid: Option<Pid>,
    messages: PipeReader,
}

impl ForkedProcess {
    /// Forks a process that runs `work`, which sends messages, and then sleeps until it is killed.
    ///
    /// # Errors
    /// No process can be created.
    pub(super) fn start(
        work: impl FnOnce(&mut PipeWriter) -> Result<(), Error>,
    ) -> Result<ForkedProcess, Error> {
        let (messages, mut sender) = pipe().map_err(|error| Error::call("make a pipe", error))?;
        let parent = getpid();
        let Some(pid) = fork()? else {
            let bound = set_parent_process_death_signal(Some(Signal::KILL));
            // The parent may have exited before the call took effect.
            if bound.is_err() || getppid() != Some(parent) || work(&mut sender).is_err() {
                exit(1);
            }
            loop {
                // SAFETY: pause takes no arguments.
                unsafe { libc::pause() };
            }
        };
        Ok(ForkedProcess { pid: Some(pid), messages })
    }

    /// Receives its next message.
    ///
    /// # Errors
    /// It has exited.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        read(&mut self.messages).map_err(|_| Error::Child {
            message: "a process that it forked ended early; see the kernel's log".to_string(),
        })
    }
}

impl Drop for ForkedProcess {
    fn drop(&mut self) {
        if let Some(pid) = self.pid.take() {
            // Not reaped yet, so the PID still belongs to it.
            let _ = kill_process(pid, Signal::KILL);
            let _ = reap(pid);
        }
    }
}

/// A start signal: each waiting process reads a byte from a pipe.
pub(super) struct StartGate {
    reader: PipeReader,
    writer: PipeWriter,
}

impl StartGate {
    pub(super) fn new() -> Result<StartGate, Error> {
        let (reader, writer) = pipe().map_err(|error| Error::call("make a pipe", error))?;
        Ok(StartGate { reader, writer })
    }

    /// Waits for the signal.
    pub(super) fn wait(&self) -> Result<(), Error> {
        let read = (&self.reader).read_exact(&mut [0]);
        read.map_err(|error| Error::call("wait for the start", error))
    }

    /// Releases this many processes.
    pub(super) fn release(&mut self, processes: usize) -> Result<(), Error> {
        let written = self.writer.write_all(&vec![1; processes]);
        written.map_err(|error| Error::call("let a forked process begin", error))
    }
}

/// Sends a message from a forked process.
pub(super) fn send(sender: &mut PipeWriter, message: &impl Serialize) -> Result<(), Error> {
    sender.write_all(&frame(message)).map_err(|error| Error::call("answer", error))
}

/// Forks this single-threaded process. Returns the child's PID, and `None` in the child.
///
/// # Errors
/// No process can be created.
pub(super) fn fork() -> Result<Option<Pid>, Error> {
    // SAFETY: this process has a single thread, so the child inherits no held locks or partial
    // updates.
    match unsafe { libc::fork() } {
        -1 => Err(Error::call("fork", io::Error::last_os_error())),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Exits a forked process without running its parent's exit handlers.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: it does not return, and takes no pointer.
    unsafe { libc::_exit(code) }
}

/// Waits for the forked process `pid`.
///
/// # Errors
/// There is no such child.
pub(super) fn reap(pid: Pid) -> Result<(), Error> {
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::call("wait for a forked process", errno)),
        }
    }
}
