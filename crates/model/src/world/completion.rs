//! I/O completion: pages arrive, and tasks wait for them.

use filemap_core::decision::{Log, TaskWait};
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageIndex;

use super::pins::PinReason;
use super::{DISK, HOLES, Timing, World};
use crate::open::OpenFile;
use crate::wait_queue::Pause;

impl<C: PageCache> World<'_, C> {
    /// Waits until the folio of `open` that holds `index` is up to date. A folio that is not being
    /// read is.
    #[inline(never)]
    pub fn wait(&mut self, open: &OpenFile, index: PageIndex) -> Option<Pause> {
        let file = open.file;
        let arrival = self.arrival(open, index);
        let arrival_ns = arrival.map(|(_, at_ns)| at_ns);
        let is_added = || self.windows.iter().any(|window| window.has_added(file, index));
        // The task that zero-filled a hole has nothing to wait for.
        let sleeps = match arrival {
            Some((device, at_ns)) => {
                device != HOLES || at_ns > self.now_ns.saturating_add(super::MAX_AHEAD_NS)
            }
            None => is_added(),
        };
        if sleeps && !self.is_single_task {
            return Some(Pause::Folio(file, index));
        }
        let Some(arrival_ns) = arrival_ns else {
            self.release_pins(file, index);
            return None;
        };
        if arrival_ns > self.now_ns {
            self.log.waited(self.task, TaskWait::Page(file, index), self.now_ns, arrival_ns);
        }
        self.now_ns = self.now_ns.max(arrival_ns);
        self.unlock_completed();
        None
    }

    /// When page `index` of `open` arrives, and from which device; `None` if it is not being read.
    #[inline]
    pub fn arrival(&self, open: &OpenFile, index: PageIndex) -> Option<(usize, u64)> {
        let of_device = |device: usize| {
            let at_ns = self.devices[device].arrival_ns(open.file, index)?;
            Some((device, at_ns))
        };
        if open.holes.is_empty() {
            return of_device(DISK);
        }
        of_device(HOLES).or_else(|| of_device(DISK))
    }

    /// Unlocks folios that have arrived by now. Returns whether there were any.
    #[inline]
    pub fn process_completions(&mut self) -> bool {
        let Some(done_ns) = self.next_done_ns else { return false };
        let has_arrived = self.timing == Timing::Device && done_ns <= self.now_ns;
        if has_arrived {
            self.unlock_completed();
        }
        has_arrived
    }

    /// Waits for all I/O.
    pub fn finish_io(&mut self) {
        while self.wait_for_device() {}
    }

    /// Completes all I/O, unless the device's own timing applies.
    pub fn settle(&mut self) {
        if self.timing != Timing::Device {
            while self.wait_for_device() {}
        }
    }

    /// Completes the I/O of a window with [`Timing::Prompt`]. A fault that reads a single page
    /// waits for it on any device.
    pub(super) fn complete_promptly(&mut self) {
        if self.timing == Timing::Prompt {
            while self.wait_for_device() {}
        }
    }

    /// Wakes tasks that waited for a lock. The waker yields to them soon.
    pub fn wake(&mut self, tasks: impl Iterator<Item = usize>) {
        for task in tasks {
            self.advance(self.profile.cost.wake_ns);
            self.waiting.wake(task, self.now_ns);
            self.until_ns = self.until_ns.min(self.now_ns);
        }
    }

    /// Moves the clock to `now_ns` and processes completions.
    pub fn advance_to(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.unlock_completed();
    }

    /// Waits for the next request to complete; `false` if none is in flight.
    pub(super) fn wait_for_device(&mut self) -> bool {
        let Some(done_ns) = self.next_done_ns else {
            return false;
        };
        self.now_ns = self.now_ns.max(done_ns);
        self.unlock_completed();
        true
    }

    fn unlock_completed(&mut self) {
        let (is_awaited, mut arrived_ns) = (!self.waiting.is_empty(), self.now_ns);
        let (mut next_ns, mut arrived) = (None, Vec::new());
        for (number, device) in self.devices.iter_mut().enumerate() {
            loop {
                if number == DISK && self.log.is_kept() {
                    let completions = device.completions(self.now_ns, is_awaited);
                    completions.for_each(|at_ns| self.log.requests_changed(at_ns, -1));
                }
                let Some((run, at_ns)) = device.next_arrival(self.now_ns, is_awaited) else {
                    break;
                };
                self.memory.cache.unlock(run.file, run.start, run.pages);
                if is_awaited {
                    let arrived = &mut arrived;
                    self.waiting.wake_for_pages(run, at_ns, |task, index| {
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
                self.pin(task, PinReason::Waited, file, index);
            }
        }
        if is_awaited {
            self.waiting.wake_for_memory(arrived_ns);
        }
    }
}
