//! What each configuration says is mapped, and what it cannot see.

use crate::support::{folio, mm};
use filemap_mapcount::sizes::{SIZES, Size};
use filemap_mapcount::{
    Change, Folio, Mapcount, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners,
};

/// The changes when two mms map half of four pages each, one maps all by a PMD entry, and all
/// leave, the first ones first.
fn changes<C: Mapcount>() -> Vec<Change> {
    let folio = folio::<C>(2);
    vec![
        folio.map(mm(1), 0..2),
        folio.map(mm(2), 1..3),
        folio.map_entirely(mm(3)),
        folio.unmap(mm(1), 0..2),
        folio.unmap_entirely(mm(3)),
        folio.unmap(mm(2), 1..2),
        folio.unmap(mm(2), 2..3),
    ]
}

fn change(pages: i64) -> Change {
    Change { pages, in_part: false }
}

fn in_part(pages: i64) -> Change {
    Change { pages, in_part: true }
}

#[test]
fn counts_of_pages_say_which_are_mapped() {
    let [none, two] = [change(0), change(2)];
    let expected = vec![two, change(1), change(1), none, in_part(-2), in_part(-1), change(-1)];
    assert_eq!(changes::<PageMapcount>(), expected);
    assert_eq!(changes::<MmOwner>(), expected);
}

#[test]
fn without_them_a_folio_is_mapped_whole() {
    let [none, all] = [change(0), change(4)];
    let expected = vec![all, none, none, none, in_part(0), in_part(0), change(-4)];
    assert_eq!(changes::<NoPageMapcount>(), expected);
    assert_eq!(changes::<PreciseOwners>(), expected);
}

/// How often the pages are mapped, where one mm maps `parts` of them one after the other.
fn mapped<C: Mapcount>(parts: &[usize], entirely: u32) -> Vec<u32> {
    let folio: Folio<C> = folio(2);
    for (id, &pages) in parts.iter().enumerate() {
        folio.map(mm(id as u32 + 1), 0..pages);
    }
    for _ in 0..entirely {
        folio.map_entirely(mm(9));
    }
    (0..4).map(|page| folio.page_mappings(page)).collect()
}

#[test]
fn a_page_is_mapped_as_often_as_its_folio_is_on_average() {
    assert_eq!(mapped::<MmOwner>(&[4, 4, 1], 0), [3, 2, 2, 2]);
    assert_eq!(mapped::<NoPageMapcount>(&[4, 4, 1], 0), [2; 4]);
    // A half is rounded up.
    assert_eq!(mapped::<NoPageMapcount>(&[4, 4, 2], 0), [3; 4]);
    // Something that is mapped is mapped once at least.
    assert_eq!(mapped::<NoPageMapcount>(&[1], 0), [1; 4]);
    assert_eq!(mapped::<NoPageMapcount>(&[], 0), [0; 4]);
    // An entry for the whole folio is one for each page.
    assert_eq!(mapped::<NoPageMapcount>(&[1, 4], 2), [3; 4]);
    assert_eq!(mapped::<PreciseOwners>(&[1], 2), [2; 4]);
    assert_eq!(mapped::<PageMapcount>(&[1], 2), [3, 2, 2, 2]);
}

#[test]
fn sizes_are_those_of_the_types() {
    let row = |size: Size| (size.name, size.folio_bytes, size.page_bytes);
    let expected = [
        ("PageMapcount", 12, 4),
        ("MmOwner", 32, 4),
        ("NoPageMapcount", 24, 0),
        ("PreciseOwners", 24, 0),
    ];
    assert_eq!(SIZES.map(row), expected);
}
