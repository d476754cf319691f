//! The events of a set of processes, in order.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::{Error, Event, MappedRange};

/// How processes are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The kernel tells of each fault and mapping.
    PerfEvents,
    /// `/proc` and the page tables are looked at again and again.
    PageTables,
}

/// The stream of events of a set of processes, and of all that they start.
#[derive(Debug)]
pub struct Follower {}

impl Follower {
    /// Follows what the calling thread starts from now on, from its exec on. That thread has to
    /// live as long as this does.
    pub fn of_children() -> Result<Follower, Error> {
        todo!()
    }

    /// As [`Follower::of_children`], in a given way.
    pub fn of_children_by(_way: Way) -> Result<Follower, Error> {
        todo!()
    }

    /// Follows what is named by [`Follower::add`].
    pub fn of_processes() -> Result<Follower, Error> {
        todo!()
    }

    /// As [`Follower::of_processes`], in a given way.
    pub fn of_processes_by(_way: Way) -> Result<Follower, Error> {
        todo!()
    }

    pub fn way(&self) -> Way {
        todo!()
    }

    /// Follows a process that runs, and what it starts from now on. What it has mapped is told as
    /// if it was mapped now.
    pub fn add(&mut self, _pid: u32) -> Result<(), Error> {
        todo!()
    }

    /// Has touches of this range told where [`Way::PageTables`] is the way. Otherwise all are.
    pub fn watch(&mut self, _pid: u32, _range: &MappedRange) {
        todo!()
    }

    pub fn unwatch(&mut self, _pid: u32, _range: &MappedRange) {
        todo!()
    }

    /// Waits until there is something to read, or for `timeout`. Returns whether there is.
    pub fn wait(&mut self, _timeout: Duration) -> Result<bool, Error> {
        todo!()
    }

    /// Hands all events that are there to `take`, in order of time.
    pub fn read(&mut self, _take: &mut dyn FnMut(Event)) -> Result<(), Error> {
        todo!()
    }

    /// What becomes readable when there is something to read, to be polled beside other things.
    /// [`Follower::read`] is to be called every millisecond besides, while there are faults: minor
    /// ones do not wake anybody alone.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        todo!()
    }
}
