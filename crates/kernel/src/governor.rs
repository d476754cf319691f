//! Runs a governor for a probe: `filemap govern --pid`, as users start it.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::Error;
use crate::child::{ChildProcess, die_with_parent};
use crate::procstat::read_bytes;

/// Timeout for a governor to follow a process.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for it to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A process that governs another one. It is killed when this drops.
#[derive(Debug)]
pub(crate) struct GovernorProcess {
    child: ChildProcess,
}

impl GovernorProcess {
    /// Starts a governor of the process `pid`, and waits until it follows the process.
    ///
    /// # Errors
    /// It cannot be started, or cannot follow the process.
    pub(crate) fn start_for(pid: u32) -> Result<GovernorProcess, Error> {
        let failed = |error: io::Error| Error::call("start a governor", error);
        // The protocol of sd_notify(3). An abstract address leaves no file behind.
        let name = format!("filemap-governor-of-{pid}");
        let address = SocketAddr::from_abstract_name(&name).map_err(failed)?;
        let ready = UnixDatagram::bind_addr(&address).map_err(failed)?;
        ready.set_read_timeout(Some(READY_TIMEOUT)).map_err(failed)?;
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["govern", "--no-memory", "--pid", &pid.to_string()])
            .env("NOTIFY_SOCKET", format!("@{name}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        die_with_parent(&mut command);
        let child = ChildProcess::spawn(&mut command).map_err(failed)?;
        let mut message = [0; 64];
        let is_ready = ready.recv(&mut message).is_ok_and(|length| {
            message[..length].split(|&byte| byte == b'\n').any(|line| line == b"READY=1")
        });
        if is_ready {
            return Ok(GovernorProcess { child });
        }
        Err(Error::unavailable(
            format!("a governor of process {pid}"),
            format!("filemap govern --pid {pid} says why, for a process of the same user"),
        ))
    }

    /// Bytes read from storage on its behalf; `None` if the kernel does not account them.
    pub(crate) fn read_bytes(&self) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.pid())).ok()?;
        read_bytes(&text)
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Terminates the governor, and waits for its exit.
    pub(crate) fn end(mut self) {
        // It may have exited already.
        let _ = kill_process(Pid::from_child(&self.child.0), Signal::TERM);
        // Dropping kills it if it does not exit by itself.
        let _ = self.child.wait(EXIT_TIMEOUT, || None::<()>);
    }
}
