//! The device in virtual time.

mod queue;
mod ring;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use filemap_core::cache::FolioRun;
use filemap_core::units::{FileId, PageCount, PageIndex};

use self::ring::Ring;
use crate::profile;

/// Folios of one request at most (`BIO_MAX_VECS`), as it has a segment for each. What a device
/// cannot take at once is split further, but its pages arrive together nevertheless.
const REQUEST_FOLIOS: u64 = 256;

/// A device with requests under way.
///
/// Requests overlap in their latency, up to the queue depth, and share the bandwidth one after
/// the other, so they complete in the order in which they were made.
#[derive(Debug)]
pub struct Device {
    profile: profile::Device,
    page_size: u64,
    /// When the last byte asked for so far will have arrived.
    busy_until_ns: u64,
    rows: VecDeque<Row>,
    /// Where requests are complete together: each is a row of its own then.
    ring: Option<Ring>,
    /// Requests of the rows.
    under_way: u64,
    asked: Vec<Asked>,
}

/// Requests that were made together, for pages one after the other: all for as many pages, but
/// for the last.
#[derive(Clone, Copy, Debug)]
struct Row {
    file: FileId,
    /// The first page that has not arrived.
    start: PageIndex,
    /// How many have not.
    pages: PageCount,
    /// Pages of one request.
    each: PageCount,
    /// Requests that are not complete.
    requests: u64,
    /// When the first request will be complete.
    done_ns: u64,
    /// When all will be.
    all_done_ns: u64,
    /// How much later each one after it will be, and the last one of them.
    each_ns: u64,
    last_ns: u64,
    /// They waited for places in the queue: each wakes whoever waits for it when it is complete
    /// itself.
    queued: bool,
}

/// What a row of requests will read.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The first page of the first of them.
    pub start: PageIndex,
    /// Pages of all of them.
    pub pages: PageCount,
    each: PageCount,
    requests: u64,
    /// Folios that the last request can still take.
    room: u64,
}

/// Consecutive pages of a file that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The file.
    pub file: FileId,
    /// The first of them.
    pub start: PageIndex,
    /// How many.
    pub pages: PageCount,
}

impl Device {
    /// An idle device for pages of `page_size` bytes.
    pub fn new(profile: profile::Device, page_size: u64) -> Device {
        Device {
            profile,
            page_size,
            busy_until_ns: 0,
            rows: VecDeque::new(),
            ring: profile.ring_entries.map(Ring::new),
            under_way: 0,
            asked: Vec::new(),
        }
    }

    /// Adds folios to the next requests: to the last one, where they continue it and it has room,
    /// and then to others.
    pub fn ask(&mut self, run: FolioRun) {
        let FolioRun { mut start, order, mut folios, .. } = run;
        if let Some(last) = self.asked.last_mut()
            && last.start + last.pages == start
            && last.room > 0
        {
            if last.requests > 1 {
                let tail = last.tail();
                let (start, room) = (last.start + (last.pages - tail), last.room);
                last.pages -= tail;
                last.requests -= 1;
                let tail = Asked { start, pages: tail, each: tail, requests: 1, room };
                self.asked.push(tail);
            }
            let last = self.asked.last_mut().expect("it is the tail of another");
            let taken = folios.min(last.room);
            last.pages += PageCount(taken << order.0);
            last.each = last.pages;
            last.room -= taken;
            start += PageCount(taken << order.0);
            folios -= taken;
        }
        if folios > 0 {
            self.asked.push(Asked::new(FolioRun { start, folios, ..run }));
        }
    }

    /// Begins to read at `now_ns` what was asked for of `file`. Returns whether that was anything.
    /// What was under way may be complete later than it would have been.
    pub fn submit(&mut self, file: FileId, now_ns: u64) -> bool {
        for number in 0..self.asked.len() {
            let asked = self.asked[number];
            if self.ring.is_some() {
                self.give_one_by_one(asked, file, now_ns);
            } else if self.has_places(&asked) {
                let row = self.row(asked, file, now_ns);
                self.serve(row);
            } else {
                // Those after have to wait as well.
                self.serve_queued(number, file, now_ns);
                break;
            }
        }
        let is_anything = !self.asked.is_empty();
        self.asked.clear();
        is_anything
    }

    /// Begins to read folios of `file` at `now_ns` that nothing else is asked for with.
    #[inline(always)]
    pub fn read(&mut self, run: FolioRun, file: FileId, now_ns: u64) {
        debug_assert!(self.asked.is_empty(), "nothing else is asked for");
        let asked = Asked::new(run);
        if self.ring.is_none() && self.has_places(&asked) {
            let row = self.row(asked, file, now_ns);
            return self.serve(row);
        }
        self.asked.push(asked);
        self.submit(file, now_ns);
    }

    /// Reads `bytes` bytes at `now_ns` that are for no page of the cache, after what is under way.
    /// Returns when the last of them arrives. Requests overlap in their latency, so that it does
    /// not matter how many there are.
    pub fn read_direct(&mut self, bytes: u64, now_ns: u64) -> u64 {
        let pages = PageCount(bytes.div_ceil(self.page_size));
        let first_byte_ns = now_ns.saturating_add(self.profile.latency_ns);
        let transfer_ns = self.transfer_ns(pages, pages.0);
        self.busy_until_ns = first_byte_ns.max(self.busy_until_ns).saturating_add(transfer_ns);
        self.busy_until_ns
    }

    /// How many pages were asked for and are not begun.
    pub fn asked_pages(&self) -> PageCount {
        PageCount(self.asked.iter().map(|asked| asked.pages.0).sum())
    }

    /// Takes what was asked for and not begun: who asked goes on later.
    pub fn take_asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    /// Who asked for that goes on.
    pub fn ask_again(&mut self, asked: Vec<Asked>) {
        debug_assert!(self.asked.is_empty(), "one task asks at a time");
        self.asked = asked;
    }

    /// Whether all requests find places in the queue at once.
    fn has_places(&self, asked: &Asked) -> bool {
        self.under_way + asked.requests <= self.profile.queue_depth.into()
    }

    /// The row of requests of which the first is not served before `from_ns`, nor the others later
    /// for want of a place in the queue.
    #[inline(always)]
    fn row(&self, asked: Asked, file: FileId, from_ns: u64) -> Row {
        let Asked { start, pages, each, requests, .. } = asked;
        let last_ns = self.transfer_ns(asked.tail(), asked.last_segments());
        let each_ns = match requests {
            1 => last_ns,
            _ => self.transfer_ns(each, REQUEST_FOLIOS),
        };
        let first_byte_ns = from_ns.saturating_add(self.profile.latency_ns);
        let done_ns = first_byte_ns.max(self.busy_until_ns).saturating_add(each_ns);
        let (all_done_ns, queued) = (done_ns, false);
        let mut row = Row {
            file,
            start,
            pages,
            each,
            requests,
            done_ns,
            all_done_ns,
            each_ns,
            last_ns,
            queued,
        };
        if requests > 1 {
            row.all_done_ns = row.done_ns_of(requests - 1);
        }
        row
    }

    /// Begins to read `row`.
    #[inline]
    fn serve(&mut self, row: Row) {
        self.busy_until_ns = row.all_done_ns;
        self.under_way += row.requests;
        self.rows.push_back(row);
    }

    /// Begins to read a row through a ring, whose requests are complete with those that they join.
    #[inline(never)]
    fn give_one_by_one(&mut self, mut asked: Asked, file: FileId, now_ns: u64) {
        while asked.requests > 0 {
            let one = asked.first(1);
            asked = asked.behind(1);
            let ring = self.ring.as_mut().expect("the device has one");
            let given = ring.give(one.last_segments(), now_ns);
            let row = self.row(one, file, given.from_ns);
            self.serve(row);
            let done_ns = self.busy_until_ns;
            self.ring.as_mut().expect("the device has one").done_at(done_ns);
            for row in self.rows.iter_mut().rev().take(given.joined as usize + 1) {
                (row.done_ns, row.all_done_ns) = (done_ns, done_ns);
            }
        }
    }

    fn transfer_ns(&self, pages: PageCount, segments: u64) -> u64 {
        let bytes = pages.bytes(self.page_size);
        let bandwidth = self.profile.bandwidth_bytes;
        // Almost always short enough for a division of the processor's.
        let bytes_ns = match bytes.checked_mul(1_000_000_000) {
            Some(short) => short.div_ceil(bandwidth),
            None => {
                let long = (u128::from(bytes) * 1_000_000_000).div_ceil(bandwidth.into());
                u64::try_from(long).unwrap_or(u64::MAX)
            }
        };
        bytes_ns.saturating_add(self.profile.segment_ns.saturating_mul(segments))
    }

    /// The next pages that have arrived at `now_ns`, and when the last of them did; somebody may
    /// wait for one of them where `is_awaited`.
    #[inline(always)]
    pub fn arrived(&mut self, now_ns: u64, is_awaited: bool) -> Option<(Run, u64)> {
        let row = self.rows.front().filter(|row| row.done_ns <= now_ns)?;
        let Row { file, start, .. } = *row;
        let one_by_one = is_awaited && row.queued && row.requests > 1;
        if row.all_done_ns <= now_ns && !one_by_one {
            let (run, arrived_ns) = (Run { file, start, pages: row.pages }, row.all_done_ns);
            let requests = row.requests;
            self.rows.pop_front();
            self.completed(requests);
            return Some((run, arrived_ns));
        }
        Some(self.arrived_partly(now_ns, one_by_one))
    }

    /// The same of the first requests of a row that does not arrive as a whole.
    #[inline(never)]
    fn arrived_partly(&mut self, now_ns: u64, one_by_one: bool) -> (Run, u64) {
        let row = self.rows.front_mut().expect("its first request is complete");
        let Row { file, start, .. } = *row;
        let behind = (now_ns - row.done_ns).checked_div(row.each_ns).unwrap_or(u64::MAX);
        let arrived = behind.saturating_add(1).min(row.requests - 1);
        let arrived = if one_by_one { 1 } else { arrived };
        let arrived_ns = row.done_ns + row.each_ns * (arrived - 1);
        row.requests -= arrived;
        let next_ns = if row.requests == 1 { row.last_ns } else { row.each_ns };
        row.done_ns = arrived_ns.saturating_add(next_ns);
        let pages = PageCount(row.each.0 * arrived);
        row.start += pages;
        row.pages -= pages;
        self.completed(arrived);
        (Run { file, start, pages }, arrived_ns)
    }

    /// Counts so many of the requests that were given first as complete.
    fn completed(&mut self, requests: u64) {
        self.under_way -= requests;
        if self.ring.is_some() {
            self.completed_in_ring(requests);
        }
    }

    #[inline(never)]
    fn completed_in_ring(&mut self, requests: u64) {
        let ring = self.ring.as_mut().expect("the device has one");
        (0..requests).for_each(|_| ring.complete());
    }

    /// When the next request will be complete.
    pub fn next_done_ns(&self) -> Option<u64> {
        self.rows.front().map(|row| row.done_ns)
    }

    /// When the page `index` of `file` arrives, where it is being read.
    #[inline]
    pub fn arrival_ns(&self, file: FileId, index: PageIndex) -> Option<u64> {
        // Most often it is what was asked for last, by itself.
        let last = self.rows.back()?;
        if last.requests == 1 && last.holds(file, index) {
            return Some(last.done_ns);
        }
        let row = self.rows.iter().rev().find(|row| row.holds(file, index))?;
        Some(row.done_ns_of((index - row.start).0 / row.each.0))
    }
}

impl Asked {
    /// Requests for `run` alone.
    #[inline(always)]
    fn new(run: FolioRun) -> Asked {
        let FolioRun { start, order, folios, .. } = run;
        let pages = PageCount(folios << order.0);
        let requests = folios.div_ceil(REQUEST_FOLIOS);
        let each = PageCount(REQUEST_FOLIOS << order.0).min(pages);
        let room = requests * REQUEST_FOLIOS - folios;
        Asked { start, pages, each, requests, room }
    }

    /// The first `requests` of them.
    fn first(self, requests: u64) -> Asked {
        if requests == self.requests {
            return self;
        }
        Asked { pages: PageCount(self.each.0 * requests), requests, room: 0, ..self }
    }

    /// Those after the first `requests` of them.
    fn behind(self, requests: u64) -> Asked {
        let before = PageCount(self.each.0 * requests).min(self.pages);
        let (start, pages) = (self.start + before, self.pages - before);
        let requests = self.requests - requests;
        Asked { start, pages, each: self.each.min(pages), requests, ..self }
    }

    /// Segments of the last request.
    fn last_segments(&self) -> u64 {
        REQUEST_FOLIOS - self.room
    }

    /// Pages of the last request.
    fn tail(&self) -> PageCount {
        PageCount(self.pages.0 - self.each.0 * (self.requests - 1))
    }
}

impl Row {
    fn holds(&self, file: FileId, index: PageIndex) -> bool {
        self.file == file && self.start <= index && index < self.start + self.pages
    }

    /// When the request `number` of those that are not complete will be, counted from 0.
    fn done_ns_of(&self, number: u64) -> u64 {
        let is_last = number > 0 && number + 1 == self.requests;
        let of_each = if is_last { number - 1 } else { number };
        let last_ns = if is_last { self.last_ns } else { 0 };
        self.done_ns.saturating_add(self.each_ns.saturating_mul(of_each)).saturating_add(last_ns)
    }
}
