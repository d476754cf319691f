//! The events of a set of processes, in order.

mod kernel_faults;
mod looked_at;
mod page_tables;
mod perf_events;
mod refusal;
mod scan;
mod watched;

pub(crate) use scan::PageTable;
pub use scan::mapped_pages;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::{Error, Event, MappedRange, process};
use page_tables::PageTables;
use perf_events::PerfEvents;

/// How processes are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The kernel tells of each fault and of each mapping that is made, but not of those that are
    /// removed or moved. Of faults inside of system calls it tells root only.
    PerfEvents,
    /// `/proc` and the page tables are looked at again and again, every 1 to 20 ms.
    PageTables,
}

/// The stream of events of a set of processes, and of all that they start.
#[derive(Debug)]
pub struct Follower {
    by: By,
}

#[derive(Debug)]
enum By {
    PerfEvents(PerfEvents),
    PageTables(PageTables),
}

impl Follower {
    /// Follows what the calling thread starts from now on, from its exec on. That thread has to
    /// live as long as this does.
    pub fn of_children() -> Result<Follower, Error> {
        or_by_page_tables(Follower::of_children_by)
    }

    /// As [`Follower::of_children`], in a given way.
    pub fn of_children_by(way: Way) -> Result<Follower, Error> {
        Follower::by(way, PerfEvents::of_children, PageTables::of_children)
    }

    /// As [`Follower::of_children`], without faults, so that they cost those threads nothing.
    pub fn of_children_without_faults() -> Result<Follower, Error> {
        or_by_page_tables(|way| {
            Follower::by(way, PerfEvents::of_children_without_faults, PageTables::of_children)
        })
    }

    /// Follows what is named by [`Follower::add`].
    pub fn of_processes() -> Result<Follower, Error> {
        or_by_page_tables(Follower::of_processes_by)
    }

    /// As [`Follower::of_processes`], in a given way.
    pub fn of_processes_by(way: Way) -> Result<Follower, Error> {
        Follower::by(way, PerfEvents::of_processes, PageTables::of_processes)
    }

    fn by(
        way: Way,
        perf_events: fn() -> Result<PerfEvents, Error>,
        page_tables: fn() -> Result<PageTables, Error>,
    ) -> Result<Follower, Error> {
        let by = match way {
            Way::PerfEvents => By::PerfEvents(perf_events()?),
            Way::PageTables => By::PageTables(page_tables()?),
        };
        Ok(Follower { by })
    }

    pub fn way(&self) -> Way {
        match self.by {
            By::PerfEvents(_) => Way::PerfEvents,
            By::PageTables(_) => Way::PageTables,
        }
    }

    /// Follows a process that runs, and what it starts from now on. What it has mapped is told as
    /// if it was mapped now.
    pub fn add(&mut self, pid: u32) -> Result<(), Error> {
        process::check_is_process(pid)?;
        match &mut self.by {
            By::PerfEvents(by) => by.add(pid),
            By::PageTables(by) => by.add(pid),
        }
    }

    /// Has touches of this range told that the kernel does not tell of: all of them where
    /// [`Way::PageTables`] is the way, and otherwise those inside of system calls.
    pub fn watch(&mut self, pid: u32, range: &MappedRange) {
        match &mut self.by {
            By::PerfEvents(by) => by.watch(pid, range),
            By::PageTables(by) => by.watch(pid, range),
        }
    }

    pub fn unwatch(&mut self, pid: u32, range: &MappedRange) {
        match &mut self.by {
            By::PerfEvents(by) => by.unwatch(pid, range),
            By::PageTables(by) => by.unwatch(pid, range),
        }
    }

    /// Waits until there may be something to read, or for `timeout`. Returns whether there may.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        match &mut self.by {
            By::PerfEvents(by) => by.wait(timeout),
            By::PageTables(by) => by.wait(timeout),
        }
    }

    /// Hands all events that are there to `take`, in order of time.
    pub fn read(&mut self, take: &mut dyn FnMut(Event)) -> Result<(), Error> {
        match &mut self.by {
            By::PerfEvents(by) => {
                by.read(take);
                Ok(())
            }
            By::PageTables(by) => by.read(take),
        }
    }

    /// What becomes readable when something is mapped, begins or ends, or when many faults are
    /// there to be read, to be polled beside other things. [`Follower::read`] is to be called every
    /// millisecond besides while there are faults, as [`Follower::wait`] does: few of them do not
    /// wake anybody.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match &self.by {
            By::PerfEvents(by) => vec![by.fd()],
            By::PageTables(by) => vec![by.fd()],
        }
    }
}

/// Opens by perf events, or by page tables where the kernel refuses those to this user. The error
/// is that of the better way where neither is there.
fn or_by_page_tables(open: fn(Way) -> Result<Follower, Error>) -> Result<Follower, Error> {
    open(Way::PerfEvents).or_else(|error| {
        if refusal::is_general(&error) {
            open(Way::PageTables).map_err(|_| error)
        } else {
            Err(error)
        }
    })
}
