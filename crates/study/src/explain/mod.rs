//! Where the bytes of a job came from, and why readahead stopped or went on.
//!
//! An `Explainer` reads a decision log while it is written. The model names the access that each
//! decision belongs to. A log of tracepoints does not, as accesses to mapped pages show in none:
//! [`TraceExplainer`] finds them by the job.
//!
//! Each page that enters the cache is counted once, under the first of these that holds:
//!
//! 1. it was accessed while cached, and also when it was cached before: *refetched after eviction*;
//! 2. it was accessed while cached: *used*;
//! 3. the job neither maps nor reads it: *beyond the mapping*, or *between the segments* of an ELF
//!    file;
//! 4. only a folio larger than the page asked for brought it in: *large-folio rounding*;
//! 5. otherwise by what read it: read-around, async readahead, on-demand readahead, advice
//!    (WILLNEED) of the program or of a governor, executable or huge-page readahead, or a single
//!    page that left before it was accessed.
//!
//! So the causes add up to the bytes read, *used* is what no readahead could have saved, and
//! *refetched* what more memory would have. Rounding means: of a HUGEPAGE window the rest of the
//! folio that holds the page accessed; of an executable window what its alignment adds to the
//! readahead size from that page on. Every other window has the same pages whatever the folios.

mod answer;
mod causes;
mod counter;
mod explainer;
mod history;
mod map;
mod origin;
mod pages;
pub(crate) mod pictures;
mod ranges;
mod record;
mod recorder;
mod remedies;
mod report;
mod run;
#[cfg(test)]
mod tests;
mod traced;
mod waits;

pub use counter::CounterVisibility;
pub use explainer::Explanation;
pub(crate) use history::RunHistory;
#[cfg(test)]
pub(crate) use history::{
    CounterPoint, FileHistory, Grid, History, HistoryWindow, INTERVALS, ROWS, ThreadWaits,
    WaitHistory,
};
pub use origin::Origin;
pub use record::ExplainRecord;
pub(crate) use remedies::MIN_SHARE;
pub use run::run;
pub(crate) use run::run_history;
pub use traced::TraceExplainer;
