//! The real kernel: runs accesses in a child process, and reads the kernel's decisions.
//!
//! Every change to the machine is first recorded in a [`journal::Journal`] and undone when its
//! guard is dropped; [`journal::recover`] undoes what a killed process left.

pub mod calibrate;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod cold_cache;
pub mod doctor;
pub mod engine;
mod error;
mod governor;
pub mod holes;
pub mod huge_pages;
pub mod image;
pub mod interference;
pub mod journal;
mod kernel_mount;
mod loop_control;
mod loop_device;
pub mod metered;
pub mod probe;
pub mod procstat;
pub mod residency;
pub mod scratch;
pub mod shutdown;
pub mod storage;
mod temporary_file;
pub mod trace;

pub use error::Error;

/// Base page size of this machine in bytes.
pub fn page_size() -> u64 {
    rustix::param::page_size() as u64
}
