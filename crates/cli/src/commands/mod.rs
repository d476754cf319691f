//! The commands.

pub mod advise;
pub mod calibrate;
pub mod compare;
pub mod conform;
pub mod doctor;
pub mod explain;
pub mod folio_ops;
pub mod govern;
pub mod published;
pub mod record;
pub mod reference;
pub mod report;
pub mod run;
pub mod search;
mod show_job;
