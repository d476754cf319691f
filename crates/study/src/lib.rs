//! Questions about jobs, from the plan to the report. This crate prints nothing.
#![forbid(unsafe_code)]

pub mod advise;
pub mod calibrate;
pub mod compare;
pub mod conform;
pub mod console;
pub mod device_profile;
pub mod doctor;
pub mod engine;
pub mod error;
pub mod explain;
mod figures;
mod file_contents;
pub mod folio_ops;
pub mod footer;

pub mod govern;
pub mod host;
pub mod html;
pub mod input;
pub mod job_input;
mod json;
pub mod kernel_match;
mod latency;
pub mod machine_profile;
mod measure;
mod measures;
pub mod parallel;
pub mod provenance;
pub mod published;
pub mod random_jobs;
pub mod record;
pub mod run;
pub mod schema;
pub mod search;
pub mod seeds;
pub mod setup;
pub mod spread;
pub mod stats;
pub mod timeline;
pub mod traced_job;
mod trial;
pub mod variants;
pub mod verdict;
mod waits;

pub use error::Error;
pub use footer::Footer;
