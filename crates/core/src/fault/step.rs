//! What a fault or a read asks its caller to do.

use crate::decision::Lock;
use crate::units::PageIndex;

/// What the faulting instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads, or fetches an instruction.
    Read,
    /// Writes to a private mapping.
    WritePrivate,
}

/// What the caller has to do before the fault goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Take this lock.
    Lock(Lock),
    /// Drop the lock that was taken.
    Unlock,
    /// Lay out the window, which [`super::Fault::window`] or [`super::read::Read::window`] says,
    /// add its folios and begin to read them.
    Read,
    /// Add a folio of one base page, if it is still absent, and begin to read it.
    ReadPage(PageIndex),
    /// Wait until the folio that holds the page is up to date.
    Wait(PageIndex),
    /// The fault was served; the lock that it still holds is to be dropped.
    Done(Outcome),
}

/// How a fault was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Counts as major in the process's own accounting: the last try missed the cache, or was
    /// the retry of one that missed.
    pub major: bool,
    /// How often it began.
    pub tries: u32,
}
