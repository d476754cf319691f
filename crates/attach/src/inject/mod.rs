//! Makes a thread of another process advise.

mod advice;
mod refusal;

use crate::mapped_range::MappedRange;

pub use advice::Advice;
pub use refusal::Refusal;

/// Advice that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advised {
    /// For how long the thread was kept from running, at most.
    pub stopped_ns: u64,
}

/// Advises a range of another process' memory, by one madvise(2) that a thread of it makes.
///
/// While this runs, no thread of the caller may wait for that process with waitpid(2) or
/// `std::process::Child::wait` where it is a child of the caller: the wait would end with a stop
/// of the thread. Poll its pidfd, and wait when that is readable.
pub fn madvise(
    pid: u32,
    tid: u32,
    range: &MappedRange,
    advice: Advice,
) -> Result<Advised, Refusal> {
    let _ = (pid, range, advice.number());
    Err(Refusal::Busy { tid, place: "not written yet" })
}

/// Advises as [`madvise`] does, by `preferred_tid` or else another thread that can be held.
pub fn advise_any(
    pid: u32,
    preferred_tid: u32,
    range: &MappedRange,
    advice: Advice,
) -> Result<Advised, Refusal> {
    madvise(pid, preferred_tid, range, advice)
}
