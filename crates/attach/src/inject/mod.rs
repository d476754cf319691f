//! Injects madvise(2) calls into threads of other processes.
//!
//! The target must never notice, whatever happens to this process: it may be killed between any two
//! of its system calls, upon which the kernel resumes the tracee with its current registers. The
//! tracee therefore never has registers that lead nowhere. Before they change, a few instructions,
//! the *stub*, are written to the unused padding at the end of the target's vDSO. The stub makes
//! the system call, reloads the registers changed for it and jumps back to where the thread was. A
//! single `PTRACE_SETREGS` redirects the thread to the stub; without a tracer, it recovers by
//! itself.
//!
//! There are three ways to proceed from there:
//!
//! - Detach immediately. This takes the fewest stops, but the result and the time of the call
//!   remain unknown, and a handler of a signal that arrives first sees the address of the stub.
//! - Interrupt the thread again after the call and restore its registers. The interrupt can
//!   coincide with a signal, a job control stop or another system call.
//! - Follow the call to its entry and exit stops by `PTRACE_SYSCALL`. This is what we do. It yields
//!   the result; restoring the registers at the exit stop guarantees that the thread has left the
//!   stub, which can then be cleared. Any other stop before the call ends the attempt: the
//!   registers are restored and the signal is delivered, so that no handler sees the stub. A thread
//!   that takes too long is left to finish in the stub.
//!
//! Signals are neither blocked nor consumed. Single-stepping is not used, since it ends in a
//! SIGTRAP that would reset a disposition. Stops are examined with `WNOWAIT`: once a wait has
//! consumed a signal-delivery stop, the signal would be lost if the tracer were killed.
//!
//! A thread blocked in a system call is left alone, except in mmap(2) with MAP_POPULATE: that call
//! is not interrupted, so the thread stops at its return, before it can access the mapping, however
//! long that takes ([`PopulateInjection`]). A thread running in the kernel is
//! indistinguishable from one running in user mode: `/proc` reports both as running. Interrupting
//! it ends its call as a signal would, as soon as the call blocks or checks for pending signals.
//! Whatever the program could see of that is undone:
//!
//! - A call that the kernel restarts by itself is left to the kernel.
//! - A call that failed with EINTR although no handler ran is repeated. If this process is killed
//!   just before, the program sees EINTR.
//! - A write to a pipe, socket or terminal, send(2), recv(2) with MSG_WAITALL and getrandom(2)
//!   return a partial count. A stub then transfers the remainder and adds up both parts. It stays
//!   until the thread needs another stub, since nothing waits for the end of the call.
//!
//! What can remain visible: calls with several buffers (writev(2), sendmsg(2)) may return short. So
//! may the other transfers in a process with a seccomp filter, on a named FIFO, or if a thread is
//! abandoned because it does not stop in time.
//!
//! The tracer is a thread, not a process. Each attempt has a thread of its own, which ends with it:
//! there is no other way to detach a tracee that does not stop.

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

/// Advice for madvise(2) that leaves the contents of memory unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAdvice {
    Normal,
    Random,
    Sequential,
    WillNeed,
    PopulateRead,
    /// Unmaps file pages, and reclaims those that no other process maps.
    PageOut,
}

impl MemoryAdvice {
    /// The `MADV_*` constant.
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

/// Report of a successful injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectionReport {
    /// Upper bound on how long the thread was stopped, including the time of the calls.
    pub stopped_ns: u64,
    /// The thread was stopped at its return from the mmap(2) that made the mapping, before it could
    /// access it.
    pub is_at_mmap_return: bool,
}

/// Reason why no advice took effect. Except for [`Refusal::Unfinished`], the target is as if
/// nothing had been tried.
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
    #[error("thread {tid} must not be stopped where it is: {place}")]
    Busy { tid: u32, place: &'static str },
    #[error("thread {tid} did not stop in {milliseconds} ms")]
    Slow { tid: u32, milliseconds: u64 },
    /// The thread was detached while in the stub, and completes the call on its own.
    #[error("thread {tid} was still carrying out the advice after {milliseconds} ms")]
    Unfinished { tid: u32, milliseconds: u64 },
    #[error("the mapping at {address:#x} is not the intended one")]
    Changed { address: u64 },
    #[error("{what} of thread {tid} is refused ({errno}): {remedy}")]
    Forbidden { tid: u32, what: &'static str, errno: Errno, remedy: &'static str },
    #[error("{what}: only threads of 64-bit x86 programs are made to advise")]
    Unsupported { what: &'static str },
    #[error("process {pid} filters its system calls: {filter}")]
    Filtered { pid: u32, filter: &'static str },
    #[error(
        "process {pid} cannot be made to call madvise(2): the call would be placed behind the code \
         of its vDSO, whose last page has no {needed_bytes} bytes free"
    )]
    NoRoom { pid: u32, needed_bytes: usize },
    #[error("madvise(2) in process {pid} failed: {errno}")]
    Failed { pid: u32, errno: Errno },
}

impl Refusal {
    /// Whether retrying, later or with another thread, is pointless.
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
pub use attempt::{
    PopulateInjection, advise_all, advise_any, is_populating, madvise, without_injections,
};
