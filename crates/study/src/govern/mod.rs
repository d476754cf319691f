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

pub(crate) use compare::Json as CompareJson;
pub(crate) use run::Json as RunJson;
