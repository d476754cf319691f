//! The device in virtual time.

use std::collections::VecDeque;

use filemap_core::units::{PageCount, PageIndex};

use crate::profile;

/// A device with requests under way.
///
/// Requests overlap in their latency, up to the queue depth, and share the bandwidth one behind
/// the other, so they complete in the order in which they were made.
#[derive(Debug)]
pub struct Device {
    profile: profile::Device,
    page_size: u64,
    /// When the last byte asked for so far will have arrived.
    busy_until_ns: u64,
    requests: VecDeque<Request>,
}

#[derive(Debug)]
struct Request {
    done_ns: u64,
    /// Runs of pages that become up to date together.
    runs: Vec<(PageIndex, PageCount)>,
}

impl Device {
    /// An idle device for pages of `page_size` bytes.
    pub fn new(profile: profile::Device, page_size: u64) -> Device {
        Device { profile, page_size, busy_until_ns: 0, requests: VecDeque::new() }
    }

    /// Begins to read `runs`, not empty, at `now_ns`.
    pub fn submit(&mut self, runs: Vec<(PageIndex, PageCount)>, now_ns: u64) {
        let depth = self.profile.queue_depth as usize;
        let slot_ns = match self.requests.len().checked_sub(depth) {
            Some(last_out) => self.requests[last_out].done_ns,
            None => 0,
        };
        let bytes: u64 = runs.iter().map(|(_, pages)| pages.bytes(self.page_size)).sum();
        let transfer_ns = u128::from(bytes) * 1_000_000_000;
        let transfer_ns = transfer_ns.div_ceil(self.profile.bandwidth_bytes.into()) as u64;
        let first_byte_ns = now_ns.max(slot_ns) + self.profile.latency_ns;
        let done_ns = first_byte_ns.max(self.busy_until_ns) + transfer_ns;
        self.busy_until_ns = done_ns;
        self.requests.push_back(Request { done_ns, runs });
    }

    /// The runs of the next request that is complete at `now_ns`.
    pub fn complete(&mut self, now_ns: u64) -> Option<Vec<(PageIndex, PageCount)>> {
        let request = self.requests.pop_front_if(|request| request.done_ns <= now_ns)?;
        Some(request.runs)
    }

    /// When the next request will be complete.
    pub fn next_done_ns(&self) -> Option<u64> {
        self.requests.front().map(|request| request.done_ns)
    }
}
