//! The active list: when it is aged, which folios move, and where they go.

mod support;

use filemap_core::cache::PageCache;
use filemap_core::reclaim::reclaim;
use filemap_core::units::{PageCount, PageIndex};
use filemap_core::vma::{Mapping, Split, SplitProt};

use support::lists::{plain, touch, whole, with_active};
use support::machine::{executable, part};
use support::map;

#[test]
fn an_active_list_that_has_outgrown_its_share_is_aged_first() {
    // 60 active of 100: 32 of them move to the inactive list's head; then 68 against 32.
    let mut cache = with_active(100, 60);
    let found = reclaim(&mut cache, PageCount(1), 4096, &plain(), &mut ());
    assert_eq!(found, PageCount(32));
    assert_eq!((cache.inactive(), cache.active()), (PageCount(40), PageCount(28)));
    // The tail of the inactive list went; what was aged has the workingset flag.
    map::assert_cache("aged", &cache, "32w 28# 32. 8#");
    // Not where both are equal.
    let mut cache = with_active(100, 50);
    reclaim(&mut cache, PageCount(1), 4096, &plain(), &mut ());
    assert_eq!((cache.inactive(), cache.active()), (PageCount(18), PageCount(50)));
    // In several batches, until the share is met.
    let mut cache = with_active(200, 190);
    reclaim(&mut cache, PageCount(1), 4096, &plain(), &mut ());
    assert_eq!((cache.inactive(), cache.active()), (PageCount(74), PageCount(94)));
}

#[test]
fn aging_keeps_code_that_was_accessed() {
    let mut cache = with_active(8, 8);
    touch(&mut cache, 1);
    touch(&mut cache, 6);
    let split = Some(Split { pages: PageCount(4), prot: SplitProt::Exec });
    cache.age(PageCount(8), &Mapping::new(part(0, 8), split));
    assert_eq!((cache.inactive(), cache.active()), (PageCount(7), PageCount(1)));
    map::assert_cache("aged", &cache, "6w # w");
    // It has been looked at: the entries are old now.
    cache.age(PageCount(1), &whole(executable(part(0, 8))));
    assert_eq!(cache.active(), PageCount(0));
}

#[test]
fn aging_stops_with_the_pages_asked_for() {
    let mut cache = with_active(8, 8);
    cache.age(PageCount(3), &plain());
    map::assert_cache("aged", &cache, "3w 5#");
    cache.age(PageCount(0), &plain());
    map::assert_cache("aged", &cache, "3w 5#");
    // Whole folios.
    let mut cache = map::cache("[--][--]");
    for page in [0, 0, 4, 4] {
        cache.mark_accessed(PageIndex(page));
    }
    cache.age(PageCount(1), &plain());
    map::assert_cache("aged", &cache, "[ww][--]");
    assert_eq!((cache.inactive(), cache.active()), (PageCount(4), PageCount(4)));
}

#[test]
fn an_aged_page_goes_to_the_head_of_the_inactive_list() {
    let mut cache = with_active(64, 2);
    cache.age(PageCount(2), &plain());
    reclaim(&mut cache, PageCount(60), 4096, &plain(), &mut ());
    map::assert_cache("gone with the rest", &cache, "64.");
    let mut cache = with_active(64, 2);
    cache.age(PageCount(2), &plain());
    reclaim(&mut cache, PageCount(32), 4096, &plain(), &mut ());
    map::assert_cache("behind the others", &cache, "ww 32. 30#");
}
