//! The ring through which requests are submitted (virtqueue).

use std::collections::VecDeque;

/// Ring entries per request in addition to its segments: header and status.
const OVERHEAD_ENTRIES: u64 = 2;

/// A ring whose completions are reported in batches.
///
/// A request submitted while the device is busy joins the current batch if the ring has room; the
/// whole batch completes together. Requests that do not fit wait for that and then form the next
/// batch.
#[derive(Debug)]
pub struct Ring {
    entries: u64,
    batches: VecDeque<Batch>,
}

/// Requests that complete together.
#[derive(Clone, Copy, Debug)]
struct Batch {
    entries: u64,
    requests: u64,
    done_ns: u64,
}

/// Where a request was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPosition {
    /// When the device can start it, unless it is busy with other requests.
    pub from_ns: u64,
    /// Earlier requests in the same batch.
    pub requests_before: u64,
}

impl Ring {
    /// An empty ring.
    pub fn new(entries: u32) -> Ring {
        Ring { entries: entries.into(), batches: VecDeque::new() }
    }

    /// Submits a request of `segments` segments at `now_ns`. The caller then sets its completion
    /// time with [`Ring::set_done`].
    pub fn submit(&mut self, segments: u64, now_ns: u64) -> RingPosition {
        let entries = (segments + OVERHEAD_ENTRIES).min(self.entries);
        if let Some(last) = self.batches.back_mut()
            && now_ns < last.done_ns
            && last.entries + entries <= self.entries
        {
            let joined = last.requests;
            last.entries += entries;
            last.requests += 1;
            return RingPosition { from_ns: now_ns, requests_before: joined };
        }
        let from_ns = self.batches.back().map_or(now_ns, |last| last.done_ns.max(now_ns));
        self.batches.push_back(Batch { entries, requests: 1, done_ns: 0 });
        RingPosition { from_ns, requests_before: 0 }
    }

    /// Sets the completion time of the last batch.
    pub fn set_done(&mut self, done_ns: u64) {
        self.batches.back_mut().expect("a request was given").done_ns = done_ns;
    }

    /// Removes the oldest request.
    pub fn complete_first(&mut self) {
        let first = self.batches.front_mut().expect("a request is under way");
        first.requests -= 1;
        if first.requests == 0 {
            self.batches.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_join_what_is_served_while_the_ring_has_room() {
        let mut ring = Ring::new(256);
        assert_eq!(ring.submit(100, 0), RingPosition { from_ns: 0, requests_before: 0 });
        ring.set_done(10);
        // 102 entries are used, and 152 more fit.
        assert_eq!(ring.submit(150, 9), RingPosition { from_ns: 9, requests_before: 1 });
        ring.set_done(30);
        // Two entries are left: this request waits, and the next one joins it.
        assert_eq!(ring.submit(1, 20), RingPosition { from_ns: 30, requests_before: 0 });
        ring.set_done(40);
        assert_eq!(ring.submit(1, 21), RingPosition { from_ns: 21, requests_before: 1 });
        ring.set_done(50);
        (0..2).for_each(|_| ring.complete_first());
        // A batch that is complete is not joined.
        assert_eq!(ring.submit(1, 50), RingPosition { from_ns: 50, requests_before: 0 });
        // A request with more segments than the ring has entries occupies all of it.
        assert_eq!(Ring::new(8).submit(256, 5), RingPosition { from_ns: 5, requests_before: 0 });
    }
}
