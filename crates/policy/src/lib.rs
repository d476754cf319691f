//! The governor's policy.
//!
//! [`plan()`] decides from what programs touched of a file before ([`TouchHistory`], made by a
//! [`TouchCollector`]) how it is read.
//!
//! [`FilePolicy`] is the policy for one file, across all of its mappings. It takes faults and
//! returns ranges of pages to read. It has no clock and does no I/O, so the same faults always give
//! the same answers. Read costs are an input.
//!
//! A stream continues when the program reaches its requested window: the minor fault there shows
//! that the window is used, so no page has to be left out to detect that. Windows grow by a factor
//! of 4, and from 64 pages on by 2. Beyond 64 pages a window is at most a quarter of its stream so
//! far. Two adjacent faults make a stream if they are consecutive in one thread. Otherwise a third
//! one is needed, since in small files neighbours occur by chance.
//!
//! Run lengths are counted in buckets of an eighth of a power of two; counts are halved after 256
//! runs. If at least half of the runs of the same length continued, a stream reads up to their
//! median end. If more than an eighth of the pages requested by streams were never used, windows
//! stay small.
#![forbid(unsafe_code)]

mod account;
mod costs;
mod lengths;
mod plan;
mod reads;
mod region;
mod state;
mod stream;
mod stride;
mod touches;

pub use costs::{Costs, KernelWindow, TouchKind};
pub use plan::{FilePlan, PlanInput, PlannedAdvice, plan};
pub use reads::{Bounds, PageRange, ReadPlan};
pub use region::REGION_PAGES;
pub use state::FilePolicy;
pub use touches::{
    BLOCK_PAGES, MAX_REGIONS, MAX_RUNS, TouchCollector, TouchHistory, TouchRun, TouchedRegion,
};
