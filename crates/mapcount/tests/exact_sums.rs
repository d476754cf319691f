//! Sums of ids in corners and next to each other, up to the maximum number of mappings.

use crate::support::mm;
use filemap_mapcount::MmId;
use filemap_mapcount::sums::{EXACT_MAPPINGS, Sums, exact_mappings};

/// The first and the last ids, and ids around the corners of the points.
fn ids() -> [MmId; 8] {
    let half = 1 << 16;
    [1, 2, half - 1, half, half + 1, 1 << 30, (1 << 31) - half, (1 << 31) - 1].map(mm)
}

fn sums(mappings: &[(MmId, u32)]) -> Sums {
    mappings.iter().fold(Sums::default(), |sums, &(mm, count)| sums.map(mm, count))
}

/// Checks the sums of these mappings against the list itself.
fn check(mappings: &[(MmId, u32)]) {
    let sums = sums(mappings);
    let mut owners = mappings.iter().filter(|(_, count)| *count > 0);
    let owner = owners.next().filter(|_| owners.next().is_none());
    assert_eq!(sums.has_owner(), owner.is_some(), "{mappings:?}");
    for id in ids() {
        assert_eq!(sums.owned_by(id), owner.is_some_and(|(owner, _)| *owner == id), "{mappings:?}");
    }
}

/// All ways in which eight mms have up to three mappings each, also times 2^16.
#[test]
fn small_sets_of_mappings_are_exact() {
    for number in 0..4_u32.pow(8) {
        let counts = (0..8).map(|at| number / 4_u32.pow(at) % 4);
        let set = |unit: u32| -> Vec<(MmId, u32)> {
            ids().into_iter().zip(counts.clone().map(|count| count * unit)).collect()
        };
        check(&set(1));
        check(&set(1 << 16));
    }
}

/// One mm has all mappings, all but one, or half of them, at the maximum number.
#[test]
fn one_foreign_mapping_shows_at_the_maximum() {
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

/// Why the sums are not of the id and its square modulo 2^64.
#[test]
fn sums_modulo_2_to_the_64_are_wrong_at_64_mappings() {
    let alone = mm(1 << 30);
    let others = [(1 << 30) - (1 << 29), (1 << 30) + (1 << 29)].map(mm);
    let sum = |value: fn(u64) -> u64| {
        others
            .iter()
            .fold(0_u64, |sum, mm| sum.wrapping_add(value(u64::from(mm.get())).wrapping_mul(32)))
    };
    let id = u64::from(alone.get());
    assert_eq!(sum(|id| id), 64 * id);
    assert_eq!(sum(|id| id * id), (id * id).wrapping_mul(64));
    let sums = sums(&others.map(|mm| (mm, 32)));
    assert!(!sums.has_owner() && !sums.owned_by(alone));
}

/// With wide ids, points hold more mappings than ids as numbers.
#[test]
fn points_hold_more_mappings_of_wide_ids() {
    assert_eq!(exact_mappings(31, true), u64::from(EXACT_MAPPINGS));
    assert_eq!(exact_mappings(31, false), 1 << 17);
    assert_eq!([20, 22].map(|bits| exact_mappings(bits, false)), [1 << 30; 2]);
}
