//! The events of a set of processes, in order.

mod clock;
mod perf_events;
mod refusal;
mod rings;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::{Error, Event, MappedRange};
use perf_events::PerfEvents;

/// How processes are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The kernel tells of each fault in user mode and of each mapping that is made, but not of
    /// those that are removed or moved.
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
}

impl Follower {
    /// Follows what the calling thread starts from now on, from its exec on. That thread has to
    /// live as long as this does.
    pub fn of_children() -> Result<Follower, Error> {
        Follower::of_children_by(Way::PerfEvents)
    }

    /// As [`Follower::of_children`], in a given way.
    pub fn of_children_by(way: Way) -> Result<Follower, Error> {
        let by = match way {
            Way::PerfEvents => By::PerfEvents(PerfEvents::of_children()?),
            Way::PageTables => todo!(),
        };
        Ok(Follower { by })
    }

    /// Follows what is named by [`Follower::add`].
    pub fn of_processes() -> Result<Follower, Error> {
        Follower::of_processes_by(Way::PerfEvents)
    }

    /// As [`Follower::of_processes`], in a given way.
    pub fn of_processes_by(way: Way) -> Result<Follower, Error> {
        let by = match way {
            Way::PerfEvents => By::PerfEvents(PerfEvents::of_processes()?),
            Way::PageTables => todo!(),
        };
        Ok(Follower { by })
    }

    pub fn way(&self) -> Way {
        match self.by {
            By::PerfEvents(_) => Way::PerfEvents,
        }
    }

    /// Follows a process that runs, and what it starts from now on. What it has mapped is told as
    /// if it was mapped now.
    pub fn add(&mut self, pid: u32) -> Result<(), Error> {
        match &mut self.by {
            By::PerfEvents(by) => by.add(pid),
        }
    }

    /// Has touches of this range told where [`Way::PageTables`] is the way. Otherwise all are.
    pub fn watch(&mut self, _pid: u32, _range: &MappedRange) {}

    pub fn unwatch(&mut self, _pid: u32, _range: &MappedRange) {}

    /// Waits until there may be something to read, or for `timeout`. Returns whether there may.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        match &mut self.by {
            By::PerfEvents(by) => by.wait(timeout),
        }
    }

    /// Hands all events that are there to `take`, in order of time.
    pub fn read(&mut self, take: &mut dyn FnMut(Event)) -> Result<(), Error> {
        match &mut self.by {
            By::PerfEvents(by) => by.read(take),
        }
        Ok(())
    }

    /// What becomes readable when there is something to read, to be polled beside other things.
    /// [`Follower::read`] is to be called every millisecond besides, while there are faults: minor
    /// ones do not wake anybody alone.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match &self.by {
            By::PerfEvents(by) => vec![by.fd()],
        }
    }
}
