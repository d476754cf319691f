//! The list sizes that reclaim and refaults use: those of the last flush.

use filemap_core::lru::direct::DirectReclaim;
use filemap_core::lru::lists::LruLists;
use filemap_core::lru::statistics::{FLUSH_INTERVAL_NS, ListSizes};
use filemap_core::units::PageCount;

use crate::support::lists::{add, look_once, plain, reclaim, with_active};

#[test]
fn statistics_are_as_of_the_last_flush() {
    let known =
        |inactive, active| ListSizes { inactive: PageCount(inactive), active: PageCount(active) };
    let mut cache = with_active(24, 8);
    assert_eq!(cache.flushed_sizes(), known(0, 0), "none yet");
    cache.flush_statistics();
    assert_eq!(cache.flushed_sizes(), known(16, 8));
    look_once(&mut cache, &plain());
    assert_eq!(cache.flushed_sizes(), known(16, 8), "as of then");
    cache.flush_statistics();
    assert_eq!(cache.flushed_sizes(), known(0, 8));
    assert_eq!(FLUSH_INTERVAL_NS, 2_000_000_000);
}

#[test]
fn refault_uses_active_list_size_at_flush() {
    // 8 of 24 are active when the statistics are flushed, or none; page 16 was evicted 8 evictions
    // ago.
    for (flushed, active) in [(true, 9), (false, 8)] {
        let mut cache = with_active(24, 8);
        if flushed {
            cache.flush_statistics();
        }
        look_once(&mut cache, &plain());
        add(&mut cache, 16, 0);
        assert_eq!(cache.active(), PageCount(active), "flushed: {flushed}");
    }
}

#[test]
fn a_flush_that_saw_refaults_ages_the_active_list_in_the_next_reclaim() {
    // 2000 of 6000 are active. A page that was just evicted returns, and is active too.
    let mut cache = with_active(6000, 2000);
    cache.flush_statistics();
    reclaim(DirectReclaim::new(PageCount(1), 4096), &mut cache, &plain(), &mut ());
    assert_eq!(cache.active(), PageCount(2000), "the share of the inactive list is large enough");
    add(&mut cache, 2000, 0);
    assert_eq!(cache.active(), PageCount(2001));
    let mut ages = || {
        let before = cache.active();
        reclaim(DirectReclaim::new(PageCount(1), 4096), &mut cache, &plain(), &mut ());
        let has_aged = cache.active() < before;
        cache.flush_statistics();
        has_aged
    };
    assert_eq!([ages(), ages(), ages()], [false, true, false]);
}
