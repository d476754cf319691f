//! Steps that faults and reads ask their caller to carry out.

use crate::decision::Lock;
use crate::units::PageIndex;

/// How the faulting instruction accesses the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads, or fetches an instruction.
    Read,
    /// Writes to a private mapping.
    WritePrivate,
}

/// What the caller has to do before the fault continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Take this lock.
    Lock(Lock),
    /// Drop the lock that was taken.
    Unlock,
    /// Lay out the window returned by [`super::Fault::window`] or
    /// [`super::read::ReadCall::window`], add its folios and submit the reads.
    Read,
    /// Add a folio of the smallest order, if it is still absent, and submit the read.
    ReadPage(PageIndex),
    /// Wait until the folio that holds the page is up to date.
    Wait(PageIndex),
    /// The fault was served; the caller drops the lock still held.
    Done(FaultResult),
}

/// How a fault was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultResult {
    /// Counts as major for the process: the last try missed the cache, or was the retry of one that
    /// did.
    pub major: bool,
    /// Number of tries.
    pub tries: u32,
}
