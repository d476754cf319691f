//! The protocol between a probe and its child: frames over pipes, each a length and a value.

use std::io::{self, BufReader, Error as IoError, Read, Write};
use std::mem::zeroed;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::ptr::null_mut;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::results::ProbeResult;
use crate::Error;
use crate::child::ChildProcess;

/// A message of the child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// It got SIGBUS at this address: [`bus_message`].
    Bus([u8; 8]),
    /// The files are opened and mapped.
    Ready {
        /// Address of each mapping, whether or not it is mapped yet.
        addresses: Vec<u64>,
        /// PIDs of the processes that it has forked.
        forked: Vec<u32>,
    },
    /// It failed.
    Failed(String),
    /// It failed because the system refused memory.
    Starved(String),
    /// The steps have run.
    Done(ProbeResult),
    /// The pages that a job begins with have been read.
    HasRead,
}

/// Bytes of the length of a frame.
const LENGTH: usize = 8;

/// Encodes `value` as a frame.
pub(super) fn frame(value: &impl Serialize) -> Vec<u8> {
    let length = [0; LENGTH].to_vec();
    let mut frame =
        postcard::to_extend(value, length).expect("every value that is sent can be encoded");
    let bytes = (frame.len() - LENGTH) as u64;
    frame[..LENGTH].copy_from_slice(&bytes.to_le_bytes());
    frame
}

/// Reads the value of the next frame.
///
/// # Errors
/// The frame is truncated or has another type.
pub(super) fn read<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<T> {
    let mut length = [0; LENGTH];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Sends a reply.
///
/// # Errors
/// Errors of `output`.
pub(super) fn write_reply(output: &mut impl Write, reply: &Reply) -> io::Result<()> {
    output.write_all(&frame(reply))?;
    output.flush()
}

/// The frame of [`Reply::Bus`], encoded without allocation: its variant number and the address.
pub(super) fn bus_message(address: u64) -> [u8; LENGTH + 9] {
    let mut message = [0; LENGTH + 9];
    message[0] = 9;
    message[LENGTH + 1..].copy_from_slice(&address.to_le_bytes());
    message
}

/// Serializes paths of arbitrary bytes.
pub(super) mod paths {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::probe) fn serialize<S: Serializer>(
        paths: &[PathBuf],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| path.as_os_str()))
    }

    pub(in crate::probe) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let paths: Vec<OsString> = Vec::deserialize(deserializer)?;
        Ok(paths.into_iter().map(PathBuf::from).collect())
    }
}

/// Environment variable with tunables of glibc.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// `tunables` with restartable sequences disabled in the C library. The kernel would write to each
/// thread's rseq area, which a forked child does not have.
fn without_rseq(tunables: Option<String>) -> String {
    let before = tunables.filter(|text| !text.is_empty()).map_or(String::new(), |text| text + ":");
    before + "glibc.pthread.rseq=0"
}

/// This program, run again with a hidden argument; killed on drop.
#[derive(Debug)]
pub(super) struct ChildPipe {
    pub(super) child: ChildProcess,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl ChildPipe {
    /// Starts the child selected by `argument`.
    pub(super) fn spawn(argument: &str) -> Result<ChildPipe, Error> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(argument).env(TUNABLES, without_rseq(std::env::var(TUNABLES).ok()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Terminal signals go to the parent, which then stops the child.
        command.process_group(0);
        let child = ChildProcess::spawn(&mut command);
        let mut child = child.map_err(|error| Error::call("start the probe's child", error))?;
        let input = child.0.stdin.take().expect("the child's input is a pipe");
        let output = child.0.stdout.take().expect("the child's output is a pipe");
        Ok(ChildPipe { child, input, output: BufReader::new(output) })
    }

    /// PID of the child.
    pub(super) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Sends it `bytes`.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        // The exit status of a dead child says more than a closed pipe.
        let _ = self.input.write_all(bytes).and_then(|()| self.input.flush());
    }

    /// Receives its reply.
    pub(super) fn receive(&mut self) -> Result<Reply, Error> {
        match read(&mut self.output) {
            Ok(Reply::Failed(message)) => Err(Error::Child { message }),
            Ok(Reply::Starved(message)) => Err(Error::Starved { message }),
            Ok(reply) => Ok(reply),
            Err(_) => Err(self.protocol_error()),
        }
    }

    /// The error for a child that violated the protocol.
    pub(super) fn protocol_error(&mut self) -> Error {
        let _ = self.output.read_to_end(&mut Vec::new());
        match self.child.wait_exit() {
            Ok(status) => match status.signal() {
                Some(signal) => kill_error(signal),
                None => Error::Child {
                    message: format!("it ended early with {status}; is main_if_child called?"),
                },
            },
            Err(error) => Error::call("wait for the probe's child", error),
        }
    }
}

/// The error for a child that `signal` killed, with a remedy.
pub(crate) fn kill_error(signal: i32) -> Error {
    let remedy = match signal {
        libc::SIGBUS => "the file must not shrink, and its disk must not fail, while it is read",
        libc::SIGABRT => "if it says that memory failed, raise ulimit -v, or map less",
        libc::SIGKILL => "if nobody did, memory ran out: allow more, or use a smaller file",
        libc::SIGINT | libc::SIGTERM => "run it again without ending it",
        _ => "run it again, and report it if it happens again",
    };
    Error::ChildKilled { signal, remedy }
}

/// Exit code of a child that reported SIGBUS.
const EXIT_CODE: i32 = 1;

/// Installs a handler that reports SIGBUS to the parent, with its address.
pub(super) fn install_sigbus_handler() -> Result<(), Error> {
    // SAFETY: the structure is plain data, for which all zeros is valid; the handler is
    // async-signal-safe.
    let done = unsafe {
        let mut action: libc::sigaction = zeroed();
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_bus;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGBUS, &raw const action, null_mut())
    };
    match done {
        0 => Ok(()),
        _ => Err(Error::call("watch for SIGBUS", IoError::last_os_error())),
    }
}

extern "C" fn on_bus(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes the structure to a handler installed with SA_SIGINFO; write and
    // _exit are async-signal-safe.
    unsafe {
        let message = bus_message((*info).si_addr() as u64);
        libc::write(libc::STDOUT_FILENO, message.as_ptr().cast(), message.len());
        libc::_exit(EXIT_CODE);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use filemap_core::address::vma::Advice;
    use filemap_core::units::{PageCount, PageIndex};
    use filemap_job::program::{
        Fadvise, Madvise, NamedMapping, ProgramStep, Rounds, Thread, ThreadStep,
    };
    use filemap_job::{Pattern, Phase, Workload};

    use super::super::process::ProbeProcess;
    use super::*;

    fn process() -> ProbeProcess {
        let mut mapping = NamedMapping::from_first_pages(PageCount(9));
        (mapping.mapping.advice, mapping.mapping.offset) = (Advice::HUGEPAGE, PageIndex(1 << 40));
        let (first, pages) = (PageCount(3), PageCount(4));
        let pattern = Pattern::Generated(Workload::ReadRandom);
        let accesses =
            Phase { pattern, accesses: 7, seed: u64::MAX, has_own_seed: true, bs_bytes: 4096 };
        let (offset_bytes, len_bytes) = (1 << 40, 1 << 20);
        let steps = vec![
            ProgramStep::touch(0, vec![7, u64::MAX]),
            ProgramStep::Read { open: 1, offset_bytes, len_bytes, accesses, think_ns: 5 },
            ProgramStep::Madvise { mapping: 1, advice: Madvise::PopulateRead, first, pages },
            ProgramStep::Fadvise {
                open: 2,
                advice: Fadvise::NoReuse,
                offset_bytes: 0,
                len_bytes: None,
            },
        ];
        let after = vec![(1, vec![ThreadStep { thread: 0, step: 3 }])];
        let thread = Thread { rounds: Rounds::For(5), after, ..Thread::from_steps(steps) };
        ProbeProcess {
            files: vec![OsString::from_vec(vec![b'/', 0xff, b' ']).into(), "c".into()],
            opens: vec![0, 1, 0],
            mappings: vec![mapping],
            threads: vec![thread],
            barriers: vec![2, 9],
            cpus: Some(2),
            ..ProbeProcess::default()
        }
    }

    #[test]
    fn process_round_trips() {
        let mut sent = frame(&process());
        sent.extend_from_slice(&frame(&Reply::Bus([1; 8])));
        let mut input = sent.as_slice();
        assert_eq!(read::<ProbeProcess>(&mut input).unwrap(), process());
        // The following frame is intact.
        assert!(matches!(read(&mut input), Ok(Reply::Bus([1, ..]))));
    }

    #[test]
    fn rejects_truncated_process() {
        let bytes = frame(&process());
        assert!((0..bytes.len()).all(|end| read::<ProbeProcess>(&mut &bytes[..end]).is_err()));
    }

    #[test]
    fn sigbus_message_is_a_reply() {
        let address = 0x7f12_3456_789a_u64;
        assert_eq!(bus_message(address).to_vec(), frame(&Reply::Bus(address.to_le_bytes())));
    }
}
