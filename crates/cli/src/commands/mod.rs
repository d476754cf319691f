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
pub mod report;
pub mod run;
pub mod search;
mod show_job;

/// `command` with the number of seeds that was asked for.
fn with_seeds(command: String, seeds: Option<u64>) -> String {
    seeds.map_or(command.clone(), |seeds| format!("{command} --seeds {seeds}"))
}
