//! Makes a thread of another process advise.
//!
//! The thread must never notice, whatever happens to this process, which may be killed between
//! any two of its system calls. The kernel then lets the thread go on with the registers that it
//! has. So the thread is never given registers that lead nowhere: before they are changed, the
//! unused end of the process' vDSO gets a few instructions, the *stub*. They make the system call,
//! load the thread's own values into the registers that this changed, and jump to where the
//! thread was. One `PTRACE_SETREGS` sends the thread there. Without us it heals itself.
//!
//! There are three ways to go on from there.
//!
//! - To let the thread go at once. This has the fewest stops. But nobody learns whether the advice
//!   was taken, and when; and a signal that arrives first lets a handler see the stub's address.
//! - To stop the thread a second time after the call by another interruption, and to give it its
//!   registers back. The interruption can meet a signal, job control or another system call.
//! - To follow the one call to its entry and its exit, where the thread stops by itself. This is
//!   what is done. The result is known. At the exit the registers are given back, so the thread
//!   is out of the stub for certain, and the room is cleared. Anything else that stops the thread
//!   before the call ends the attempt: registers back, the signal passed on, no handler has seen
//!   the stub. Where the thread takes too long it is left to the stub.
//!
//! Signals are neither blocked nor taken, and single steps are not used: they end in a SIGTRAP
//! that would reset a disposition. Stops are looked at with `WNOWAIT`: after a wait that takes the
//! stop for a signal, the signal would be lost with a tracer that is killed.
//!
//! A thread that waits in a system call is left alone. One that is in the kernel and on a CPU
//! cannot be told from one that runs its program: `/proc` says that it runs. To stop it ends its
//! call as a signal would, as soon as the call waits or looks for signals. What a program would see
//! of that is undone.
//!
//! - A call that the kernel begins again by itself is left to it.
//! - A call that has failed with EINTR, where no handler ran, is made again. If this process is
//!   killed just before that, the program sees EINTR.
//! - A write to a pipe, a socket or a terminal, send(2), recv(2) of all that is asked for and
//!   getrandom(2) come back short. A stub then does the rest and adds up both parts. It stays until
//!   the thread needs room again, since nobody waits for the end of the call.
//!
//! What can show: calls with several buffers (writev(2), sendmsg(2)) may come back short. So may
//! the others in a process with a seccomp filter, on a FIFO with a name, and where a thread is
//! given up on because it does not stop in time.
//!
//! Tracing belongs to a thread. Each attempt has one of its own, and ends with it: that is the
//! one way to let go of a thread that does not stop.

#[cfg(target_arch = "x86_64")]
mod areas;
#[cfg(target_arch = "x86_64")]
mod injection;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod machine;
#[cfg(target_arch = "x86_64")]
mod padding;
#[cfg(target_arch = "x86_64")]
mod seccomp;
#[cfg(target_arch = "x86_64")]
mod status;
#[cfg(target_arch = "x86_64")]
mod tracee;

use rustix::io::Errno;
use thiserror::Error;

#[cfg(not(target_arch = "x86_64"))]
use crate::mapped_range::MappedRange;

/// Advice on how memory will be touched. What would change the contents of memory cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAdvice {
    Normal,
    Random,
    Sequential,
    WillNeed,
    PopulateRead,
    /// The pages of files leave the page table, and memory where nobody else has them.
    PageOut,
}

impl MemoryAdvice {
    /// The `MADV_` number.
    pub fn number(self) -> i32 {
        match self {
            MemoryAdvice::Normal => libc::MADV_NORMAL,
            MemoryAdvice::Random => libc::MADV_RANDOM,
            MemoryAdvice::Sequential => libc::MADV_SEQUENTIAL,
            MemoryAdvice::WillNeed => libc::MADV_WILLNEED,
            MemoryAdvice::PopulateRead => libc::MADV_POPULATE_READ,
            MemoryAdvice::PageOut => libc::MADV_PAGEOUT,
        }
    }
}

/// Advice that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectionReport {
    /// For how long the thread was kept from running, at most, with the time that the call took.
    pub stopped_ns: u64,
}

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
    Unsupported { what: &'static str },
    #[error("process {pid} filters its system calls: {filter}")]
    Filtered { pid: u32, filter: &'static str },
    #[error("process {pid} has no room at the end of its vDSO for {needed_bytes} bytes")]
    NoRoom { pid: u32, needed_bytes: usize },
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
            | Refusal::Unsupported { .. }
            | Refusal::Filtered { .. }
            | Refusal::NoRoom { .. } => true,
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn madvise(
    _: u32,
    _: u32,
    _: &MappedRange,
    _: MemoryAdvice,
) -> Result<InjectionReport, Refusal> {
    Err(Refusal::Unsupported { what: std::env::consts::ARCH })
}

#[cfg(not(target_arch = "x86_64"))]
pub fn advise_any(
    pid: u32,
    preferred_tid: u32,
    range: &MappedRange,
    advice: MemoryAdvice,
) -> Result<InjectionReport, Refusal> {
    madvise(pid, preferred_tid, range, advice)
}

#[cfg(target_arch = "x86_64")]
mod attempt;
#[cfg(target_arch = "x86_64")]
pub use attempt::{advise_all, advise_any, madvise, without_injections};
