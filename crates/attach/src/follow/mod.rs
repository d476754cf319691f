//! Event streams of sets of processes, in order of time.

mod kernel_faults;
mod page_tables;
mod perf_events;
mod polled;
mod scan;

pub(crate) use scan::PageTable;
pub use scan::mapped_pages;

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{Error, Event, MappedRange, process};
use page_tables::PageTablePoller;
use perf_events::PerfFollower;

/// Mechanism by which processes are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowMethod {
    /// Perf software events: every fault and every new mapping, but neither munmap(2) nor
    /// mremap(2). Faults inside system calls are reported to root only.
    PerfEvents,
    /// Polls `/proc` and the page tables every 1 to 20 ms.
    PageTables,
}

/// Event stream of a set of processes and their descendants.
#[derive(Debug)]
pub struct Follower {
    backend: FollowerBackend,
}

#[derive(Debug)]
enum FollowerBackend {
    PerfEvents(PerfFollower),
    PageTables(PageTablePoller),
}

impl Follower {
    /// Follows future children of the calling thread, each from its exec on. The calling thread
    /// must outlive the follower.
    pub fn for_children() -> Result<Follower, Error> {
        open_or_poll(Follower::for_children_with)
    }

    /// [`Follower::for_children`] with a given method.
    pub fn for_children_with(way: FollowMethod) -> Result<Follower, Error> {
        Follower::open_with(way, PerfFollower::for_children, PageTablePoller::for_children)
    }

    /// [`Follower::for_children`] without fault events, whose overhead the faulting threads would
    /// pay.
    pub fn for_children_without_faults() -> Result<Follower, Error> {
        open_or_poll(|way| {
            Follower::open_with(
                way,
                PerfFollower::for_children_without_faults,
                PageTablePoller::for_children,
            )
        })
    }

    /// Follows the processes passed to [`Follower::add`].
    pub fn for_processes() -> Result<Follower, Error> {
        open_or_poll(Follower::for_processes_with)
    }

    /// [`Follower::for_processes`] with a given method.
    pub fn for_processes_with(way: FollowMethod) -> Result<Follower, Error> {
        Follower::open_with(way, PerfFollower::for_processes, PageTablePoller::for_processes)
    }

    fn open_with(
        way: FollowMethod,
        perf_events: fn() -> Result<PerfFollower, Error>,
        page_tables: fn() -> Result<PageTablePoller, Error>,
    ) -> Result<Follower, Error> {
        let by = match way {
            FollowMethod::PerfEvents => FollowerBackend::PerfEvents(perf_events()?),
            FollowMethod::PageTables => FollowerBackend::PageTables(page_tables()?),
        };
        Ok(Follower { backend: by })
    }

    pub fn method(&self) -> FollowMethod {
        match self.backend {
            FollowerBackend::PerfEvents(_) => FollowMethod::PerfEvents,
            FollowerBackend::PageTables(_) => FollowMethod::PageTables,
        }
    }

    /// Adds a running process and its future descendants. Its existing mappings are reported as if
    /// mapped now.
    pub fn add(&mut self, pid: u32) -> Result<(), Error> {
        process::check_is_process(pid)?;
        match &mut self.backend {
            FollowerBackend::PerfEvents(by) => by.add(pid),
            FollowerBackend::PageTables(by) => by.add(pid),
        }
    }

    /// Scans the page tables for touches of `range` that the kernel does not report: all touches
    /// with [`FollowMethod::PageTables`], otherwise those inside system calls.
    pub fn watch(&mut self, pid: u32, range: &MappedRange) {
        match &mut self.backend {
            FollowerBackend::PerfEvents(by) => by.watch(pid, range),
            FollowerBackend::PageTables(by) => by.watch(pid, range),
        }
    }

    pub fn unwatch(&mut self, pid: u32, range: &MappedRange) {
        match &mut self.backend {
            FollowerBackend::PerfEvents(by) => by.unwatch(pid, range),
            FollowerBackend::PageTables(by) => by.unwatch(pid, range),
        }
    }

    /// Waits up to `timeout` for events. Returns whether there may be some.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        match &mut self.backend {
            FollowerBackend::PerfEvents(by) => by.wait(timeout),
            FollowerBackend::PageTables(by) => by.wait(timeout),
        }
    }

    /// Passes all available events to `take`, in order of time.
    pub fn read_events(&mut self, take: &mut dyn FnMut(Event)) -> Result<(), Error> {
        match &mut self.backend {
            FollowerBackend::PerfEvents(by) => {
                by.read_events(take);
                Ok(())
            }
            FollowerBackend::PageTables(by) => by.read_events(take),
        }
    }

    /// Descriptors to poll(2) along with the caller's own. They become readable on mappings, forks,
    /// exits and batches of faults. Small numbers of faults do not wake the caller, so call
    /// [`Follower::read_events`] every millisecond as well while faults occur, as
    /// [`Follower::wait`] does.
    pub fn poll_fds(&self) -> Vec<BorrowedFd<'_>> {
        match &self.backend {
            FollowerBackend::PerfEvents(by) => vec![by.fd()],
            FollowerBackend::PageTables(by) => vec![by.fd()],
        }
    }
}

/// Opens by perf events, falling back to page tables where the kernel denies perf events to this
/// user. If both fail, returns the error of the perf events.
fn open_or_poll(open: fn(FollowMethod) -> Result<Follower, Error>) -> Result<Follower, Error> {
    open(FollowMethod::PerfEvents).or_else(|error| {
        if is_unsupported(&error) {
            open(FollowMethod::PageTables).map_err(|_| error)
        } else {
            Err(error)
        }
    })
}

/// Raises the soft RLIMIT_NOFILE to the hard limit: each thread needs up to three events per CPU.
fn raise_open_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // On failure, opening the events reports the limit.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Error for refused perf events on the caller's own threads.
fn events_error(cause: io::Error) -> Error {
    let remedy = match cause.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files, ulimit -Hn".into(),
        Some(libc::EACCES | libc::EPERM) if perf_event_paranoid() <= 2 => {
            "permit perf_event_open in the container's seccomp profile, or raise ulimit -l or \
             kernel.perf_event_mlock_kb"
                .into()
        }
        Some(libc::EACCES | libc::EPERM) => format!(
            "set kernel.perf_event_paranoid to 2 (it is {}), or give CAP_PERFMON",
            perf_event_paranoid()
        ),
        _ => "use a kernel with perf events (CONFIG_PERF_EVENTS)".into(),
    };
    Error::Refused { what: "perf events".into(), cause, remedy }
}

fn timer_error(cause: io::Error) -> Error {
    Error::refusal("a timer", cause, "raise the limit of open files, ulimit -n")
}

/// Error for a process that cannot be followed.
fn process_error(pid: u32, cause: io::Error) -> Error {
    let remedy = match cause.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT) => return Error::Gone { pid },
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files, ulimit -Hn".into(),
        Some(libc::EACCES | libc::EPERM) => process::access(pid),
        _ => "see whether it still runs".to_owned(),
    };
    Error::Refused { what: format!("following process {pid}"), cause, remedy }
}

/// The sysctl `kernel.perf_event_paranoid`; 2, the kernel's default, if unreadable.
fn perf_event_paranoid() -> i32 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    text.trim().parse().unwrap_or(2)
}

/// Whether perf events are unavailable for any process, so that the fallback applies.
fn is_unsupported(error: &Error) -> bool {
    let Error::Refused { cause, .. } = error else { return false };
    let codes = [libc::EACCES, libc::EPERM, libc::ENOSYS, libc::ENOENT, libc::EOPNOTSUPP];
    cause.raw_os_error().is_some_and(|code| codes.contains(&code))
}
