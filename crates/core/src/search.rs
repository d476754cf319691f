//! Searches in the page cache for the end of what is cached.
//!
//! The kernel's index holds 64 pages a node. A large folio of fewer pages stands in its first
//! slot, and a search that begins inside it stands there too, while it counts from where it was
//! asked to begin: what it finds is off by the offset within the folio.

use crate::cache::{PageCache, WORD_PAGES};
use crate::units::{PageCount, PageIndex};

/// The first absent page at or behind `from`, as the index of the page cache finds it; `None`
/// where `max` pages from `from` are all cached.
///
/// The search steps through slots of 64 pages. A search that begins inside a large folio of fewer
/// pages stands on the folio's first slot, and so reports a gap too far by the offset within the
/// folio, until it enters the next 64 slots.
///
/// Mirrors `page_cache_next_miss`, 6.12 and 6.18. Test: `tests/search.rs`.
pub fn first_absent(from: PageIndex, max: PageCount, cache: &impl PageCache) -> Option<PageIndex> {
    let end = from + max;
    let drift = match cache.folio(from) {
        Some(folio) if folio.order.pages() < WORD_PAGES => from - folio.head,
        _ => PageCount(0),
    };
    let mut search_from = from;
    if drift > PageCount(0) {
        let slots_end = PageIndex((from.0 | (WORD_PAGES - 1)) + 1);
        let gap = cache.next_absent(from, slots_end);
        if gap < slots_end {
            return Some(gap + drift).filter(|&found| found < end);
        }
        search_from = slots_end + drift;
    }
    let found = cache.next_absent(search_from, end.max(search_from));
    (found < end).then_some(found)
}

/// How many pages that end at `last` are cached without a gap, at most `max`, as the index of the
/// page cache counts them.
///
/// A count that begins inside a large folio of fewer than 64 pages misses the offset within the
/// folio; past the folio's 64 slots it looks one whole node too low. One that begins 64 pages or
/// more inside a larger folio steps at once to the slot before the folio.
///
/// Mirrors `page_cache_prev_miss`, 6.12 and 6.18. Test: `tests/search.rs`.
pub fn cached_before(last: PageIndex, max: PageCount, cache: &impl PageCache) -> PageCount {
    let Some(folio) = cache.folio(last) else {
        return PageCount(0);
    };
    let offset = (last - folio.head).0;
    let node = last.0 - last.0 % WORD_PAGES;
    let (stands, counts) = if folio.order.pages() >= WORD_PAGES {
        match offset < WORD_PAGES {
            true => (Some(last), last.0),
            false => (before(folio.head.0, (last.0 - 1) % WORD_PAGES), last.0 - 1),
        }
    } else if let Some(gap) = cache.previous_absent(folio.head, PageIndex(node)) {
        return (folio.head - gap).min(max);
    } else if offset <= 1 {
        (Some(PageIndex(node)), node)
    } else {
        (before(node, offset - 1), node + offset - 1)
    };
    let gap = match stands {
        // The search ran into the start of the file, off its count.
        None => Some(counts),
        Some(stands) => {
            let gap = cache.previous_absent(stands, PageIndex(0));
            gap.map(|gap| gap.0 + (counts - stands.0))
        }
    };
    PageCount(gap.map_or(last.0 + 1, |gap| last.0 - gap)).min(max)
}

/// The page at `slot` of the node before the one that begins at `start`.
fn before(start: u64, slot: u64) -> Option<PageIndex> {
    start.checked_sub(WORD_PAGES).map(|previous| PageIndex(previous + slot))
}
