//! The way that looks again and again: for mappings and processes in `/proc`, and for touches in
//! the page tables.
//!
//! What is made and gone between two looks is not seen. A process whose parent ends within that
//! time is not found either.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::looked_at::LookedAt;
use super::{refusal, scan};
use crate::clock::now_ns;
use crate::process::{self, life};
use crate::{Error, Event, MappedRange, What};

/// How often is looked: the more often, the less time ago something was seen.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);
const LONGEST_PERIOD: Duration = Duration::from_millis(20);

/// Between two looks is so many times the time that one takes, so that they take a tenth of a CPU.
const REST: u32 = 9;

#[derive(Debug)]
pub struct PageTables {
    /// Whether the caller's own children are followed, and those that were there before and are
    /// not.
    of_children: Option<HashSet<u32>>,
    processes: BTreeMap<u32, LookedAt>,
    /// What is told before the next look.
    first: Vec<Event>,
    timer: OwnedFd,
    due: Instant,
    period: Duration,
    /// When children are looked for.
    children_due: Instant,
}

impl PageTables {
    pub fn of_processes() -> Result<PageTables, Error> {
        scan::check()?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags);
        let timer = timer.map_err(|error| refusal::of_timer(error.into()))?;
        let now = Instant::now();
        let mut opened = PageTables {
            of_children: None,
            processes: BTreeMap::new(),
            first: Vec::new(),
            timer,
            due: now,
            period: SHORTEST_PERIOD,
            children_due: now,
        };
        opened.rest(Duration::ZERO)?;
        Ok(opened)
    }

    pub fn of_children() -> Result<PageTables, Error> {
        let mut opened = PageTables::of_processes()?;
        let there = process::children(std::process::id())?;
        opened.of_children = Some(there.into_iter().collect());
        Ok(opened)
    }

    pub fn add(&mut self, pid: u32) -> Result<(), Error> {
        // It was found as a child, and may have ranges that are watched.
        if self.processes.contains_key(&pid) {
            return Ok(());
        }
        let first = &mut self.first;
        let added = LookedAt::running(pid, &mut |event| first.push(event))?;
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
            Err(error) => Err(refusal::of_timer(error.into())),
        }
    }

    pub fn read(&mut self, take: &mut dyn FnMut(Event)) -> Result<(), Error> {
        self.first.drain(..).for_each(&mut *take);
        let begin = Instant::now();
        if begin < self.due {
            return Ok(());
        }
        let mut has_seen = false;
        let mut tell = |event| {
            has_seen = true;
            take(event);
        };
        if begin >= self.children_due {
            self.find_children(&mut tell);
            // Of each thread a file is read.
            self.children_due = begin + (begin.elapsed() * REST).max(SHORTEST_PERIOD * 2);
        }
        self.processes.retain(|_, process| process.look(&mut tell));
        let shorter = if has_seen { SHORTEST_PERIOD } else { self.period * 2 };
        self.period = shorter.min(LONGEST_PERIOD);
        self.rest(begin.elapsed() * REST)
    }

    /// Arms the timer for the next look, which is not before `least` is over.
    fn rest(&mut self, least: Duration) -> Result<(), Error> {
        let period = self.period.max(least);
        self.due = Instant::now() + period;
        let spec = |duration: Duration| Timespec {
            tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: duration.subsec_nanos().into(),
        };
        let times = Itimerspec { it_interval: spec(Duration::ZERO), it_value: spec(period) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times)
            .map_err(|error| refusal::of_timer(error.into()))?;
        Ok(())
    }

    /// Begins with the processes that were made since.
    fn find_children(&mut self, tell: &mut dyn FnMut(Event)) {
        let parents: Vec<u32> = self.processes.keys().copied().collect();
        for parent in parents {
            for child in process::children(parent).unwrap_or_default() {
                self.begin(child, parent, tell);
            }
        }
        let Some(there_before) = &self.of_children else { return };
        let own_pid = std::process::id();
        let Ok(own) = life(own_pid) else { return };
        let children = process::children(own_pid).unwrap_or_default();
        let new = children.into_iter().filter(|child| !there_before.contains(child));
        // What has not called exec yet is this program.
        let is_other = |child: &u32| life(*child).is_ok_and(|life| life.program != own.program);
        for child in new.filter(is_other).collect::<Vec<_>>() {
            self.begin(child, own_pid, tell);
        }
    }

    fn begin(&mut self, pid: u32, parent: u32, tell: &mut dyn FnMut(Event)) {
        if self.processes.contains_key(&pid) {
            return;
        }
        let at_ns = now_ns();
        let mut events = vec![Event { at_ns, pid, tid: pid, what: What::Begin { parent } }];
        if parent == std::process::id() {
            events.push(Event { at_ns, pid, tid: pid, what: What::Exec });
        }
        if let Ok(process) = LookedAt::begun(pid, &mut |event| events.push(event)) {
            events.into_iter().for_each(tell);
            self.processes.insert(pid, process);
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
