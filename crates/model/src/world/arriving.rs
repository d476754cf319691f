//! What is being read arrives, and tasks wait for it.

use filemap_core::decision::{Log, Wait};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageIndex};

use super::Timing;
use super::World;
use crate::device::Device;
use crate::waiting::Pause;

impl<C: PageCache, L: Log> World<'_, C, L> {
    /// Waits until the folio of `file` that holds `index` is up to date: it is where its page is
    /// not being read.
    #[inline(never)]
    pub fn wait(&mut self, file: FileId, index: PageIndex) -> Option<Pause> {
        let mut arrival = self.devices.iter().filter_map(|device| device.arrival_ns(file, index));
        let arrival_ns = arrival.next()?;
        if !self.is_alone {
            return Some(Pause::Folio(file, index));
        }
        let waited_ns = arrival_ns.saturating_sub(self.now_ns);
        if waited_ns > 0 {
            self.log.waited(self.task, Wait::Page(file, index), waited_ns);
        }
        self.now_ns = self.now_ns.max(arrival_ns);
        self.unlock_arrived();
        None
    }

    /// Unlocks what has arrived while nothing was waited for.
    pub fn arrivals(&mut self) {
        let has_arrived = self.next_done_ns.is_some_and(|done_ns| done_ns <= self.now_ns);
        if has_arrived && self.timing == Timing::Device {
            self.unlock_arrived();
        }
    }

    /// Lets everything arrive, where that is the timing.
    pub fn settle(&mut self) {
        if self.timing == Timing::Settled {
            while self.wait_for_device() {}
        }
    }

    /// Lets arrive at `now_ns` what does so then.
    pub fn arrive(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.unlock_arrived();
    }

    /// Lets the next request of a device complete; `false` where none is under way.
    pub(super) fn wait_for_device(&mut self) -> bool {
        let Some(done_ns) = self.next_done_ns else {
            return false;
        };
        self.now_ns = self.now_ns.max(done_ns);
        self.unlock_arrived();
        true
    }

    fn unlock_arrived(&mut self) {
        let mut arrived_ns = self.now_ns;
        for device in &mut self.devices {
            let is_awaited = !self.waiting.is_empty();
            while let Some((run, at_ns)) = device.arrived(self.now_ns, is_awaited) {
                self.memory.cache.unlock(run.file, run.start, run.pages);
                self.waiting.arrived(run, at_ns);
                arrived_ns = arrived_ns.min(at_ns);
            }
        }
        self.waiting.something_arrived(arrived_ns);
        self.next_done_ns = self.devices.iter().filter_map(Device::next_done_ns).min();
    }
}
