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
    requests: VecDeque<Request>,
    runs: VecDeque<(PageIndex, PageCount)>,
    /// The last of `runs` that are in no request yet: how many, and their pages.
    asked: (usize, PageCount),
}

/// What is read of one file together.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// When it will be complete.
    done_ns: u64,
    /// How many of the device's runs it still has.
    runs: usize,
    file: FileId,
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
    pub fn ask(&mut self, start: PageIndex, pages: PageCount) {
        self.runs.push_back((start, pages));
        self.asked.0 += 1;
        self.asked.1 += pages;
    }

    /// Begins to read at `now_ns` what was asked for of `file`, if anything was. It arrives
    /// together, at the time that is returned.
    pub fn submit(&mut self, file: FileId, now_ns: u64) -> Option<u64> {
        let (runs, pages) = std::mem::take(&mut self.asked);
        if runs == 0 {
            return None;
        }
        let depth = self.profile.queue_depth as usize;
        let slot_ns = match self.requests.len().checked_sub(depth) {
            Some(last_out) => self.requests[last_out].done_ns,
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
        self.requests.push_back(Request { done_ns, runs, file });
        Some(done_ns)
    }

    /// The next run of pages that has arrived at `now_ns`.
    pub fn arrived(&mut self, now_ns: u64) -> Option<Run> {
        let request = self.requests.front_mut()?;
        if request.done_ns > now_ns {
            return None;
        }
        let file = request.file;
        request.runs -= 1;
        if request.runs == 0 {
            self.requests.pop_front();
        }
        let (start, pages) = self.runs.pop_front().expect("a request has its runs");
        Some(Run { file, start, pages })
    }

    /// When the next request will be complete.
    pub fn next_done_ns(&self) -> Option<u64> {
        self.requests.front().map(|request| request.done_ns)
    }
}
