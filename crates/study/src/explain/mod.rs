//! `explain`: why the bytes of a job were read, and why readahead stopped or continued.
//!
//! An `Explainer` consumes a decision log as it is written. The model's log names the access that
//! each decision belongs to. A log of tracepoints does not, since accesses to mapped pages leave no
//! event: [`TraceExplainer`] recovers them from the job.
//!
//! Each page that enters the cache is counted once, under the first of these that holds:
//!
//! 1. it was accessed while cached, and also when it was cached before: *refetched after eviction*;
//! 2. it was accessed while cached: *used*;
//! 3. the job neither maps nor reads it: *beyond the mapping*, or *between the segments* of an ELF
//!    file;
//! 4. it was read only because folios are larger than a page: *large-folio rounding*;
//! 5. otherwise by the cause that read it: read-around, async readahead, on-demand readahead,
//!    advice (WILLNEED) of the program or of a governor, executable or huge-page readahead, or a
//!    single page that left before it was accessed.
//!
//! So the causes add up to the bytes read; *used* bytes are needed with any readahead, and more
//! memory would have saved the *refetched* ones. Rounding is, in a HUGEPAGE window, the rest of the
//! folio that holds the page accessed, and in an executable window, the pages that alignment adds
//! to the readahead size from that page on. The pages of other windows do not depend on folio
//! sizes.

mod answer;
mod causes;
mod counter;
mod explainer;
mod history;
mod map;
mod origin;
mod page_history;
pub(crate) mod pictures;
mod ranges;
mod record;
mod recorder;
mod remedies;
mod report;
mod run;
#[cfg(test)]
mod tests;
mod trace_explainer;
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
pub use trace_explainer::TraceExplainer;
