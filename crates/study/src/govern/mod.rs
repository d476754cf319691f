//! Programs that are run governed: what was done for them, and what it changes.

mod asked;
mod compare;
mod endings;
mod governed;
mod measure;
mod measured;
mod process;
mod run;
mod shown;
mod tables;
mod told;

pub use asked::{Asked, compare};
pub use compare::Comparison;
pub use governed::Governed;
pub use measured::{Measured, Variant};
pub use process::{Mapping, Observer, Process, Totals};
pub use run::Run;
pub use told::processes;
