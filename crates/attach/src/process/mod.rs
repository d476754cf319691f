//! Readers of `/proc/PID`.

mod advice;
mod map_query;
mod maps;
mod smaps;
mod state;

pub use advice::{ReadaheadMode, VmaAdvice, maps_with_advice, maps_with_advice_before};
pub use map_query::{is_mapped, mapped_file_link};
pub use maps::maps;
pub use smaps::Smaps;
pub use state::{
    ThreadTimes, check_is_process, children, effective_uid, thread_times, threads, with_children,
};

pub(crate) use map_query::{MapQuery, vma_at};
pub(crate) use state::{ProcessStat, process_stat, size_pages};

use std::fs;
use std::io;

use crate::Error;

/// Reads `/proc/PID/name`.
pub(crate) fn read(pid: u32, name: &str) -> Result<Vec<u8>, Error> {
    fs::read(format!("/proc/{pid}/{name}")).map_err(|cause| unreadable(pid, name, cause))
}

fn unreadable(pid: u32, name: &str, cause: io::Error) -> Error {
    match cause.raw_os_error() {
        Some(libc::ENOENT | libc::ESRCH) => Error::Gone { pid },
        _ => Error::refusal(format!("/proc/{pid}/{name}"), cause, &access(pid)),
    }
}

/// Remedy for denied access to a process.
pub(crate) fn access(pid: u32) -> String {
    let own = rustix::process::geteuid().as_raw();
    match effective_uid(pid) {
        Ok(other) if other != own => {
            format!("it is of user {other}: run this as that user or as root")
        }
        _ => "it may not be traced (it gained privilege, or prctl says so): run this as root, and \
              outside of a container"
            .into(),
    }
}
