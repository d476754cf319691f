//! The pages that a process has touched last, and when each of them may go.

use std::collections::VecDeque;

/// A page that is touched again before its process has touched so many others may not be told
/// again.
pub const MAX_OPEN_PAGES: u64 = 128;

/// A page stays until its thread has touched so many others: an instruction can need several at
/// once, and would never end if one was taken while another one is read. They also show that the
/// page was there, as it is told of when its fault begins.
const MIN_THREAD_TOUCHES: u32 = 16;

/// It goes too when other threads have touched so many.
const MAX_PROCESS_TOUCHES: u64 = MAX_OPEN_PAGES / 2;

/// A page that was tried so often stays: another mapping has it, say.
const MAX_TRIES: u32 = 50;

/// Pages in the order in which they were touched.
#[derive(Debug, Default)]
pub struct RecentPages {
    pages: VecDeque<RecentPage>,
    touched: u64,
}

#[derive(Debug)]
struct RecentPage {
    address: u64,
    tid: u32,
    /// How many pages the process had touched before.
    number: u64,
    /// How many the thread has touched since.
    thread_touches: u32,
    tries: u32,
    is_late: bool,
}

impl RecentPages {
    /// A thread has touched the page at `address`.
    pub fn touch(&mut self, tid: u32, address: u64) {
        // It is the same touch again: the page went before the thread could use it.
        self.pages.retain(|of| of.address != address);
        self.pages.iter_mut().filter(|of| of.tid == tid).for_each(|of| of.thread_touches += 1);
        let (number, since, tries, is_late) = (self.touched, 0, 0, false);
        self.pages.push_back(RecentPage {
            address,
            tid,
            number,
            thread_touches: since,
            tries,
            is_late,
        });
        self.touched += 1;
    }

    /// The pages that may go.
    pub fn due(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().filter(|of| of.is_due(self.touched)).map(|of| of.address)
    }

    /// How many are there for too long, before they are taken: those that were not counted yet.
    pub fn count_late(&mut self) -> u64 {
        let touched = self.touched;
        let late = self
            .pages
            .iter_mut()
            .filter(|of| of.touches_since(touched) > MAX_OPEN_PAGES && !of.is_late);
        late.map(|of| of.is_late = true).count() as u64
    }

    /// Forgets those that may go and have gone.
    pub fn retain_due(&mut self, is_there: impl Fn(u64) -> bool) {
        let touched = self.touched;
        self.pages.retain(|of| !of.is_due(touched) || is_there(of.address));
        self.pages.iter_mut().filter(|of| of.is_due(touched)).for_each(|of| of.tries += 1);
    }

    /// Whether one has been there so long that it should have gone.
    pub fn is_any_old(&self) -> bool {
        self.pages.front().is_some_and(|of| of.touches_since(self.touched) > MAX_PROCESS_TOUCHES)
    }

    /// Forgets those that do not go. Returns how many were not counted yet.
    pub fn remove_tried(&mut self) -> u64 {
        let left = self.pages.iter().filter(|of| of.tries >= MAX_TRIES && !of.is_late).count();
        self.pages.retain(|of| of.tries < MAX_TRIES);
        left as u64
    }
}

impl RecentPage {
    /// How many other pages were touched since.
    fn touches_since(&self, touched: u64) -> u64 {
        touched - self.number - 1
    }

    fn is_due(&self, touched: u64) -> bool {
        self.thread_touches >= MIN_THREAD_TOUCHES
            || self.touches_since(touched) > MAX_PROCESS_TOUCHES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(recent: &RecentPages) -> Vec<u64> {
        recent.due().collect()
    }

    #[test]
    fn a_page_may_go_when_its_thread_has_touched_others() {
        let of_thread = u64::from(MIN_THREAD_TOUCHES);
        let mut recent = RecentPages::default();
        (0..of_thread).for_each(|page| recent.touch(1, page));
        assert!(due(&recent).is_empty());
        // An instruction that needs the last pages, of which one is taken again and again.
        (0..100).for_each(|turn| recent.touch(1, of_thread - 1 - turn % 8));
        assert_eq!(due(&recent), (0..of_thread - 8).collect::<Vec<_>>());
        recent.retain_due(|page| page == 1);
        assert_eq!(due(&recent), [1]);
        // Other threads say nothing of it, until they have touched many.
        let last = of_thread - 1;
        (1000..1000 + MAX_PROCESS_TOUCHES - 7).for_each(|page| recent.touch(2, page));
        assert!(!due(&recent).contains(&(last - 7)));
        (2000..2010).for_each(|page| recent.touch(3, page));
        assert!(due(&recent).contains(&(last - 7)));
    }

    #[test]
    fn pages_that_stay_are_counted_once() {
        let mut recent = RecentPages::default();
        (0..=MAX_OPEN_PAGES).for_each(|page| recent.touch(1, page));
        assert_eq!((recent.is_any_old(), recent.count_late()), (true, 0));
        (1000..1010).for_each(|page| recent.touch(1, page));
        assert_eq!((recent.count_late(), recent.count_late()), (10, 0));
        (0..MAX_TRIES).for_each(|_| recent.retain_due(|page| page < 20));
        // Ten were counted before.
        assert_eq!((recent.remove_tried(), recent.is_any_old()), (10, false));
    }
}
