//! What is told of a folio of 16 pages, with counts of pages and without.

use std::ops::Range;

use filemap_mapcount::calculator::{Told, falsely_shared, told};
use filemap_mapcount::mm::Resident;
use filemap_mapcount::{Error, MmOwner, NoPageMapcount, Order, PreciseOwners};

fn order() -> Order {
    Order::new(4).expect("there is an order 4")
}

fn one(range: Range<usize>) -> Vec<Range<usize>> {
    vec![range]
}

fn told_by_all(mms: &[Vec<Range<usize>>]) -> [Told; 3] {
    let told = [
        told::<MmOwner>(order(), mms),
        told::<NoPageMapcount>(order(), mms),
        told::<PreciseOwners>(order(), mms),
    ];
    told.map(|told| told.expect("the mappings are possible"))
}

fn all_at(mapped_pages: i64, mms: &[(usize, f64, usize)]) -> Told {
    let mms = mms.iter().map(|&(rss, pss, uss)| Resident { rss, pss, uss }).collect();
    Told { mapped_pages, mms }
}

#[test]
fn a_folio_that_is_mapped_in_part_counts_whole() {
    let [exact, by_folio, precise] = told_by_all(&[vec![3..4, 6..8]]);
    assert_eq!(exact, all_at(3, &[(3, 3.0, 3)]));
    assert_eq!(by_folio, all_at(16, &[(3, 3.0, 3)]));
    assert_eq!(precise, by_folio);
}

#[test]
fn what_is_shared_in_part_is_shared_whole() {
    let [exact, by_folio, precise] = told_by_all(&[one(0..16), one(5..6)]);
    assert_eq!(exact, all_at(16, &[(16, 15.5, 15), (1, 0.5, 0)]));
    // 17 mappings of 16 pages are one a page, so one page of memory is told twice.
    assert_eq!(by_folio, all_at(16, &[(16, 16.0, 0), (1, 1.0, 0)]));
    assert_eq!(precise, by_folio);
}

#[test]
fn uss_is_never_too_high() {
    for first in 1..=16 {
        for second in 0..16 {
            let [exact, by_folio, precise] = told_by_all(&[one(0..first), one(second..16)]);
            for mm in 0..2 {
                assert!(by_folio.mms[mm].uss <= precise.mms[mm].uss);
                assert!(precise.mms[mm].uss <= exact.mms[mm].uss);
                assert_eq!(by_folio.mms[mm].rss, exact.mms[mm].rss);
            }
            assert!(by_folio.mapped_pages >= exact.mapped_pages);
        }
    }
}

/// An enumeration of all orders gives the same (`tests/every_history.rs`).
#[test]
fn two_slots_are_right_for_two_mms() {
    assert_eq!([0, 1, 2, 4, 8].map(falsely_shared), [0.0, 0.0, 0.0, 0.5, 0.75]);
}

#[test]
fn mappings_that_cannot_be_are_errors() {
    let outside = told::<MmOwner>(order(), &[one(8..17)]).map_err(|error| error.to_string());
    assert_eq!(outside, Err("a mapping ends at page 17 of a folio of 16 pages".to_string()));
    let twice = told::<MmOwner>(order(), &[vec![0..4, 3..5]]).map_err(|error| error.to_string());
    assert_eq!(twice, Err("an mm maps page 3 twice; it can map a page once".to_string()));
    assert_eq!(told::<MmOwner>(Order::SINGLE, &[]), Err(Error::NotLarge));
    // 2^31 mappings are one more than a folio has.
    let many = vec![one(0..8192); 1 << 18];
    let too_many = told::<PreciseOwners>(Order::MAX, &many).map_err(|error| error.to_string());
    let message = "2147483648 mappings of a folio are too many; 2147483647 can be counted";
    assert_eq!(too_many, Err(message.to_string()));
    let far = told::<MmOwner>(order(), &[vec![0..usize::MAX, 0..usize::MAX]]);
    assert!(matches!(far, Err(Error::Mappings { mappings: usize::MAX, .. })));
}
