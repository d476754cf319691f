//! What records say: tables, comparisons, and the published figures beside them.
//!
//! Nothing here runs a job. A [`published::Study`] names the jobs it needs and is given their
//! records; the other reports are made of records alone.
#![forbid(unsafe_code)]

pub mod advise;
pub mod calibrate;
mod canvas;
pub mod compare;
pub mod conform;
pub mod decisions;
pub mod doctor;
mod error;
pub mod explain;
mod figures;
pub mod folio_maps;
pub mod folio_ops;
pub mod footer;
#[cfg(feature = "schema")]
mod forms;
pub mod govern;
pub mod html;
pub mod letter;
pub mod published;
pub mod record;
pub mod regression;
pub mod report;
#[cfg(feature = "schema")]
pub mod schema;
pub mod search;
pub mod setup;
pub mod significance;
pub mod spread;
pub mod stats;
pub mod table;
pub mod units;
mod waits;

pub use error::Error;
pub use footer::Footer;
pub use letter::Letter;
pub use report::{Format, Report};
pub use table::{Column, Table};
