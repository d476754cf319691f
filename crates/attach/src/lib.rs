//! Follows processes from outside, and acts on them.
//!
//! A process is followed without anything being loaded into it: the kernel tells of its mappings
//! and faults. This crate knows no purpose: what is done with an [`Event`] is its caller's affair.

mod event;
mod inject;
mod mapped_range;

pub use event::{Event, FaultKind, What};
pub use inject::{Advice, Advised, Refusal, advise_any, madvise};
pub use mapped_range::{FileId, MappedFile, MappedRange};
