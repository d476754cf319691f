//! Running a program as if nothing stood between it and whoever called: what is looked at before,
//! and how it is waited for.

pub mod inherited;
mod lookup;
pub mod parent;
pub mod signal_set;
mod start;

pub use lookup::{LaunchError, Program, find, privilege_gain};
pub use start::{exec, launch_error};
