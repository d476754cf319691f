//! Requests that wait for free slots in the device queue.

use filemap_core::units::FileId;

use super::{Device, RequestRun};

/// Queue slots that become free one after the other.
struct FreeSlots {
    /// How many.
    count: u64,
    /// When the first slot becomes free.
    first_ns: u64,
    /// Interval between slots.
    each_ns: u64,
}

/// The request whose completion frees the slot of the next request. Requests complete in order, so
/// this is always the one a queue depth earlier.
struct Predecessor {
    /// Its position in `Device::in_flight`.
    row: usize,
    /// Requests in that run and all later ones.
    requests_left: u64,
}

impl Device {
    /// Submits the pending runs from `number` on, whose requests may have to wait for queue slots.
    /// Requests served back to back are kept as one run.
    #[cold]
    pub(super) fn serve_queued(&mut self, number: usize, file: FileId, now_ns: u64) {
        let mut predecessor = Predecessor { row: 0, requests_left: self.in_flight_requests };
        for number in number..self.pending.len() {
            let mut pending = self.pending[number];
            let mut is_first = true;
            while pending.requests > 0 {
                let FreeSlots { count: number, first_ns, each_ns } =
                    self.next_slots(&mut predecessor);
                let from_ns = now_ns.max(first_ns);
                let first = self.request_run(pending.first(1), file, from_ns);
                // A slot must be free one latency before the device has served the requests ahead.
                let first_byte_ns = first.first_done_ns.saturating_sub(first.request_ns);
                let latency_ns = self.profile.latency_ns;
                let spare_ns = first_byte_ns.saturating_sub(first_ns.saturating_add(latency_ns));
                let after = match each_ns.saturating_sub(first.request_ns) {
                    0 => u64::MAX,
                    later_ns => spare_ns / later_ns,
                };
                let together = pending.requests.min(number).min(after.saturating_add(1));
                let row = RequestRun {
                    queued: true,
                    ..self.request_run(pending.first(together), file, from_ns)
                };
                pending = pending.after_first(together);
                let goes_on =
                    row.first_done_ns == self.busy_until_ns.saturating_add(row.request_ns);
                if let Some(last) = self.in_flight.back_mut().filter(|_| goes_on && !is_first) {
                    last.pages += row.pages;
                    last.requests += row.requests;
                    (last.last_done_ns, last.last_request_ns) =
                        (row.last_done_ns, row.last_request_ns);
                    self.busy_until_ns = row.last_done_ns;
                    self.in_flight_requests += row.requests;
                } else {
                    self.serve(row);
                }
                predecessor.requests_left += together;
                is_first = false;
            }
        }
    }

    /// The queue slots of the next requests, after `predecessor`.
    fn next_slots(&self, predecessor: &mut Predecessor) -> FreeSlots {
        let depth = u64::from(self.profile.queue_depth);
        if self.in_flight_requests < depth {
            return FreeSlots { count: depth - self.in_flight_requests, first_ns: 0, each_ns: 0 };
        }
        let row = loop {
            let row = &self.in_flight[predecessor.row];
            if predecessor.requests_left - row.requests < depth {
                break row;
            }
            predecessor.requests_left -= row.requests;
            predecessor.row += 1;
        };
        let next = predecessor.requests_left - depth;
        let (first_ns, each_ns) = (row.completion_ns(next), row.request_ns);
        let left = row.requests - next;
        let number = if row.last_request_ns == each_ns { left } else { (left - 1).max(1) };
        FreeSlots { count: number, first_ns, each_ns }
    }
}
