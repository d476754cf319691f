//! Where the bytes of a job came from, and why readahead stopped or did not.
//!
//! An `Explainer` reads a decision log as it comes. The model tells it of each access; of a log
//! of tracepoints, which show none as long as its pages are mapped, [`Traced`] does.
//!
//! Each page that enters the cache is counted once, under the first of these that holds:
//!
//! 1. it was accessed while it was in, and also when it was in before: *refetched after eviction*;
//! 2. it was accessed while it was in: *used*;
//! 3. it lies outside the mapping: *beyond the mapping*, or *between the segments* of an ELF file;
//! 4. it came only because folios are larger than the page asked for: *large-folio rounding*;
//! 5. otherwise by what brought it in: read-around, async readahead, on-demand readahead, advice
//!    (WILLNEED) of the program or of a governor, executable or huge-page readahead, or a single
//!    page that left before it was accessed.
//!
//! So the sums add up to the bytes read, *used* is what no readahead could have saved, and
//! *refetched* what more memory would have. Rounding means: of a HUGEPAGE window the rest of the
//! folio that holds the page accessed; of an executable window what its alignment adds to the
//! readahead size from that page on. Every other window has the same pages whatever the folios.

mod along;
mod answer;
mod causes;
mod counter;
mod counter_course;
mod courses;
mod explainer;
mod explanation;
mod followed;
mod history;
mod map;
mod open_counters;
mod origin;
mod pages;
mod parts;
pub(crate) mod pictures;
mod record;
mod recorder;
mod remedies;
mod report;
mod run;
mod tables;
#[cfg(test)]
mod tests;
mod through;
mod traced;
mod tried;
mod waits;
mod window;

pub use counter::Sight;
pub(crate) use courses::Courses;
pub use explanation::Explanation;
pub use origin::Origin;
pub use record::Explained;
pub(crate) use remedies::LEAST_SHARE;
pub(crate) use run::course;
pub use run::run;
pub use traced::Traced;
#[cfg(test)]
pub(crate) use {
    courses::{FileHistory, ProgramHistory, ThreadWaits, WaitHistory},
    history::{Grid, History, INTERVALS, Point, ROWS, Window},
};
