//! The ranges that are recorded, against an array of what is at each address, and how many of them
//! a look-up looks at.

#[path = "support/draws.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod draws;
#[path = "../src/record/ranges.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod ranges;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use draws::Draws;
use ranges::{Found, Ranges};

/// Ranges are far too large for a stack.
static OF_AN_ARRAY: Ranges = Ranges::new();
static MANY: Ranges = Ranges::new();
static AT_ONCE: Ranges = Ranges::new();
static FULL: Ranges = Ranges::new();

/// Addresses of the array.
const PLACES: usize = 200;

/// The ranges as the array has them: neighbours of one word are not told apart.
fn runs(array: &[usize]) -> Vec<(usize, usize)> {
    array.iter().copied().enumerate().filter(|(_, word)| *word != 0).collect()
}

fn of_ranges(found: impl Iterator<Item = Found>) -> Vec<(usize, usize)> {
    found.flat_map(|Found { range, word }| range.map(move |at| (at, word))).collect()
}

#[test]
fn random_ranges_are_as_in_an_array() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut draws = Draws::new(seed);
    let mut array = [0_usize; PLACES];
    for step in 1..20_000 {
        let first = draws.below(PLACES as u64) as usize;
        let range = first..(first + 1 + draws.below(24) as usize).min(PLACES);
        assert_eq!(OF_AN_ARRAY.remove(&range, || ()), None, "step {step}");
        array[range.clone()].fill(0);
        if draws.below(2) == 0 {
            assert!(OF_AN_ARRAY.add(range.clone(), step, || ()));
            array[range].fill(step);
        }
        assert_eq!(of_ranges(OF_AN_ARRAY.parts(&(0..PLACES))), runs(&array), "step {step}");
        let first = draws.below(PLACES as u64) as usize;
        let range = first..(first + draws.below(9) as usize).min(PLACES);
        let expected: Vec<_> =
            runs(&array).into_iter().filter(|(at, _)| range.contains(at)).collect();
        assert_eq!(of_ranges(OF_AN_ARRAY.parts(&range)), expected, "step {step}");
        assert_eq!(OF_AN_ARRAY.first(&range).is_some(), !expected.is_empty());
    }
}

/// Of 10,000 ranges a change or a look-up looks at few, in whatever order they come and go.
#[test]
fn few_of_many_are_looked_at() {
    const COUNT: usize = 10_000;
    /// Twice the logarithm of 10,000 to the base 4, times the 4 that are expected on a level.
    const MEAN: usize = 54;
    let place = |number: usize| number * 16..number * 16 + 8;
    let mut orders: Vec<Vec<usize>> = vec![(0..COUNT).collect(), (0..COUNT).rev().collect()];
    let mut draws = Draws::new(3);
    let mut shuffled: Vec<usize> = (0..COUNT).collect();
    for index in (1..COUNT).rev() {
        shuffled.swap(index, draws.below(index as u64 + 1) as usize);
    }
    orders.push(shuffled);
    for order in orders {
        let mut looks = [0; 3];
        for &number in &order {
            assert!(MANY.add(place(number), number, || looks[0] += 1));
        }
        for &number in &order {
            let found = MANY.search(&place(number), || looks[1] += 1);
            assert_eq!(found.map(|found| found.word), Some(number));
        }
        for &number in &order {
            assert_eq!(MANY.remove(&place(number), || looks[2] += 1), None);
        }
        // A removal looks twice: for the range, and for more of it.
        println!("{looks:?}");
        assert!(looks.iter().all(|looks| *looks < 2 * MEAN * COUNT), "{looks:?}");
        assert!(MANY.is_empty());
    }
}

/// Who looks while others change finds whole ranges.
#[test]
fn no_range_is_found_torn() {
    let is_over = AtomicBool::new(false);
    // A range of a number begins at 1000 times it, and is as long as the number.
    let of = |number: usize| number * 1000..number * 1001;
    thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let (mut draws, mut found_so_far) = (Draws::new(9), 0_u64);
            while !is_over.load(Ordering::Acquire) {
                let number = 1 + draws.below(30) as usize;
                if let Some(Found { range, word }) = AT_ONCE.first(&(of(number).start..40_000)) {
                    assert_eq!(range, of(word));
                    found_so_far += 1;
                }
            }
            found_so_far
        });
        let mut draws = Draws::new(5);
        let mut is_there = [false; 31];
        for _ in 0..300_000 {
            let number = 1 + draws.below(30) as usize;
            if is_there[number] {
                assert_eq!(AT_ONCE.remove(&of(number), || ()), None);
            } else {
                assert!(AT_ONCE.add(of(number), number, || ()));
            }
            is_there[number] ^= true;
        }
        is_over.store(true, Ordering::Release);
        assert!(looking.join().expect("it ends") > 0);
    });
}

/// Where there is no room left, what is lost is said, and the rest stays.
#[test]
fn what_has_no_room_is_said() {
    for number in 0..ranges::MOST {
        assert!(FULL.add(number * 10..number * 10 + 3, number, || ()));
    }
    assert!(!FULL.add(ranges::MOST * 10..ranges::MOST * 10 + 3, 0, || ()));
    let lost = FULL.remove(&(11..12), || ());
    assert_eq!(lost, Some(Found { range: 12..13, word: 1 }));
    assert_eq!(FULL.first(&(10..20)), Some(Found { range: 10..11, word: 1 }));
    assert_eq!(FULL.remove(&(20..30), || ()), None);
    assert!(FULL.add(21..22, 7, || ()));
}
