//! How many read-modify-writes a batch makes: what counting costs.

use crate::support::{folio, mm};
use filemap_mapcount::atomics::{Counted, read_modify_writes};
use filemap_mapcount::{Mapcount, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners};

type Pages = PageMapcount<Counted>;
type PagesAndSlots = MmOwner<Counted>;
type Slots = NoPageMapcount<Counted>;
type Sums = PreciseOwners<Counted>;

fn counted<T>(act: impl FnOnce() -> T) -> u64 {
    read_modify_writes(|| {
        act();
    })
}

/// Of the first mapping, a fork, an unmap that leaves the folio mapped, and the last one.
fn of_batch<C: Mapcount>(order: u32) -> [u64; 4] {
    let folio = folio::<C>(order);
    let pages = 0..folio.order().pages();
    let (parent, child) = (mm(1), mm(2));
    [
        counted(|| folio.map(parent, pages.clone())),
        counted(|| folio.map(child, pages.clone())),
        counted(|| folio.unmap(parent, pages.clone())),
        counted(|| folio.unmap(child, pages.clone())),
    ]
}

#[test]
fn a_batch_makes_one_for_each_page_or_one_for_all() {
    for order in 1..=9 {
        let n = 1 << order;
        let of_pages = [n + 2, n + 1, n + 1, n + 2];
        assert_eq!([of_batch::<Pages>(order), of_batch::<PagesAndSlots>(order)], [of_pages; 2]);
        assert_eq!([of_batch::<Slots>(order), of_batch::<Sums>(order)], [[1; 4]; 2]);
    }
}

/// A fork and the last unmap of a mapping of the whole folio.
fn of_entire<C: Mapcount>() -> [u64; 2] {
    let folio = folio::<C>(9);
    folio.map_entirely(mm(1));
    let fork = counted(|| folio.map_entirely(mm(2)));
    folio.unmap_entirely(mm(1));
    [fork, counted(|| folio.unmap_entirely(mm(2)))]
}

#[test]
fn an_entire_mapping_makes_as_many_whatever_the_size() {
    assert_eq!([of_entire::<Pages>(), of_entire::<PagesAndSlots>()], [[2, 3], [1, 2]]);
    assert_eq!([of_entire::<Slots>(), of_entire::<Sums>()], [[1, 1]; 2]);
}

/// Whether the folio may be shared, and whether one mm owns it.
fn of_questions<C: Mapcount>() -> [u64; 2] {
    let folio = folio::<C>(4);
    folio.map(mm(1), 0..16);
    [counted(|| folio.counts().maybe_shared()), counted(|| folio.counts().owned_by(mm(1)))]
}

#[test]
fn owners_are_locked_to_be_read() {
    assert_eq!([of_questions::<Pages>(), of_questions::<PagesAndSlots>()], [[0, 0], [0, 1]]);
    assert_eq!([of_questions::<Slots>(), of_questions::<Sums>()], [[0, 1]; 2]);
}
