//! A process that is looked at again and again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::scan::PageTable;
use super::watched::Watched;
use crate::clock::now_ns;
use crate::process::{self, Life, life};
use crate::{Error, Event, FaultKind, MappedRange, What};

/// Without a sign of a change, mappings and touches are looked for this often.
const MAPS_HEARTBEAT: Duration = Duration::from_millis(200);
const SCAN_HEARTBEAT: Duration = Duration::from_millis(100);

/// Mappings are not listed again before so many times the time is over that listing them takes.
const REST: u32 = 20;

#[derive(Debug)]
pub struct LookedAt {
    pid: u32,
    life: Life,
    /// How many pages of addresses it has.
    size_pages: u64,
    mapped: HashMap<u64, MappedRange>,
    /// What was mapped before it was followed: touches before are not told.
    mapped_before: Vec<MappedRange>,
    maps_due: Instant,
    /// The sooner time from which on mappings are listed where the size is another.
    maps_rested: Instant,
    watched: Vec<Watched>,
    /// What has to be opened anew after exec.
    page_table: Option<PageTable>,
    scan_due: Instant,
    scanned_at_faults: u64,
}

impl LookedAt {
    /// A process that runs. Tells its mappings.
    pub fn running(pid: u32, tell: &mut dyn FnMut(Event)) -> Result<LookedAt, Error> {
        let mut process = LookedAt::begun(pid, tell)?;
        process.mapped_before = process.mapped.values().cloned().collect();
        Ok(process)
    }

    /// A process that has begun since the last look. Tells its mappings.
    pub fn begun(pid: u32, tell: &mut dyn FnMut(Event)) -> Result<LookedAt, Error> {
        let now = Instant::now();
        let mut process = LookedAt {
            pid,
            life: life(pid)?,
            size_pages: process::size_pages(pid)?,
            mapped: HashMap::new(),
            mapped_before: Vec::new(),
            maps_due: now,
            maps_rested: now,
            watched: Vec::new(),
            page_table: None,
            scan_due: now,
            scanned_at_faults: 0,
        };
        process.list(tell)?;
        Ok(process)
    }

    pub fn watch(&mut self, range: &MappedRange) {
        let (address, end) = (range.address, range.end());
        let overlaps = |before: &MappedRange| before.address < end && address < before.end();
        let tells_first = !self.mapped_before.iter().any(overlaps);
        self.watched.push(Watched::new(range.clone(), tells_first));
        self.scan_due = Instant::now();
    }

    pub fn unwatch(&mut self, range: &MappedRange) {
        self.watched.retain(|watched| !watched.is(range));
    }

    /// Tells what is other than at the last look. Returns whether the process is still there.
    pub fn look(&mut self, tell: &mut dyn FnMut(Event)) -> bool {
        let is_there = self.look_at_life(tell) && self.look_at_maps(tell).is_ok();
        if is_there {
            self.look_at_pages(tell);
        } else {
            self.tell(What::End, tell);
        }
        is_there
    }

    fn tell(&self, what: What, tell: &mut dyn FnMut(Event)) {
        tell(Event { at_ns: now_ns(), pid: self.pid, tid: self.pid, what });
    }

    /// Returns whether it is the same process, which may have become another program.
    fn look_at_life(&mut self, tell: &mut dyn FnMut(Event)) -> bool {
        let Ok(life) = life(self.pid) else { return false };
        if life.has_ended || life.began != self.life.began {
            return false;
        }
        if life.program != self.life.program && life.program != (0, 0) {
            self.tell(What::Exec, tell);
            self.mapped.clear();
            self.mapped_before.clear();
            self.watched.clear();
            self.page_table = None;
            self.maps_due = Instant::now();
        }
        self.life = life;
        true
    }

    fn look_at_maps(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let now = Instant::now();
        let size_pages = process::size_pages(self.pid)?;
        let is_other = size_pages != self.size_pages && now >= self.maps_rested;
        if is_other || now >= self.maps_due {
            self.size_pages = size_pages;
            self.list(tell)?;
        }
        Ok(())
    }

    /// Lists the mappings, and tells those that are new or others.
    fn list(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let begin = Instant::now();
        let at_ns = now_ns();
        let ranges = process::maps(self.pid)?;
        let mut mapped = HashMap::with_capacity(ranges.len());
        for range in ranges {
            if self.mapped.get(&range.address) != Some(&range) {
                let what = What::Map(range.clone());
                tell(Event { at_ns, pid: self.pid, tid: self.pid, what });
                let is_kept = |before: &MappedRange| before.address != range.address;
                self.mapped_before.retain(is_kept);
            }
            mapped.insert(range.address, range);
        }
        self.mapped = mapped;
        let rest = begin.elapsed() * REST;
        let now = Instant::now();
        (self.maps_due, self.maps_rested) = (now + rest.max(MAPS_HEARTBEAT), now + rest);
        Ok(())
    }

    /// Tells the pages that were touched, while there are faults that read pages.
    fn look_at_pages(&mut self, tell: &mut dyn FnMut(Event)) {
        let now = Instant::now();
        let faults = self.life.major_faults;
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
                let what = What::Fault { address, kind: FaultKind::Seen };
                tell(Event { at_ns, pid, tid: pid, what });
            });
        }
        self.scanned_at_faults = faults;
        self.scan_due = now + SCAN_HEARTBEAT;
    }
}
