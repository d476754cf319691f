//! Read-modify-writes of a batch: the cost of counting.

use crate::support::{folio, mm};
use filemap_mapcount::atomics::{CountingAtomics, count_read_modify_writes};
use filemap_mapcount::{Mapcount, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners};

type Pages = PageMapcount<CountingAtomics>;
type PagesAndSlots = MmOwner<CountingAtomics>;
type Slots = NoPageMapcount<CountingAtomics>;
type Sums = PreciseOwners<CountingAtomics>;

fn count<T>(act: impl FnOnce() -> T) -> u64 {
    count_read_modify_writes(|| {
        act();
    })
}

/// Of the first map, a fork, an unmap that leaves the folio mapped, and the last unmap.
fn batch<C: Mapcount>(order: u32) -> [u64; 4] {
    let folio = folio::<C>(order);
    let pages = 0..folio.order().pages();
    let (parent, child) = (mm(1), mm(2));
    [
        count(|| folio.map(parent, pages.clone())),
        count(|| folio.map(child, pages.clone())),
        count(|| folio.unmap(parent, pages.clone())),
        count(|| folio.unmap(child, pages.clone())),
    ]
}

#[test]
fn a_batch_takes_one_for_each_page_or_one_for_all() {
    for order in 1..=9 {
        let n = 1 << order;
        let with_pages = [n + 2, n + 1, n + 1, n + 2];
        assert_eq!([batch::<Pages>(order), batch::<PagesAndSlots>(order)], [with_pages; 2]);
        assert_eq!([batch::<Slots>(order), batch::<Sums>(order)], [[1; 4]; 2]);
    }
}

/// Of `maybe_shared` and `owned_by`.
fn queries<C: Mapcount>() -> [u64; 2] {
    let folio = folio::<C>(4);
    folio.map(mm(1), 0..16);
    [count(|| folio.counts().maybe_shared()), count(|| folio.counts().owned_by(mm(1)))]
}

#[test]
fn only_the_owner_query_takes_the_lock() {
    assert_eq!([queries::<Pages>(), queries::<PagesAndSlots>()], [[0, 0], [0, 1]]);
    assert_eq!([queries::<Slots>(), queries::<Sums>()], [[0, 1]; 2]);
}
