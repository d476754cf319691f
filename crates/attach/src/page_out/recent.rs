//! Recently touched pages of a process, and when each is due for reclaim.

use std::collections::VecDeque;

/// A repeated touch of a page may go unreported unless its process has touched this many other
/// pages in between.
pub const MAX_OPEN_PAGES: u64 = 128;

/// Touches of other pages by the same thread before a page is due. One instruction can need several
/// pages at a time, and would fault forever if one were reclaimed while another is read. Later
/// faults of the thread also prove that the page arrived, as a fault is reported when it begins.
const MIN_THREAD_TOUCHES: u32 = 16;

/// Touches by any thread of the process after which a page is due as well.
const MAX_PROCESS_TOUCHES: u64 = MAX_OPEN_PAGES / 2;

/// Reclaim attempts after which a page is given up, for instance because another process maps it.
const MAX_TRIES: u32 = 50;

/// Recently touched pages in order of their last touch.
#[derive(Debug, Default)]
pub struct RecentPages {
    pages: VecDeque<RecentPage>,
    touched: u64,
}

#[derive(Debug)]
struct RecentPage {
    address: u64,
    tid: u32,
    /// Value of `RecentPages::touched` before this touch.
    number: u64,
    /// Touches of other pages by this thread since.
    thread_touches: u32,
    tries: u32,
    is_late: bool,
}

impl RecentPages {
    /// Records a touch of the page at `address`.
    pub fn touch(&mut self, tid: u32, address: u64) {
        // A repeated fault on the page: it was reclaimed before the thread could use it.
        self.pages.retain(|page| page.address != address);
        self.pages
            .iter_mut()
            .filter(|page| page.tid == tid)
            .for_each(|page| page.thread_touches += 1);
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

    /// Addresses of the pages due for reclaim.
    pub fn due(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().filter(|page| page.is_due(self.touched)).map(|page| page.address)
    }

    /// Counts pages still present after [`MAX_OPEN_PAGES`] touches of others; each is counted once.
    pub fn count_late(&mut self) -> u64 {
        let touched = self.touched;
        let late = self
            .pages
            .iter_mut()
            .filter(|page| page.touches_since(touched) > MAX_OPEN_PAGES && !page.is_late);
        late.map(|page| page.is_late = true).count() as u64
    }

    /// Drops the due pages that are no longer present, and counts an attempt for the others.
    pub fn retain_due(&mut self, is_there: impl Fn(u64) -> bool) {
        let touched = self.touched;
        self.pages.retain(|page| !page.is_due(touched) || is_there(page.address));
        self.pages.iter_mut().filter(|page| page.is_due(touched)).for_each(|page| page.tries += 1);
    }

    /// Whether the oldest page is overdue.
    pub fn is_any_old(&self) -> bool {
        self.pages
            .front()
            .is_some_and(|page| page.touches_since(self.touched) > MAX_PROCESS_TOUCHES)
    }

    /// Drops pages that resisted [`MAX_TRIES`] attempts. Returns how many of them
    /// [`RecentPages::count_late`] had not counted.
    pub fn remove_tried(&mut self) -> u64 {
        let left =
            self.pages.iter().filter(|page| page.tries >= MAX_TRIES && !page.is_late).count();
        self.pages.retain(|page| page.tries < MAX_TRIES);
        left as u64
    }
}

impl RecentPage {
    /// Touches in the process since the last touch of this page.
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
    fn page_is_evictable_after_other_touches() {
        let of_thread = u64::from(MIN_THREAD_TOUCHES);
        let mut recent = RecentPages::default();
        (0..of_thread).for_each(|page| recent.touch(1, page));
        assert!(due(&recent).is_empty());
        // Simulates an instruction that needs the last eight pages while one of them is always
        // missing.
        (0..100).for_each(|turn| recent.touch(1, of_thread - 1 - turn % 8));
        assert_eq!(due(&recent), (0..of_thread - 8).collect::<Vec<_>>());
        recent.retain_due(|page| page == 1);
        assert_eq!(due(&recent), [1]);
        // Touches by other threads count only in large numbers.
        let last = of_thread - 1;
        (1000..1000 + MAX_PROCESS_TOUCHES - 7).for_each(|page| recent.touch(2, page));
        assert!(!due(&recent).contains(&(last - 7)));
        (2000..2010).for_each(|page| recent.touch(3, page));
        assert!(due(&recent).contains(&(last - 7)));
    }

    #[test]
    fn counts_retained_pages_once() {
        let mut recent = RecentPages::default();
        (0..=MAX_OPEN_PAGES).for_each(|page| recent.touch(1, page));
        assert_eq!((recent.is_any_old(), recent.count_late()), (true, 0));
        (1000..1010).for_each(|page| recent.touch(1, page));
        assert_eq!((recent.count_late(), recent.count_late()), (10, 0));
        (0..MAX_TRIES).for_each(|_| recent.retain_due(|page| page < 20));
        // Ten of them were counted as late before.
        assert_eq!((recent.remove_tried(), recent.is_any_old()), (10, false));
    }
}
