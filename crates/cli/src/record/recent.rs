//! The pages that a process has touched last, and when each of them may go.

use std::collections::VecDeque;

/// A page that is touched again before its process has touched so many others may not be told
/// again.
pub const MOST_OPEN: u64 = 64;

/// A page stays until its thread has touched so many others: an instruction can need several at
/// once, and would never end if one was taken while another one is read. They also show that the
/// page was there, as it is told of when its fault begins.
const OF_THREAD: u32 = 4;

/// It goes too when other threads have touched so many.
const OF_PROCESS: u64 = MOST_OPEN / 2;

/// Pages in the order in which they were touched.
#[derive(Debug, Default)]
pub struct Recent {
    open: VecDeque<Open>,
    touched: u64,
}

#[derive(Debug)]
struct Open {
    address: u64,
    tid: u32,
    /// How many pages the process had touched before.
    number: u64,
    /// How many the thread has touched since.
    since: u32,
}

impl Recent {
    /// A thread has touched the page at `address`.
    pub fn touch(&mut self, tid: u32, address: u64) {
        // It is the same touch again: the page went before the thread could use it.
        self.open.retain(|of| of.address != address);
        self.open.iter_mut().filter(|of| of.tid == tid).for_each(|of| of.since += 1);
        self.open.push_back(Open { address, tid, number: self.touched, since: 0 });
        self.touched += 1;
    }

    /// The pages that may go.
    pub fn due(&self) -> impl Iterator<Item = u64> {
        self.open.iter().filter(|of| self.is_due(of)).map(|of| of.address)
    }

    /// Forgets those that have gone.
    pub fn keep_due(&mut self, is_there: impl Fn(u64) -> bool) {
        let open = std::mem::take(&mut self.open);
        self.open =
            open.into_iter().filter(|of| !self.is_due(of) || is_there(of.address)).collect();
    }

    /// Whether one has been there so long that it should have gone.
    pub fn is_any_old(&self) -> bool {
        self.open.front().is_some_and(|of| self.since(of) > OF_PROCESS)
    }

    /// Forgets those that have not gone in time. Returns how many.
    pub fn leave_oldest(&mut self) -> u64 {
        let count = self.open.partition_point(|of| self.since(of) > MOST_OPEN);
        self.open.drain(..count).count() as u64
    }

    fn since(&self, of: &Open) -> u64 {
        self.touched - of.number - 1
    }

    fn is_due(&self, of: &Open) -> bool {
        of.since >= OF_THREAD || self.since(of) > OF_PROCESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(recent: &Recent) -> Vec<u64> {
        recent.due().collect()
    }

    #[test]
    fn a_page_may_go_when_its_thread_has_touched_four_others() {
        let mut recent = Recent::default();
        (0..4).for_each(|page| recent.touch(1, page));
        assert!(due(&recent).is_empty());
        // An instruction that needs pages 2 and 3, of which one is taken again and again.
        (0..100).for_each(|turn| recent.touch(1, 2 + turn % 2));
        assert_eq!(due(&recent), [0, 1]);
        recent.keep_due(|page| page == 1);
        assert_eq!(due(&recent), [1]);
        // Other threads say nothing of it, until they have touched many.
        (10..10 + OF_PROCESS - 1).for_each(|page| recent.touch(2, page));
        assert!(!due(&recent).contains(&2));
        recent.touch(3, 1000);
        assert!(due(&recent).contains(&2));
    }

    #[test]
    fn pages_that_stay_are_counted_once() {
        let mut recent = Recent::default();
        (0..MOST_OPEN).for_each(|page| recent.touch(1, page));
        assert!(recent.is_any_old());
        assert_eq!(recent.leave_oldest(), 0);
        (1000..1010).for_each(|page| recent.touch(1, page));
        assert_eq!((recent.leave_oldest(), recent.leave_oldest()), (9, 0));
        recent.keep_due(|_| false);
        assert!(!recent.is_any_old());
    }
}
