//! Runs a program as if its caller had executed it directly: lookup, state to restore before exec,
//! and waiting for its end.

pub mod inherited;
mod lookup;
pub mod parent;
pub mod signal_set;
mod start;

pub use lookup::{LaunchError, Program, find, privilege_gain};
pub use start::{exec, launch_error};
