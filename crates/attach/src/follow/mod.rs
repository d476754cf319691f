//! The events of a set of processes, in order.

mod kernel_faults;
mod looked_at;
mod page_tables;
mod perf_events;
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

/// How processes are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowMethod {
    /// The kernel tells of each fault and of each mapping that is made, but not of those that are
    /// removed or moved. Of faults inside of system calls it tells root only.
    PerfEvents,
    /// `/proc` and the page tables are looked at again and again, every 1 to 20 ms.
    PageTables,
}

/// The stream of events of a set of processes, and of all that they start.
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
    /// Follows what the calling thread starts from now on, from its exec on. That thread has to
    /// live as long as this does.
    pub fn for_children() -> Result<Follower, Error> {
        open_or_poll(Follower::for_children_with)
    }

    /// As [`Follower::of_children`], in a given way.
    pub fn for_children_with(way: FollowMethod) -> Result<Follower, Error> {
        Follower::open_with(way, PerfFollower::for_children, PageTablePoller::for_children)
    }

    /// As [`Follower::of_children`], without faults, so that they cost those threads nothing.
    pub fn for_children_without_faults() -> Result<Follower, Error> {
        open_or_poll(|way| {
            Follower::open_with(
                way,
                PerfFollower::for_children_without_faults,
                PageTablePoller::for_children,
            )
        })
    }

    /// Follows what is named by [`Follower::add`].
    pub fn for_processes() -> Result<Follower, Error> {
        open_or_poll(Follower::for_processes_with)
    }

    /// As [`Follower::of_processes`], in a given way.
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

    /// Follows a process that runs, and what it starts from now on. What it has mapped is told as
    /// if it was mapped now.
    pub fn add(&mut self, pid: u32) -> Result<(), Error> {
        process::check_is_process(pid)?;
        match &mut self.backend {
            FollowerBackend::PerfEvents(by) => by.add(pid),
            FollowerBackend::PageTables(by) => by.add(pid),
        }
    }

    /// Has touches of this range told that the kernel does not tell of: all of them where
    /// [`FollowMethod::PageTables`] is the way, and otherwise those inside of system calls.
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

    /// Waits until there may be something to read, or for `timeout`. Returns whether there may.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        match &mut self.backend {
            FollowerBackend::PerfEvents(by) => by.wait(timeout),
            FollowerBackend::PageTables(by) => by.wait(timeout),
        }
    }

    /// Hands all events that are there to `take`, in order of time.
    pub fn read_events(&mut self, take: &mut dyn FnMut(Event)) -> Result<(), Error> {
        match &mut self.backend {
            FollowerBackend::PerfEvents(by) => {
                by.read_events(take);
                Ok(())
            }
            FollowerBackend::PageTables(by) => by.read_events(take),
        }
    }

    /// What becomes readable when something is mapped, begins or ends, or when many faults are
    /// there to be read, to be polled beside other things. [`Follower::read`] is to be called every
    /// millisecond besides while there are faults, as [`Follower::wait`] does: few of them do not
    /// wake anybody.
    pub fn poll_fds(&self) -> Vec<BorrowedFd<'_>> {
        match &self.backend {
            FollowerBackend::PerfEvents(by) => vec![by.fd()],
            FollowerBackend::PageTables(by) => vec![by.fd()],
        }
    }
}

/// Opens by perf events, or by page tables where the kernel refuses those to this user. The error
/// is that of the better way where neither is there.
fn open_or_poll(open: fn(FollowMethod) -> Result<Follower, Error>) -> Result<Follower, Error> {
    open(FollowMethod::PerfEvents).or_else(|error| {
        if is_unsupported(&error) {
            open(FollowMethod::PageTables).map_err(|_| error)
        } else {
            Err(error)
        }
    })
}

/// Each thread has two events for each CPU: as many descriptors are allowed as can be.
fn raise_open_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Where that fails, the error of what is opened says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Why perf events of the caller's own are refused.
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
    Error::refused("a timer", cause, "raise the limit of open files, ulimit -n")
}

/// Why a process is not to be followed.
fn process_error(pid: u32, cause: io::Error) -> Error {
    let remedy = match cause.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT) => return Error::Gone { pid },
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files, ulimit -Hn".into(),
        Some(libc::EACCES | libc::EPERM) => process::access(pid),
        _ => "see whether it still runs".to_owned(),
    };
    Error::Refused { what: format!("following process {pid}"), cause, remedy }
}

/// `kernel.perf_event_paranoid`
fn perf_event_paranoid() -> i32 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    text.trim().parse().unwrap_or(2)
}

/// Whether the kernel would tell of no process at all, so that another way is to be taken.
fn is_unsupported(error: &Error) -> bool {
    let Error::Refused { cause, .. } = error else { return false };
    let codes = [libc::EACCES, libc::EPERM, libc::ENOSYS, libc::ENOENT, libc::EOPNOTSUPP];
    cause.raw_os_error().is_some_and(|code| codes.contains(&code))
}
