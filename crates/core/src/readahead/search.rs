//! Searches for gaps in the page cache.
//!
//! The kernel's index is a tree of nodes with 64 slots. A folio of order 6 or more is stored a
//! level above single pages, in slots of 64 pages, and every folio is found at its first slot. A
//! search that starts inside a large folio therefore inspects slots before the pages it counts,
//! until it enters another node: its result can be off.

use crate::cache::{FileCache, WORD_PAGES};
use crate::rules::Rules;
use crate::units::{PageCount, PageIndex};

/// The first absent page at or after `from`, as the index of the page cache finds it; `None`
/// where `max` pages from `from` are all cached.
///
/// Mirrors `page_cache_next_miss`, 6.12 and 6.18. Test: `tests/search.rs`.
pub fn first_absent(from: PageIndex, max: PageCount, cache: &impl FileCache) -> Option<PageIndex> {
    let end = from + max;
    let Some(mut walk) = IndexWalk::begin(from, cache) else {
        return Some(from).filter(|&from| from < end);
    };
    while !walk.is_exact() {
        walk.step_forward();
        if walk.counted >= end.0 {
            return None;
        }
        if !walk.enter(cache) {
            return Some(PageIndex(walk.counted));
        }
    }
    let found = cache.next_absent(PageIndex(walk.counted), end);
    (found < end).then_some(found)
}

/// Number of cached pages without a gap up to and including `last`, as counted by the index. It
/// inspects `max` pages; before 7.2 the result is one less if there is no gap among them.
///
/// Mirrors `page_cache_prev_miss`, 6.12, 6.18 and 7.2. Test: `tests/search.rs`.
pub fn cached_before(
    last: PageIndex,
    max: PageCount,
    rules: &Rules,
    cache: &impl FileCache,
) -> PageCount {
    let uncounted = PageCount(u64::from(!rules.full_search_counts_all));
    let Some(mut walk) = IndexWalk::begin(last, cache) else {
        return PageCount(0);
    };
    while !walk.is_exact() {
        let looked_at = last.0 - walk.counted + 1;
        if looked_at >= max.0 {
            return max.saturating_sub(uncounted);
        }
        if walk.counted == 0 || !walk.step_back() || !walk.enter(cache) {
            return PageCount(looked_at);
        }
    }
    let floor = PageIndex((last.0 + 1).saturating_sub(max.0));
    let counted = PageIndex(walk.counted);
    match cache.previous_absent(counted, floor.min(counted)) {
        Some(gap) => last - gap,
        None if last.0 + 1 < max.0 => last - floor + PageCount(1),
        None => max.saturating_sub(uncounted),
    }
}

/// A walk over the slots of the index.
struct IndexWalk {
    /// The page that the walk has counted to.
    counted: u64,
    /// First page of the slot that it inspects.
    slot: u64,
    /// Level of the slot's node: 0 for slots of single pages.
    level: u32,
}

impl IndexWalk {
    /// Starts where `index` is found; `None` if it is absent.
    fn begin(index: PageIndex, cache: &impl FileCache) -> Option<IndexWalk> {
        let folio = cache.folio(index)?;
        Some(IndexWalk { counted: index.0, slot: folio.head.0, level: index_level(folio.order.0) })
    }

    /// Whether slot and count agree: from here on the walk is exact.
    fn is_exact(&self) -> bool {
        self.slot == self.counted - self.counted % pages_of_slot(self.level)
    }

    fn step_forward(&mut self) {
        self.counted += 1;
        let last_slot = self.slot_number(self.slot) == WORD_PAGES - 1;
        if (self.level > 0 || last_slot)
            && self.slot_number(self.counted) == self.slot_number(self.slot)
        {
            return;
        }
        self.slot += pages_of_slot(self.level);
        while self.slot_number(self.slot) == 0 && self.level < MAX_LEVEL {
            self.level += 1;
        }
    }

    /// Returns whether there is a previous slot.
    fn step_back(&mut self) -> bool {
        self.counted -= 1;
        let first_slot = self.slot_number(self.slot) == 0;
        if (self.level > 0 || first_slot)
            && self.slot_number(self.counted) == self.slot_number(self.slot)
        {
            return true;
        }
        while self.slot_number(self.slot) == 0 {
            self.level += 1;
            if self.level > MAX_LEVEL {
                return false;
            }
            self.slot -= self.slot % pages_of_slot(self.level);
        }
        self.slot -= pages_of_slot(self.level);
        true
    }

    /// Descends from the slot to the folio in it, following the counted page. Returns whether there
    /// is one.
    fn enter(&mut self, cache: &impl FileCache) -> bool {
        loop {
            let here = PageIndex(self.slot);
            if let Some(folio) = cache.folio(here)
                && index_level(folio.order.0) >= self.level
            {
                return true;
            }
            if self.level == 0 {
                return false;
            }
            let end = here + PageCount(pages_of_slot(self.level));
            if cache.next_present(here, end) >= end {
                return false;
            }
            self.level -= 1;
            self.slot += self.slot_number(self.counted) * pages_of_slot(self.level);
        }
    }

    fn slot_number(&self, page: u64) -> u64 {
        page / pages_of_slot(self.level) % WORD_PAGES
    }
}

/// Maximum level of an index of 2^54 pages.
const MAX_LEVEL: u32 = 8;

const fn pages_of_slot(level: u32) -> u64 {
    1 << (6 * level)
}

const fn index_level(order: u8) -> u32 {
    order as u32 / 6
}
