//! Published tables beside the model's.
//!
//! A series is data: what was published, what is tolerated beside it, and which notes, tables and
//! rows a report has of it (`data/published.toml`). What is special of a series is in its module:
//! what it runs, how its figures come from that, and the values in its notes. A report is made of
//! the cells alone.

mod cell;
mod data;
mod exec_order;
mod kinds;
mod mm_owner;
mod mmap_miss;
mod page;
mod plan;
mod record;
mod shown;
mod source;
mod study;
mod tolerance;
mod vma_bound;
mod vma_retry;

pub use self::kinds::{NAMES, OF_PROGRAMS, RANDOM};
pub use self::plan::Plan;
pub use self::record::Published;
pub use self::study::Options;
