//! Reports on programs that were run governed.

mod compare;
mod endings;
mod measure;
mod process;
mod run;
mod shown;
mod status;
mod tables;

pub use compare::{Comparison, Measured, Variant};
pub use process::{Mapping, Process, Totals, Unknown};
pub use run::{Ended, Told, run};
pub use status::{Status, status};

#[cfg(feature = "schema")]
pub(crate) use compare::Json as CompareJson;
#[cfg(feature = "schema")]
pub(crate) use run::Json as RunJson;
#[cfg(feature = "schema")]
pub(crate) use status::Json as StatusJson;
