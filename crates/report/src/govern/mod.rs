//! Reports on programs that were run governed.

mod compare;
mod endings;
mod measure;
mod process;
mod run;
mod shown;
mod tables;

pub use compare::{Comparison, Measured, Variant};
pub use process::{Mapping, Process, Totals};
pub use run::{Ended, Run};

#[cfg(feature = "schema")]
pub(crate) use compare::Json as CompareJson;
#[cfg(feature = "schema")]
pub(crate) use run::Json as RunJson;
