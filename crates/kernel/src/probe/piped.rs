//! A child of a probe, and the pipes by which it is told what to do and answers.

use std::io::{BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use super::wire::{Reply, read};
use crate::Error;
use crate::child::ChildProcess;

/// Exit code of a child that could not allocate memory.
pub const OOM_EXIT_CODE: i32 = 4;

/// Where the C library is told how to start.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// `tunables` with which the C library registers no restartable sequences. The kernel would write
/// into memory of each thread that a forked child does not have.
fn without_rseq(tunables: Option<String>) -> String {
    let before = tunables.filter(|text| !text.is_empty()).map_or(String::new(), |text| text + ":");
    before + "glibc.pthread.rseq=0"
}

/// This program, run again with a hidden argument. It is killed when this drops.
#[derive(Debug)]
pub(super) struct ChildPipe {
    pub(super) child: ChildProcess,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl ChildPipe {
    /// Starts the child that `argument` names.
    pub(super) fn spawn(argument: &str) -> Result<ChildPipe, Error> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(argument).env(TUNABLES, without_rseq(std::env::var(TUNABLES).ok()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // A signal from the terminal is for the parent, which then ends the child.
        command.process_group(0);
        let child = ChildProcess::spawn(&mut command);
        let mut child = child.map_err(|error| Error::call("start the probe's child", error))?;
        let input = child.0.stdin.take().expect("the child's input is a pipe");
        let output = child.0.stdout.take().expect("the child's output is a pipe");
        Ok(ChildPipe { child, input, output: BufReader::new(output) })
    }

    /// Process id of the child.
    pub(super) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Sends it `bytes`.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        // A child that is gone says more by how it ended than a closed pipe does.
        let _ = self.input.write_all(bytes).and_then(|()| self.input.flush());
    }

    /// What it answers.
    pub(super) fn receive(&mut self) -> Result<Reply, Error> {
        match read(&mut self.output) {
            Ok(Reply::Failed(message)) => Err(Error::Child { message }),
            Ok(Reply::Starved(message)) => Err(Error::Starved { message }),
            Ok(reply) => Ok(reply),
            Err(_) => Err(self.protocol_error()),
        }
    }

    /// The error for a child that did not answer as agreed.
    pub(super) fn protocol_error(&mut self) -> Error {
        let _ = self.output.read_to_end(&mut Vec::new());
        match self.child.wait_exit() {
            Ok(status) => match status.signal() {
                Some(signal) => kill_error(signal),
                None if status.code() == Some(OOM_EXIT_CODE) => {
                    Error::Starved { message: "it could not allocate memory".to_string() }
                }
                None => Error::Child {
                    message: format!("it ended early with {status}; is main_if_child called?"),
                },
            },
            Err(error) => Error::call("wait for the probe's child", error),
        }
    }
}

/// The error for a child that `signal` killed, with what to do.
pub(crate) fn kill_error(signal: i32) -> Error {
    let remedy = match signal {
        libc::SIGBUS => "the file must not shrink, and its disk must not fail, while it is read",
        libc::SIGKILL => "if nobody did, memory ran out: allow more, or use a smaller file",
        libc::SIGINT | libc::SIGTERM => "run it again without ending it",
        _ => "run it again, and report it if it happens again",
    };
    Error::ChildKilled { signal, remedy }
}
