//! Observes running processes and acts on them from outside.
//!
//! Nothing is loaded into the observed process: its mappings and page faults come from perf events,
//! tracepoints, `/proc` and the page tables. This crate has no policy; callers decide what to do
//! with an [`Event`].

// Items whose name documents them fully carry no comment.
#![allow(missing_docs)]

pub mod cgroup;
mod error;
mod event;
pub mod file;
mod follow;
mod inject;
mod mapped_range;
mod page_out;
mod perf;
pub mod process;
pub mod program;
mod source;
pub mod tracepoints;

pub use error::{Error, reason};
pub use event::{Event, EventKind, FaultKind, now_ns};
pub use follow::{FollowMethod, Follower, mapped_pages};
pub use inject::{
    InjectionReport, MemoryAdvice, PopulateInjection, Refusal, advise_all, advise_any,
    is_populating, madvise, without_injections,
};
pub use mapped_range::{FileId, MappedFile, MappedRange};
pub use page_out::{MAX_OPEN_PAGES, PageOut, PageReclaimer, drain_lru_batches};
pub use source::EventSource;
