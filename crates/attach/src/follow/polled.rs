//! A process observed by polling `/proc`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::scan::{PageTable, WatchedRange};
use crate::now_ns;
use crate::process::{self, ProcessStat, process_stat};
use crate::{Error, Event, EventKind, FaultKind, MappedRange};

/// Intervals between maps listings and page table scans when nothing indicates a change.
const MAPS_INTERVAL: Duration = Duration::from_millis(200);
const SCAN_INTERVAL: Duration = Duration::from_millis(100);

/// Minimum time between maps listings, as a multiple of the time that one takes.
const IDLE_FACTOR: u32 = 20;

#[derive(Debug)]
pub struct PolledProcess {
    pid: u32,
    stat: ProcessStat,
    /// Size of the address space in pages, from `statm`.
    size_pages: u64,
    maps: HashMap<u64, MappedRange>,
    /// Ranges mapped before the process was followed; pages present in them at the first scan are
    /// not reported.
    initial_maps: Vec<MappedRange>,
    maps_due: Instant,
    /// Earliest time to list mappings if the size of the address space has changed.
    maps_due_if_resized: Instant,
    watched: Vec<WatchedRange>,
    /// Refers to one `mm_struct`, so it has to be reopened after exec.
    page_table: Option<PageTable>,
    scan_due: Instant,
    scanned_at_faults: u64,
}

impl PolledProcess {
    /// Starts observing a process that was already running, and emits its mappings.
    pub fn from_running(pid: u32, tell: &mut dyn FnMut(Event)) -> Result<PolledProcess, Error> {
        let mut process = PolledProcess::from_started(pid, tell)?;
        process.initial_maps = process.maps.values().cloned().collect();
        Ok(process)
    }

    /// Starts observing a process created since the previous poll, and emits its mappings.
    pub fn from_started(pid: u32, tell: &mut dyn FnMut(Event)) -> Result<PolledProcess, Error> {
        let now = Instant::now();
        let mut process = PolledProcess {
            pid,
            stat: process_stat(pid)?,
            size_pages: process::size_pages(pid)?,
            maps: HashMap::new(),
            initial_maps: Vec::new(),
            maps_due: now,
            maps_due_if_resized: now,
            watched: Vec::new(),
            page_table: None,
            scan_due: now,
            scanned_at_faults: 0,
        };
        process.list_maps(tell)?;
        Ok(process)
    }

    pub fn watch(&mut self, range: &MappedRange) {
        let (address, end) = (range.address, range.end());
        let overlaps = |before: &MappedRange| before.address < end && address < before.end();
        let tells_first = !self.initial_maps.iter().any(overlaps);
        self.watched.push(WatchedRange::new(range.clone(), tells_first));
        self.scan_due = Instant::now();
    }

    pub fn unwatch(&mut self, range: &MappedRange) {
        self.watched.retain(|watched| !watched.starts_at(range));
    }

    /// Emits what changed since the previous poll. Returns whether the process still exists.
    pub fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> bool {
        let is_there = self.poll_stat(tell) && self.poll_maps(tell).is_ok();
        if is_there {
            self.poll_pages(tell);
        } else {
            self.emit(EventKind::Exit, tell);
        }
        is_there
    }

    fn emit(&self, kind: EventKind, tell: &mut dyn FnMut(Event)) {
        tell(Event { at_ns: now_ns(), pid: self.pid, tid: self.pid, kind });
    }

    /// Returns whether the PID still denotes the same process; emits an exec if its image changed.
    fn poll_stat(&mut self, tell: &mut dyn FnMut(Event)) -> bool {
        let Ok(life) = process_stat(self.pid) else { return false };
        if life.has_ended || life.start_ticks != self.stat.start_ticks {
            return false;
        }
        if life.image_addresses != self.stat.image_addresses && life.image_addresses != (0, 0) {
            self.emit(EventKind::Exec, tell);
            self.maps.clear();
            self.initial_maps.clear();
            self.watched.clear();
            self.page_table = None;
            self.maps_due = Instant::now();
        }
        self.stat = life;
        true
    }

    fn poll_maps(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let now = Instant::now();
        let size_pages = process::size_pages(self.pid)?;
        let is_other = size_pages != self.size_pages && now >= self.maps_due_if_resized;
        if is_other || now >= self.maps_due {
            self.size_pages = size_pages;
            self.list_maps(tell)?;
        }
        Ok(())
    }

    /// Lists the mappings, and emits those that are new or changed.
    fn list_maps(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let begin = Instant::now();
        let at_ns = now_ns();
        let ranges = process::maps(self.pid)?;
        let mut mapped = HashMap::with_capacity(ranges.len());
        for range in ranges {
            if self.maps.get(&range.address) != Some(&range) {
                let kind = EventKind::Map(range.clone());
                tell(Event { at_ns, pid: self.pid, tid: self.pid, kind });
                let is_kept = |before: &MappedRange| before.address != range.address;
                self.initial_maps.retain(is_kept);
            }
            mapped.insert(range.address, range);
        }
        self.maps = mapped;
        let rest = begin.elapsed() * IDLE_FACTOR;
        let now = Instant::now();
        (self.maps_due, self.maps_due_if_resized) = (now + rest.max(MAPS_INTERVAL), now + rest);
        Ok(())
    }

    /// Scans the watched ranges and emits newly present pages, if the major fault count has changed
    /// or the interval has elapsed.
    fn poll_pages(&mut self, tell: &mut dyn FnMut(Event)) {
        let now = Instant::now();
        let faults = self.stat.major_faults;
        let is_due = faults != self.scanned_at_faults || now >= self.scan_due;
        if self.watched.is_empty() || !is_due {
            return;
        }
        if self.page_table.is_none() {
            self.page_table = PageTable::open(self.pid);
        }
        let Some(page_table) = &self.page_table else { return };
        let pid = self.pid;
        let at_ns = now_ns();
        for watched in &mut self.watched {
            watched.scan(page_table, |address| {
                let kind = EventKind::Fault { address, kind: FaultKind::Scanned };
                tell(Event { at_ns, pid, tid: pid, kind });
            });
        }
        self.scanned_at_faults = faults;
        self.scan_due = now + SCAN_INTERVAL;
    }
}
