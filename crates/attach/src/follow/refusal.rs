//! What the kernel refuses to one who follows, and what to do about it.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{Error, process};

/// Each thread has two events for each CPU: as many descriptors are allowed as can be.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where that fails, the error of what is opened says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Why perf events of the caller's own are refused.
pub fn of_events(cause: io::Error) -> Error {
    let remedy = match cause.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files, ulimit -Hn".into(),
        Some(libc::EACCES | libc::EPERM) if paranoid() <= 2 => {
            "permit perf_event_open in the container's seccomp profile, or raise ulimit -l or \
             kernel.perf_event_mlock_kb"
                .into()
        }
        Some(libc::EACCES | libc::EPERM) => format!(
            "set kernel.perf_event_paranoid to 2 (it is {}), or give CAP_PERFMON",
            paranoid()
        ),
        _ => "use a kernel with perf events (CONFIG_PERF_EVENTS)".into(),
    };
    Error::Refused { what: "perf events".into(), cause, remedy }
}

pub fn of_timer(cause: io::Error) -> Error {
    Error::refused("a timer", cause, "raise the limit of open files, ulimit -n")
}

/// Why a process is not to be followed.
pub fn of_process(pid: u32, cause: io::Error) -> Error {
    let remedy = match cause.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT) => return Error::Gone { pid },
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files, ulimit -Hn".into(),
        Some(libc::EACCES | libc::EPERM) => process::access(pid),
        _ => "see whether it still runs".to_owned(),
    };
    Error::Refused { what: format!("following process {pid}"), cause, remedy }
}

/// `kernel.perf_event_paranoid`
fn paranoid() -> i32 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    text.trim().parse().unwrap_or(2)
}

/// Whether the kernel would tell of no process at all, so that another way is to be taken.
pub fn is_general(error: &Error) -> bool {
    let Error::Refused { cause, .. } = error else { return false };
    let codes = [libc::EACCES, libc::EPERM, libc::ENOSYS, libc::ENOENT, libc::EOPNOTSUPP];
    cause.raw_os_error().is_some_and(|code| codes.contains(&code))
}
