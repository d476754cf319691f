//! What is being read arrives, and tasks wait for it.

use filemap_core::decision::{Log, Wait};
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageIndex;

use super::pins::Why;
use super::{HOLES, Timing, World};
use crate::open::OpenFile;
use crate::waiting::Pause;

impl<C: PageCache, L: Log> World<'_, C, L> {
    /// Waits until the folio of `open` that holds `index` is up to date: it is where its page is
    /// not being read.
    #[inline(never)]
    pub fn wait(&mut self, open: &OpenFile, index: PageIndex) -> Option<Pause> {
        let file = open.file;
        let arrival_ns = self.devices[open.device].arrival_ns(file, index);
        let is_added = || self.windows.iter().any(|window| window.has_added(file, index));
        // Who has filled a hole sleeps for nothing.
        let sleeps = match arrival_ns {
            Some(at_ns) => {
                open.device != HOLES || at_ns > self.now_ns.saturating_add(super::AHEAD_NS)
            }
            None => is_added(),
        };
        if sleeps && !self.is_alone {
            return Some(Pause::Folio(file, index));
        }
        let Some(arrival_ns) = arrival_ns else {
            self.let_go(file, index);
            return None;
        };
        let waited_ns = arrival_ns.saturating_sub(self.now_ns);
        if waited_ns > 0 {
            self.log.waited(self.task, Wait::Page(file, index), waited_ns);
        }
        self.now_ns = self.now_ns.max(arrival_ns);
        self.unlock_arrived();
        None
    }

    /// Unlocks what has arrived while nothing was waited for. Returns whether anything has.
    #[inline]
    pub fn arrivals(&mut self) -> bool {
        let Some(done_ns) = self.next_done_ns else { return false };
        let has_arrived = self.timing == Timing::Device && done_ns <= self.now_ns;
        if has_arrived {
            self.unlock_arrived();
        }
        has_arrived
    }

    /// Lets everything arrive, where that is the timing.
    pub fn settle(&mut self) {
        if self.timing != Timing::Device {
            while self.wait_for_device() {}
        }
    }

    /// Lets what was asked for of a window arrive, where that is the timing. A fault that reads its
    /// page alone waits for it on any device.
    pub(super) fn arrive_promptly(&mut self) {
        if self.timing == Timing::Prompt {
            while self.wait_for_device() {}
        }
    }

    /// Wakes tasks that waited for a lock, which go on before this one goes on for long.
    pub fn wake(&mut self, tasks: impl Iterator<Item = usize>) {
        for task in tasks {
            self.pass(self.profile.cost.wake_ns);
            self.waiting.wake(task, self.now_ns);
            self.until_ns = self.until_ns.min(self.now_ns);
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
        let (is_awaited, mut arrived_ns) = (!self.waiting.is_empty(), self.now_ns);
        let (mut next_ns, mut arrived) = (None, Vec::new());
        for device in &mut self.devices {
            while let Some((run, at_ns)) = device.arrived(self.now_ns, is_awaited) {
                self.memory.cache.unlock(run.file, run.start, run.pages);
                if is_awaited {
                    let arrived = &mut arrived;
                    self.waiting.arrived(run, at_ns, |task, index| {
                        arrived.push((task, run.file, index));
                    });
                    arrived_ns = arrived_ns.min(at_ns);
                }
            }
            next_ns = next_ns.into_iter().chain(device.next_done_ns()).min();
        }
        self.next_done_ns = next_ns;
        if self.memory.is_limited() {
            for (task, file, index) in arrived {
                self.pin(task, Why::Waited, file, index);
            }
        }
        if is_awaited {
            self.waiting.something_arrived(arrived_ns);
        }
    }
}
