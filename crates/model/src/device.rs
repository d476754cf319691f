//! Block devices in virtual time.

mod closed_loop;
mod queue;
mod ring;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use filemap_core::cache::FolioRun;
use filemap_core::units::{FileId, PageCount, PageIndex};

pub use self::closed_loop::closed_loop_ns;
use self::ring::Ring;
use crate::profile;

/// Maximum number of folios in one request (`BIO_MAX_VECS`): each needs a segment. A device with a
/// lower limit splits requests further, but their pages still arrive together.
const REQUEST_FOLIOS: u64 = 256;

/// A device and its requests in flight.
///
/// Up to the queue depth, request latencies overlap. What a request keeps the device busy for, its
/// transfer and `request_ns`, is served one after the other. Requests therefore complete in
/// submission order.
#[derive(Debug)]
pub struct Device {
    profile: profile::DeviceProfile,
    page_size: u64,
    /// When the last byte requested so far arrives.
    busy_until_ns: u64,
    in_flight: VecDeque<RequestRun>,
    /// Present if completions are reported in batches; then each run holds a single request.
    ring: Option<Ring>,
    /// Number of requests in `in_flight`.
    in_flight_requests: u64,
    pending: Vec<PendingRun>,
}

/// Requests for consecutive pages, submitted together. All have the same size except the last.
#[derive(Clone, Copy, Debug)]
struct RequestRun {
    file: FileId,
    /// First page that has not arrived.
    start: PageIndex,
    /// Pages that have not arrived.
    pages: PageCount,
    /// Pages per request.
    request_pages: PageCount,
    /// Requests not yet complete.
    requests: u64,
    /// Completion time of the first request.
    first_done_ns: u64,
    /// Completion time of the last request.
    last_done_ns: u64,
    /// Additional time for each following request, and for the last one.
    request_ns: u64,
    last_request_ns: u64,
    /// The requests waited for queue slots, so each wakes its waiters when it completes.
    queued: bool,
}

/// Requests for consecutive pages that are not submitted yet.
#[derive(Clone, Copy, Debug)]
pub struct PendingRun {
    /// First page.
    pub start: PageIndex,
    /// Pages of all requests.
    pub pages: PageCount,
    each: PageCount,
    requests: u64,
    /// Folios that still fit into the last request.
    room: u64,
    /// Pages that are not transferred, as they lie in holes. Only of a single folio.
    hole_pages: PageCount,
}

/// Consecutive pages of a file that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The file.
    pub file: FileId,
    /// First page.
    pub start: PageIndex,
    /// Number of pages.
    pub pages: PageCount,
}

impl Device {
    /// An idle device for pages of `page_size` bytes.
    pub fn new(profile: profile::DeviceProfile, page_size: u64) -> Device {
        Device {
            profile,
            page_size,
            busy_until_ns: 0,
            in_flight: VecDeque::new(),
            ring: profile.ring_entries.map(Ring::new),
            in_flight_requests: 0,
            pending: Vec::new(),
        }
    }

    /// Adds folios to the pending requests, extending the last one if they are adjacent and it has
    /// room.
    pub fn add_pending(&mut self, run: FolioRun) {
        let FolioRun { mut start, order, mut folios, .. } = run;
        if let Some(last) = self.pending.last_mut()
            && last.start + last.pages == start
            && last.room > 0
        {
            if last.requests > 1 {
                let tail = last.last_request_pages();
                let (start, room) = (last.start + (last.pages - tail), last.room);
                last.pages -= tail;
                last.requests -= 1;
                let hole_pages = PageCount(0);
                let tail =
                    PendingRun { start, pages: tail, each: tail, requests: 1, room, hole_pages };
                self.pending.push(tail);
            }
            let last = self.pending.last_mut().expect("it is the tail of another");
            let taken = folios.min(last.room);
            last.pages += PageCount(taken << order.0);
            last.each = last.pages;
            last.room -= taken;
            start += PageCount(taken << order.0);
            folios -= taken;
        }
        if folios > 0 {
            self.pending.push(PendingRun::new(FolioRun { start, folios, ..run }));
        }
    }

    /// Adds a request for a single folio, of which `hole_pages` lie in holes: it arrives as a
    /// whole, and only the others are transferred.
    pub fn add_pending_partly(&mut self, folio: FolioRun, hole_pages: PageCount) {
        self.pending.push(PendingRun { room: 0, hole_pages, ..PendingRun::new(folio) });
    }

    /// Submits the pending requests for `file` at `now_ns`. Returns whether there were any.
    /// Requests already in flight may complete later as a result.
    pub fn submit(&mut self, file: FileId, now_ns: u64) -> bool {
        for number in 0..self.pending.len() {
            let pending = self.pending[number];
            if self.ring.is_some() {
                self.submit_through_ring(pending, file, now_ns);
            } else if self.has_queue_slots(&pending) {
                let row = self.request_run(pending, file, now_ns);
                self.serve(row);
            } else {
                // The requests after it wait as well.
                self.serve_queued(number, file, now_ns);
                break;
            }
        }
        let is_anything = !self.pending.is_empty();
        self.pending.clear();
        is_anything
    }

    /// Submits a request for a single run of folios of `file` at `now_ns`. Nothing may be pending.
    #[inline(always)]
    pub fn read(&mut self, run: FolioRun, file: FileId, now_ns: u64) {
        debug_assert!(self.pending.is_empty(), "nothing else is pending for");
        let pending = PendingRun::new(run);
        if self.ring.is_none() && self.has_queue_slots(&pending) {
            let row = self.request_run(pending, file, now_ns);
            return self.serve(row);
        }
        self.pending.push(pending);
        self.submit(file, now_ns);
    }

    /// Submits an O_DIRECT read of `bytes` bytes at `now_ns`, after the requests in flight. Returns
    /// when its last byte arrives. Latencies overlap.
    pub fn read_direct(&mut self, bytes: u64, now_ns: u64) -> u64 {
        let pages = PageCount(bytes.div_ceil(self.page_size));
        let first_byte_ns = now_ns.saturating_add(self.profile.latency_ns);
        let requests = pages.0.div_ceil(REQUEST_FOLIOS).max(1);
        let more_ns = self.profile.request_ns.saturating_mul(requests - 1);
        let transfer_ns = self.service_ns(pages, pages.0).saturating_add(more_ns);
        self.busy_until_ns = first_byte_ns.max(self.busy_until_ns).saturating_add(transfer_ns);
        self.busy_until_ns
    }

    /// Number of pending pages.
    pub fn pending_pages(&self) -> PageCount {
        PageCount(self.pending.iter().map(|pending| pending.pages.0).sum())
    }

    /// Removes the pending requests of a task that pauses.
    pub fn take_pending(&mut self) -> Vec<PendingRun> {
        std::mem::take(&mut self.pending)
    }

    /// Restores the pending requests of a task that resumes.
    pub fn restore_pending(&mut self, pending: Vec<PendingRun>) {
        debug_assert!(self.pending.is_empty(), "one task asks at a time");
        self.pending = pending;
    }

    /// Whether the queue has free slots for all requests.
    fn has_queue_slots(&self, pending: &PendingRun) -> bool {
        self.in_flight_requests + pending.requests <= self.profile.queue_depth.into()
    }

    /// Computes the timing of a run whose first request starts at `from_ns` at the earliest,
    /// assuming that queue slots do not delay the others.
    #[inline(always)]
    fn request_run(&self, pending: PendingRun, file: FileId, from_ns: u64) -> RequestRun {
        let PendingRun { start, pages, each, requests, .. } = pending;
        let last_ns = self.service_ns(pending.transferred_pages(), pending.last_segments());
        let each_ns = match requests {
            1 => last_ns,
            _ => self.service_ns(each, REQUEST_FOLIOS),
        };
        let first_byte_ns = from_ns.saturating_add(self.profile.latency_ns);
        let done_ns = first_byte_ns.max(self.busy_until_ns).saturating_add(each_ns);
        let (all_done_ns, queued) = (done_ns, false);
        let mut row = RequestRun {
            file,
            start,
            pages,
            request_pages: each,
            requests,
            first_done_ns: done_ns,
            last_done_ns: all_done_ns,
            request_ns: each_ns,
            last_request_ns: last_ns,
            queued,
        };
        if requests > 1 {
            row.last_done_ns = row.completion_ns(requests - 1);
        }
        row
    }

    /// Puts `row` in flight.
    #[inline]
    fn serve(&mut self, row: RequestRun) {
        self.busy_until_ns = row.last_done_ns;
        self.in_flight_requests += row.requests;
        self.in_flight.push_back(row);
    }

    /// Submits requests one by one through the ring; each completes with the batch that it joins.
    #[inline(never)]
    fn submit_through_ring(&mut self, mut pending: PendingRun, file: FileId, now_ns: u64) {
        while pending.requests > 0 {
            let one = pending.first(1);
            pending = pending.after_first(1);
            let ring = self.ring.as_mut().expect("the device has one");
            let position = ring.submit(one.last_segments(), now_ns);
            let row = self.request_run(one, file, position.from_ns);
            self.serve(row);
            let done_ns = self.busy_until_ns;
            self.ring.as_mut().expect("the device has one").set_done(done_ns);
            for row in self.in_flight.iter_mut().rev().take(position.requests_before as usize + 1) {
                (row.first_done_ns, row.last_done_ns) = (done_ns, done_ns);
            }
        }
    }

    /// Time for which a request of `pages` pages in `segments` segments keeps the device busy.
    fn service_ns(&self, pages: PageCount, segments: u64) -> u64 {
        let bytes = pages.bytes(self.page_size);
        let bandwidth = self.profile.bandwidth_bytes;
        // Almost always fits a 64-bit division.
        let bytes_ns = match bytes.checked_mul(1_000_000_000) {
            Some(short) => short.div_ceil(bandwidth),
            None => {
                let long = (u128::from(bytes) * 1_000_000_000).div_ceil(bandwidth.into());
                u64::try_from(long).unwrap_or(u64::MAX)
            }
        };
        let segments_ns = self.profile.segment_ns.saturating_mul(segments);
        bytes_ns.saturating_add(segments_ns).saturating_add(self.profile.request_ns)
    }

    /// The next pages that have arrived by `now_ns`, and when the last of them did. `is_awaited`
    /// says whether a task may be waiting for one of them.
    #[inline(always)]
    pub fn next_arrival(&mut self, now_ns: u64, is_awaited: bool) -> Option<(PageRun, u64)> {
        let row = self.in_flight.front().filter(|row| row.first_done_ns <= now_ns)?;
        let RequestRun { file, start, .. } = *row;
        let one_by_one = is_awaited && row.queued && row.requests > 1;
        if row.last_done_ns <= now_ns && !one_by_one {
            let (run, arrived_ns) = (PageRun { file, start, pages: row.pages }, row.last_done_ns);
            let requests = row.requests;
            self.in_flight.pop_front();
            self.complete_requests(requests);
            return Some((run, arrived_ns));
        }
        Some(self.next_partial_arrival(now_ns, one_by_one))
    }

    /// When the requests of the next [`Device::next_arrival`] were complete.
    pub fn completions(&self, now_ns: u64, is_awaited: bool) -> impl Iterator<Item = u64> {
        let row = self.in_flight.front().filter(|row| row.first_done_ns <= now_ns);
        row.into_iter().flat_map(move |row| {
            let most = if is_awaited && row.queued { 1 } else { row.requests };
            let times = (0..most).map(|number| row.completion_ns(number));
            times.take_while(move |at_ns| *at_ns <= now_ns)
        })
    }

    /// Number of requests in flight.
    pub fn in_flight_requests(&self) -> u64 {
        self.in_flight_requests
    }

    /// [`Device::next_arrival`] for the first requests of a run that has not arrived completely.
    #[inline(never)]
    fn next_partial_arrival(&mut self, now_ns: u64, one_by_one: bool) -> (PageRun, u64) {
        let row = self.in_flight.front_mut().expect("its first request is complete");
        let RequestRun { file, start, .. } = *row;
        let after = (now_ns - row.first_done_ns).checked_div(row.request_ns).unwrap_or(u64::MAX);
        let arrived = after.saturating_add(1).min(row.requests - 1);
        let arrived = if one_by_one { 1 } else { arrived };
        let arrived_ns = row.first_done_ns + row.request_ns * (arrived - 1);
        row.requests -= arrived;
        let next_ns = if row.requests == 1 { row.last_request_ns } else { row.request_ns };
        row.first_done_ns = arrived_ns.saturating_add(next_ns);
        let pages = PageCount(row.request_pages.0 * arrived);
        row.start += pages;
        row.pages -= pages;
        self.complete_requests(arrived);
        (PageRun { file, start, pages }, arrived_ns)
    }

    /// Counts the oldest `requests` requests as complete.
    fn complete_requests(&mut self, requests: u64) {
        self.in_flight_requests -= requests;
        if self.ring.is_some() {
            self.complete_in_ring(requests);
        }
    }

    #[inline(never)]
    fn complete_in_ring(&mut self, requests: u64) {
        let ring = self.ring.as_mut().expect("the device has one");
        (0..requests).for_each(|_| ring.complete_first());
    }

    /// Completion time of the next request.
    pub fn next_done_ns(&self) -> Option<u64> {
        self.in_flight.front().map(|row| row.first_done_ns)
    }

    /// Arrival time of page `index` of `file`, if it is being read.
    #[inline]
    pub fn arrival_ns(&self, file: FileId, index: PageIndex) -> Option<u64> {
        // Usually the page was requested last, on its own.
        let last = self.in_flight.back()?;
        if last.requests == 1 && last.contains(file, index) {
            return Some(last.first_done_ns);
        }
        let row = self.in_flight.iter().rev().find(|row| row.contains(file, index))?;
        Some(row.completion_ns((index - row.start).0 / row.request_pages.0))
    }
}

impl PendingRun {
    /// Pending requests for `run` only.
    #[inline(always)]
    fn new(run: FolioRun) -> PendingRun {
        let FolioRun { start, order, folios, .. } = run;
        let pages = PageCount(folios << order.0);
        let requests = folios.div_ceil(REQUEST_FOLIOS);
        let each = PageCount(REQUEST_FOLIOS << order.0).min(pages);
        let room = requests * REQUEST_FOLIOS - folios;
        PendingRun { start, pages, each, requests, room, hole_pages: PageCount(0) }
    }

    /// The first `requests` requests.
    fn first(self, requests: u64) -> PendingRun {
        if requests == self.requests {
            return self;
        }
        PendingRun { pages: PageCount(self.each.0 * requests), requests, room: 0, ..self }
    }

    /// The requests after the first `requests`.
    fn after_first(self, requests: u64) -> PendingRun {
        let before = PageCount(self.each.0 * requests).min(self.pages);
        let (start, pages) = (self.start + before, self.pages - before);
        let requests = self.requests - requests;
        PendingRun { start, pages, each: self.each.min(pages), requests, ..self }
    }

    /// Segments of the last request.
    fn last_segments(&self) -> u64 {
        REQUEST_FOLIOS - self.room
    }

    /// Pages of the last request that are transferred.
    fn transferred_pages(&self) -> PageCount {
        self.last_request_pages() - self.hole_pages
    }

    /// Pages of the last request.
    fn last_request_pages(&self) -> PageCount {
        PageCount(self.pages.0 - self.each.0 * (self.requests - 1))
    }
}

impl RequestRun {
    fn contains(&self, file: FileId, index: PageIndex) -> bool {
        self.file == file && self.start <= index && index < self.start + self.pages
    }

    /// Completion time of the request `number`, counted from 0 over the incomplete ones.
    fn completion_ns(&self, number: u64) -> u64 {
        let is_last = number > 0 && number + 1 == self.requests;
        let of_each = if is_last { number - 1 } else { number };
        let last_ns = if is_last { self.last_request_ns } else { 0 };
        self.first_done_ns
            .saturating_add(self.request_ns.saturating_mul(of_each))
            .saturating_add(last_ns)
    }
}
