//! The device in virtual time.

use std::collections::VecDeque;

use filemap_core::units::{FileId, PageCount, PageIndex};

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
    /// When each request will be complete, and how many of `runs` it reads.
    requests: VecDeque<(u64, usize)>,
    runs: VecDeque<Run>,
    /// The last of `runs` that are in no request yet: how many, and their pages.
    asked: (usize, PageCount),
}

/// Consecutive pages of a file that are read together.
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
            requests: VecDeque::new(),
            runs: VecDeque::new(),
            asked: (0, PageCount(0)),
        }
    }

    /// Adds a run of pages to the next request.
    pub fn ask(&mut self, file: FileId, start: PageIndex, pages: PageCount) {
        self.runs.push_back(Run { file, start, pages });
        self.asked.0 += 1;
        self.asked.1 += pages;
    }

    /// Begins to read at `now_ns` what was asked for, if anything was. It arrives together.
    pub fn submit(&mut self, now_ns: u64) {
        let (runs, pages) = std::mem::take(&mut self.asked);
        if runs == 0 {
            return;
        }
        let depth = self.profile.queue_depth as usize;
        let slot_ns = match self.requests.len().checked_sub(depth) {
            Some(last_out) => self.requests[last_out].0,
            None => 0,
        };
        let bytes = pages.bytes(self.page_size);
        let bandwidth = self.profile.bandwidth_bytes;
        // Almost always short enough for a division of the processor's.
        let transfer_ns = match bytes.checked_mul(1_000_000_000) {
            Some(short) => short.div_ceil(bandwidth),
            None => {
                let long = (u128::from(bytes) * 1_000_000_000).div_ceil(bandwidth.into());
                u64::try_from(long).unwrap_or(u64::MAX)
            }
        };
        let first_byte_ns = now_ns.max(slot_ns).saturating_add(self.profile.latency_ns);
        let done_ns = first_byte_ns.max(self.busy_until_ns).saturating_add(transfer_ns);
        self.busy_until_ns = done_ns;
        self.requests.push_back((done_ns, runs));
    }

    /// The next run of pages that has arrived at `now_ns`.
    pub fn arrived(&mut self, now_ns: u64) -> Option<Run> {
        let (done_ns, runs) = self.requests.front_mut()?;
        if *done_ns > now_ns {
            return None;
        }
        *runs -= 1;
        if *runs == 0 {
            self.requests.pop_front();
        }
        self.runs.pop_front()
    }

    /// When the next request will be complete.
    pub fn next_done_ns(&self) -> Option<u64> {
        self.requests.front().map(|request| request.0)
    }
}
