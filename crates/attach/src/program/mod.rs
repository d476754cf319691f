//! Running a program as if nothing stood between it and whoever called: what is looked at before,
//! and how it is waited for.

mod gain;
pub mod inherited;
mod interpreter;
mod lookup;
pub mod parent;
pub mod signal_set;
mod start;

pub use gain::gain;
pub use lookup::{Program, Refused, find};
pub use start::{exec, refused};
