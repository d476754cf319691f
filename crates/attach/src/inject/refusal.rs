//! Why a thread was not made to advise.

use rustix::io::Errno;
use thiserror::Error;

/// Why no advice was given. The program is as if nothing had been tried.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("process {pid} has no thread {tid} any more")]
    Gone { pid: u32, tid: u32 },
    #[error("thread {tid} is traced already (a debugger, strace or the program itself)")]
    Traced { tid: u32 },
    #[error("thread {tid} is stopped by job control")]
    Stopped { tid: u32 },
    #[error("thread {tid} is in a system call")]
    InSystemCall { tid: u32 },
    #[error("thread {tid} is where it must not be held: {place}")]
    Busy { tid: u32, place: &'static str },
    #[error("thread {tid} did not stop in {milliseconds} ms")]
    Slow { tid: u32, milliseconds: u64 },
    /// Advice is given, or will be: the thread was let go while it gave it.
    #[error("thread {tid} was still carrying out the advice after {milliseconds} ms")]
    Unfinished { tid: u32, milliseconds: u64 },
    #[error("what is mapped at {address:#x} is not what was meant")]
    Changed { address: u64 },
    #[error("{what} of thread {tid} is refused ({errno}): {remedy}")]
    Forbidden { tid: u32, what: &'static str, errno: Errno, remedy: &'static str },
    #[error("{what}: only threads of 64-bit x86 programs are made to advise")]
    Foreign { what: &'static str },
    #[error("process {pid} filters its system calls: {filter}")]
    Filtered { pid: u32, filter: &'static str },
    #[error("process {pid} has no room at the end of its vDSO for {needed_bytes} bytes")]
    NoPlace { pid: u32, needed_bytes: usize },
    #[error("madvise(2) in process {pid} failed: {errno}")]
    Failed { pid: u32, errno: Errno },
}

impl Refusal {
    /// Whether it is no use to try again, with another thread or later.
    pub fn is_lasting(&self) -> bool {
        match self {
            Refusal::Traced { .. }
            | Refusal::Stopped { .. }
            | Refusal::InSystemCall { .. }
            | Refusal::Busy { .. }
            | Refusal::Slow { .. }
            | Refusal::Unfinished { .. } => false,
            Refusal::Failed { errno, .. } => !matches!(*errno, Errno::AGAIN | Errno::INTR),
            Refusal::Gone { .. }
            | Refusal::Changed { .. }
            | Refusal::Forbidden { .. }
            | Refusal::Foreign { .. }
            | Refusal::Filtered { .. }
            | Refusal::NoPlace { .. } => true,
        }
    }
}
