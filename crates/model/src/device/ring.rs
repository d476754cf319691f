//! The ring in which a device is given requests.

use std::collections::VecDeque;

/// Entries that a request takes beside those of its segments: its header, and its status.
const BESIDE_SEGMENTS: u64 = 2;

/// A ring of which the device serves everything before it tells what is complete.
///
/// A request that comes while the device is busy joins what is being served, where the ring has
/// room for it. All of that is complete together. Requests that find no room wait until then, and
/// are given to the device together in their turn.
#[derive(Debug)]
pub struct Ring {
    entries: u64,
    batches: VecDeque<Batch>,
}

/// Requests that are complete together.
#[derive(Clone, Copy, Debug)]
struct Batch {
    entries: u64,
    requests: u64,
    done_ns: u64,
}

/// Where a request came into the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// When the device can begin with it, where it is not busy with others.
    pub from_ns: u64,
    /// Requests before it that are complete when it is.
    pub joined: u64,
}

impl Ring {
    /// An empty ring of so many entries.
    pub fn new(entries: u32) -> Ring {
        Ring { entries: entries.into(), batches: VecDeque::new() }
    }

    /// Gives the device a request of `segments` segments at `now_ns`; [`Ring::done_at`] says of it
    /// when it will be complete.
    pub fn give(&mut self, segments: u64, now_ns: u64) -> Given {
        let entries = (segments + BESIDE_SEGMENTS).min(self.entries);
        if let Some(last) = self.batches.back_mut()
            && now_ns < last.done_ns
            && last.entries + entries <= self.entries
        {
            let joined = last.requests;
            last.entries += entries;
            last.requests += 1;
            return Given { from_ns: now_ns, joined };
        }
        let from_ns = self.batches.back().map_or(now_ns, |last| last.done_ns.max(now_ns));
        self.batches.push_back(Batch { entries, requests: 1, done_ns: 0 });
        Given { from_ns, joined: 0 }
    }

    /// The last request, and those that it joined, will be complete at `done_ns`.
    pub fn done_at(&mut self, done_ns: u64) {
        self.batches.back_mut().expect("a request was given").done_ns = done_ns;
    }

    /// The first request is complete.
    pub fn complete(&mut self) {
        let first = self.batches.front_mut().expect("a request is under way");
        first.requests -= 1;
        if first.requests == 0 {
            self.batches.pop_front();
        }
    }
}
