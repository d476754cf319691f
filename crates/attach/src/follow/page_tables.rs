//! Follows processes by polling: `/proc` for mappings and children, page tables for touches.
//!
//! Mappings and processes that come and go between two polls are missed, as are processes whose
//! parent exits in between.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::polled::PolledProcess;
use super::{scan, timer_error};
use crate::now_ns;
use crate::process::{self, process_stat};
use crate::{Error, Event, EventKind, MappedRange};

/// Bounds of the poll interval. The shorter it is, the more accurate are the event times.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
const MAX_INTERVAL: Duration = Duration::from_millis(20);

/// Idle time after a poll, as a multiple of its duration: polling uses at most a tenth of a CPU.
const IDLE_FACTOR: u32 = 9;

#[derive(Debug)]
pub struct PageTablePoller {
    /// Children that existed at the start and are not followed; `None` unless the caller's children
    /// are followed.
    initial_children: Option<HashSet<u32>>,
    processes: BTreeMap<u32, PolledProcess>,
    /// Events to deliver before the next poll.
    initial_events: Vec<Event>,
    timer: OwnedFd,
    next_poll: Instant,
    interval: Duration,
    /// When to search for new children next.
    next_child_search: Instant,
}

impl PageTablePoller {
    pub fn for_processes() -> Result<PageTablePoller, Error> {
        scan::check_supported()?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags);
        let timer = timer.map_err(|error| timer_error(error.into()))?;
        let now = Instant::now();
        let mut opened = PageTablePoller {
            initial_children: None,
            processes: BTreeMap::new(),
            initial_events: Vec::new(),
            timer,
            next_poll: now,
            interval: MIN_INTERVAL,
            next_child_search: now,
        };
        opened.schedule_poll(Duration::ZERO)?;
        Ok(opened)
    }

    pub fn for_children() -> Result<PageTablePoller, Error> {
        let mut opened = PageTablePoller::for_processes()?;
        let children = process::children(std::process::id())?;
        opened.initial_children = Some(children.into_iter().collect());
        Ok(opened)
    }

    pub fn add(&mut self, pid: u32) -> Result<(), Error> {
        // Already found as a child; adding it again would lose its watched ranges.
        if self.processes.contains_key(&pid) {
            return Ok(());
        }
        let first = &mut self.initial_events;
        let added = PolledProcess::from_running(pid, &mut |event| first.push(event))?;
        self.processes.insert(pid, added);
        Ok(())
    }

    pub fn watch(&mut self, pid: u32, range: &MappedRange) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.watch(range);
        }
    }

    pub fn unwatch(&mut self, pid: u32, range: &MappedRange) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.unwatch(range);
        }
    }

    pub fn wait(&self, timeout: Duration) -> Result<bool, Error> {
        let timeout = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut waited_for = [PollFd::new(&self.timer, PollFlags::IN)];
        match poll(&mut waited_for, Some(&timeout)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(timer_error(error.into())),
        }
    }

    pub fn read_events(&mut self, take: &mut dyn FnMut(Event)) -> Result<(), Error> {
        self.initial_events.drain(..).for_each(&mut *take);
        let begin = Instant::now();
        if begin < self.next_poll {
            return Ok(());
        }
        let mut has_seen = false;
        let mut tell = |event| {
            has_seen = true;
            take(event);
        };
        if begin >= self.next_child_search {
            self.find_children(&mut tell);
            // The search reads one file per thread.
            self.next_child_search = begin + (begin.elapsed() * IDLE_FACTOR).max(MIN_INTERVAL * 2);
        }
        self.processes.retain(|_, process| process.poll(&mut tell));
        let shorter = if has_seen { MIN_INTERVAL } else { self.interval * 2 };
        self.interval = shorter.min(MAX_INTERVAL);
        self.schedule_poll(begin.elapsed() * IDLE_FACTOR)
    }

    /// Arms the timer for the next poll, at least `least` from now.
    fn schedule_poll(&mut self, least: Duration) -> Result<(), Error> {
        let period = self.interval.max(least);
        self.next_poll = Instant::now() + period;
        let spec = |duration: Duration| Timespec {
            tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: duration.subsec_nanos().into(),
        };
        let times = Itimerspec { it_interval: spec(Duration::ZERO), it_value: spec(period) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times)
            .map_err(|error| timer_error(error.into()))?;
        Ok(())
    }

    /// Starts observing processes created since the previous search.
    fn find_children(&mut self, tell: &mut dyn FnMut(Event)) {
        let parents: Vec<u32> = self.processes.keys().copied().collect();
        for parent in parents {
            for child in process::children(parent).unwrap_or_default() {
                self.add_child(child, parent, tell);
            }
        }
        let Some(there_before) = &self.initial_children else { return };
        let own_pid = std::process::id();
        let Ok(own) = process_stat(own_pid) else { return };
        let children = process::children(own_pid).unwrap_or_default();
        let new = children.into_iter().filter(|child| !there_before.contains(child));
        // A child that has not called exec yet still has the image of this process.
        let is_other = |child: &u32| {
            process_stat(*child).is_ok_and(|life| life.image_addresses != own.image_addresses)
        };
        for child in new.filter(is_other).collect::<Vec<_>>() {
            self.add_child(child, own_pid, tell);
        }
    }

    fn add_child(&mut self, pid: u32, parent: u32, tell: &mut dyn FnMut(Event)) {
        if self.processes.contains_key(&pid) {
            return;
        }
        let at_ns = now_ns();
        let mut events = vec![Event { at_ns, pid, tid: pid, kind: EventKind::Fork { parent } }];
        if parent == std::process::id() {
            events.push(Event { at_ns, pid, tid: pid, kind: EventKind::Exec });
        }
        if let Ok(process) = PolledProcess::from_started(pid, &mut |event| events.push(event)) {
            events.into_iter().for_each(tell);
            self.processes.insert(pid, process);
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
