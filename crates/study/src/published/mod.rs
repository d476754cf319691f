//! Published tables beside the model's.
//!
//! A series is data: what was published, what is tolerated beside it, and which notes, tables and
//! rows a report has of it (`data/published.toml`). What is special of a series is in its module:
//! what it runs, how its figures come from that, and the values in its notes. A report is made of
//! the cells alone.
//!
//! A figure is judged by what is known of the published one, and can fail on either side. An
//! unknown list of accesses is one sample, so such a cell is judged by the spread over seeds. Known
//! accesses are judged by a measured bound: a counter of the whole machine counts more than the
//! file. Runs that were published twice are judged by their own range. Counts are judged exactly.
//! What depends on an unknown machine, or on this one, is compared and decides nothing. What is
//! fitted is said, and is not judged. The first lines say how many cells are which.

mod cell;
mod data;
mod exec_order;
mod kinds;
mod list;
mod mm_owner;
mod mmap_miss;
mod page;
mod plan;
mod record;
mod shown;
mod source;
mod study;
mod summary;
mod tolerance;
mod vma_bound;
mod vma_retry;

pub use self::kinds::{NAMES, OF_PROGRAMS, RANDOM};
pub use self::list::list;
pub use self::plan::Plan;
pub use self::record::Published;
pub use self::study::Options;
