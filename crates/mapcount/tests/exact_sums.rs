//! Sums of ids in the corners and next to each other, up to the number of mappings that they hold.

use crate::support::mm;
use filemap_mapcount::MmId;
use filemap_mapcount::sums::{EXACT_MAPPINGS, Sums, exact_mappings};

/// The first ids and the last, and both sides of what the halves of an id make a corner.
fn ids() -> [MmId; 8] {
    let half = 1 << 16;
    [1, 2, half - 1, half, half + 1, 1 << 30, (1 << 31) - half, (1 << 31) - 1].map(mm)
}

fn sums(mappings: &[(MmId, u32)]) -> Sums {
    mappings.iter().fold(Sums::default(), |sums, &(mm, count)| sums.map(mm, count))
}

/// Whether the sums know what is true of these mappings.
fn check(mappings: &[(MmId, u32)]) {
    let sums = sums(mappings);
    let mut mapping = mappings.iter().filter(|(_, count)| *count > 0);
    let owner = mapping.next().filter(|_| mapping.next().is_none());
    assert_eq!(sums.has_owner(), owner.is_some(), "{mappings:?}");
    for id in ids() {
        assert_eq!(sums.owned_by(id), owner.is_some_and(|(owner, _)| *owner == id), "{mappings:?}");
    }
}

/// Every way in which eight mms have up to three mappings each, and as many times 2^16.
#[test]
fn every_small_set_of_mappings_is_judged_right() {
    for number in 0..4_u32.pow(8) {
        let counts = (0..8).map(|at| number / 4_u32.pow(at) % 4);
        let of = |unit: u32| -> Vec<(MmId, u32)> {
            ids().into_iter().zip(counts.clone().map(|count| count * unit)).collect()
        };
        check(&of(1));
        check(&of(1 << 16));
    }
}

/// One mm has all mappings but one, or none: as many as sums hold.
#[test]
fn one_mapping_of_another_mm_shows_among_as_many_as_sums_hold() {
    for one in ids() {
        check(&[(one, EXACT_MAPPINGS)]);
        for other in ids().into_iter().filter(|&other| other != one) {
            check(&[(one, EXACT_MAPPINGS - 1), (other, 1)]);
            check(&[(one, EXACT_MAPPINGS / 2), (other, EXACT_MAPPINGS / 2)]);
        }
    }
    let more = sums(&[(mm(1), EXACT_MAPPINGS + 1)]);
    assert!(!more.has_owner() && !more.owned_by(mm(1)));
    let again = more.unmap(mm(1), 1).expect("it was mapped");
    assert!(again.has_owner() && again.owned_by(mm(1)));
}

/// Why the id and its square are not summed modulo 2^64.
#[test]
fn ids_and_squares_modulo_2_to_the_64_are_wrong_at_64_mappings() {
    let alone = mm(1 << 30);
    let others = [(1 << 30) - (1 << 29), (1 << 30) + (1 << 29)].map(mm);
    let add = |of: fn(u64) -> u64| {
        others
            .iter()
            .fold(0_u64, |sum, mm| sum.wrapping_add(of(u64::from(mm.get())).wrapping_mul(32)))
    };
    let id = u64::from(alone.get());
    assert_eq!(add(|id| id), 64 * id);
    assert_eq!(add(|id| id * id), (id * id).wrapping_mul(64));
    let sums = sums(&others.map(|mm| (mm, 32)));
    assert!(!sums.has_owner() && !sums.owned_by(alone));
}

/// What the sums hold is what the widths say: with ids as they are, fewer.
#[test]
fn two_halves_hold_more_where_ids_are_wide() {
    assert_eq!(exact_mappings(31, true), u64::from(EXACT_MAPPINGS));
    assert_eq!(exact_mappings(31, false), 1 << 17);
    assert_eq!([20, 22].map(|bits| exact_mappings(bits, false)), [1 << 30; 2]);
}
