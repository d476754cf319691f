//! Detects faults that the kernel takes inside system calls, such as write(2) from a mapping, which
//! perf does not report to unprivileged users. If `majflt` of a process grows faster than its
//! reported major faults, a scan of its page tables shows which pages were read.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::scan::{PageTable, WatchedRange};
use crate::now_ns;
use crate::process::process_stat;
use crate::{Event, EventKind, FaultKind, MappedRange};

/// Intervals between readings of a process's fault counter, with and without unreported faults.
const BUSY_INTERVAL: Duration = Duration::from_millis(2);
const IDLE_INTERVAL: Duration = Duration::from_millis(20);

/// Idle time after a poll, as a multiple of its duration: scanning large page tables is slow.
const IDLE_FACTOR: u32 = 9;

/// Difference between counted and reported faults that is attributed to records still in the rings.
const MAX_UNREPORTED: u64 = 4;

/// Page table scans of the processes with watched ranges.
#[derive(Debug, Default)]
pub struct KernelFaultDetector {
    processes: BTreeMap<u32, WatchedProcess>,
    due: Option<Instant>,
}

#[derive(Debug, Default)]
struct WatchedProcess {
    watched: Vec<WatchedRange>,
    page_table: Option<PageTable>,
    /// Major faults before the watch began, plus those reported since.
    reported: u64,
}

impl KernelFaultDetector {
    pub fn watch(&mut self, pid: u32, range: &MappedRange) {
        let process = self.processes.entry(pid).or_insert_with(|| WatchedProcess {
            reported: process_stat(pid).map_or(0, |life| life.major_faults),
            ..WatchedProcess::default()
        });
        let mut watched = WatchedRange::new(range.clone(), false);
        if process.page_table.is_none() {
            process.page_table = PageTable::open(pid);
        }
        // Pages present now were reported or touched before; reporting them would look like one
        // long scan.
        if let Some(page_table) = &process.page_table {
            watched.scan(page_table, |_| ());
        }
        process.watched.push(watched);
    }

    pub fn unwatch(&mut self, pid: u32, range: &MappedRange) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.watched.retain(|watched| !watched.starts_at(range));
            if process.watched.is_empty() {
                self.processes.remove(&pid);
            }
        }
    }

    /// Accounts for an event reported by perf.
    pub fn on_event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Fault { kind: FaultKind::Major, .. } => {
                if let Some(process) = self.processes.get_mut(&event.pid) {
                    process.reported += 1;
                }
            }
            EventKind::Exec => {
                self.processes.remove(&event.pid);
            }
            _ => {}
        }
    }

    /// Time until [`KernelFaultDetector::poll`] is due; `None` if nothing is watched.
    pub fn time_to_next_poll(&self) -> Option<Duration> {
        let due = self.due.filter(|_| !self.processes.is_empty());
        due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Emits an event for each page that became present without a reported fault.
    pub fn poll(&mut self, take: &mut dyn FnMut(Event)) {
        if self.time_to_next_poll().is_some_and(|rest| !rest.is_zero()) {
            return;
        }
        let begin = Instant::now();
        let mut is_busy = false;
        self.processes.retain(|&pid, process| {
            let Ok(life) = process_stat(pid) else { return false };
            if life.major_faults > process.reported + MAX_UNREPORTED {
                process.scan(pid, take);
                process.reported = life.major_faults;
                is_busy = true;
            }
            // Differences below the threshold accumulate. After a scan, records of faults it
            // already covered may still arrive, so cap the count.
            process.reported = process.reported.min(life.major_faults);
            true
        });
        let period = if is_busy { BUSY_INTERVAL } else { IDLE_INTERVAL };
        let period = period.max(begin.elapsed() * IDLE_FACTOR);
        self.due = Some(Instant::now() + period);
    }
}

impl WatchedProcess {
    fn scan(&mut self, pid: u32, take: &mut dyn FnMut(Event)) {
        if self.page_table.is_none() {
            self.page_table = PageTable::open(pid);
        }
        let Some(page_table) = &self.page_table else { return };
        let at_ns = now_ns();
        for watched in &mut self.watched {
            watched.scan(page_table, |address| {
                let kind = EventKind::Fault { address, kind: FaultKind::Scanned };
                take(Event { at_ns, pid, tid: pid, kind });
            });
        }
    }
}
