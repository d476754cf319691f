//! What records say: tables, comparisons, and the published figures beside them.
//!
//! Nothing here runs a job. A [`published::Study`] names the jobs it needs and is given their
//! records; the other reports are made of records alone.
#![forbid(unsafe_code)]

pub mod calibrate;
pub mod compare;
pub mod conform;
pub mod decisions;
mod error;
pub mod explain;
pub mod footer;
pub mod program;
pub mod published;
pub mod record;
pub mod report;
pub mod significance;
pub mod stats;
pub mod table;

pub use error::Error;
pub use footer::Footer;
pub use report::{Format, Report};
pub use table::{Column, Table};
