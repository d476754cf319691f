//! Competitive bound: for any access sequence the policy costs at most about twice the better of
//! two strategies, reading each page by a fault of its own, or each region as a whole at its first
//! access.

use crate::support::{COSTS, Governed, LARGEST, Random};
use filemap_policy::Costs;
use proptest::prelude::*;

const REGION: usize = 512;

/// Initial credit of the two sizes below a region, in nanoseconds.
const FIRST_NS: u64 = 2 * 128 * COSTS.page_ns;

/// Allowance for pages that streams read beyond their ends: at most the largest window per stream,
/// and more if the program returns to it.
const BEYOND_NS: u64 = 4 * LARGEST * COSTS.page_ns;

/// The `number`th page of a sequence through a region in which consecutive pages lie in different
/// blocks.
fn page(region: u64, number: u64) -> u64 {
    region * 512 + u64::from((number as u8).reverse_bits()) * 2 % 512 + number / 128
}

/// Calls `each` with all sequences of `length` numbers in which a number first occurs after all
/// smaller ones: all orders of faults on regions, up to renaming.
fn rows(length: usize, row: &mut Vec<u64>, each: &mut impl FnMut(&[u64])) {
    if row.len() == length {
        return each(row);
    }
    let fresh = row.iter().max().map_or(0, |most| most + 1);
    for region in 0..=fresh {
        row.push(region);
        rows(length, row, each);
        row.pop();
    }
}

/// All orders of up to ten touches of new pages in up to ten regions, at prices of a region of 1.5,
/// 2.5 and 4.5 faults.
#[test]
fn all_orders_of_touches_of_regions() {
    let mut ran = 0;
    for halves in [3, 5, 9] {
        let costs = Costs { fault_ns: 2 * 512 * 100 / halves, page_ns: 100 };
        rows(10, &mut Vec::new(), &mut |row| {
            let mut governed = Governed::new(10 * 512, costs);
            let mut numbers = [0; 10];
            for &region in row {
                let number = &mut numbers[region as usize];
                governed.touch(page(region, *number));
                *number += 1;
                let better = governed.singles_ns().min(governed.regions_ns(REGION));
                let most = 2 * better + costs.fault_ns;
                assert!(governed.cost_ns() <= most, "{row:?}: {} of {most}", governed.cost_ns());
            }
            ran += 1;
        });
    }
    assert_eq!(ran, 3 * 115_975, "Bell's number of ten, three times");
}

/// A part of a program: touches in a part of the file, in some order.
#[derive(Clone, Debug)]
enum Part {
    Singles(u64, u64, u64),
    Runs(u64, u64),
    Scan(u64, u64),
    Shuffled(u64, u64),
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        (0..1000_u64, 1..1000_u64, 1..4000_u64)
            .prop_map(|(at, range, n)| Part::Singles(at, range, n)),
        (1..300_u64, 1..100_u64).prop_map(|(pages, count)| Part::Runs(pages, count)),
        (0..1000_u64, 1..8000_u64).prop_map(|(at, pages)| Part::Scan(at, pages)),
        (0..1000_u64, 1..20_u64).prop_map(|(at, regions)| Part::Shuffled(at, regions)),
    ]
}

/// The touched pages, in a file of `pages` pages.
fn touches(part: &Part, random: &mut Random, pages: u64) -> Vec<u64> {
    match *part {
        Part::Singles(at, range, count) => {
            let (first, range) = (at * pages / 1000, (range * pages / 1000).max(1));
            random.pages(count, range).into_iter().map(|page| (first + page) % pages).collect()
        }
        Part::Runs(length, count) => random.runs(count, length, pages),
        Part::Scan(at, count) => {
            (0..count).map(|page| (at * pages / 1000 + page) % pages).collect()
        }
        Part::Shuffled(at, regions) => {
            let first = at * pages / 1000 / 512 * 512;
            let all =
                (0..regions * 512).map(|number| first + number / 512 * 512 + number * 37 % 512);
            all.map(|page| page % pages).collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The bound against both strategies. The factor of 1.1 covers retries of sizes below a region;
    /// the constant covers two windows that a stream may read beyond its end.
    #[test]
    fn programs_cost_at_most_about_twice_the_better_way(
        seed in 1..u64::MAX,
        mib in 1..200_u64,
        parts in prop::collection::vec(part(), 1..6),
    ) {
        let (mut random, pages) = (Random(seed), mib * 256 + 300);
        let mut governed = Governed::new(pages, COSTS);
        for part in &parts {
            for page in touches(part, &mut random, pages) {
                governed.touch(page);
            }
            let singles = governed.singles_ns();
            let most = singles * 22 / 10 + FIRST_NS + 8 * COSTS.fault_ns;
            prop_assert!(governed.cost_ns() <= most, "{} of {singles}", governed.cost_ns());
            let regions = governed.regions_ns(REGION);
            let most = regions * 22 / 10 + FIRST_NS + 8 * COSTS.fault_ns;
            prop_assert!(governed.cost_ns() <= most, "{} of {regions}", governed.cost_ns());
        }
    }

    /// With short kernel windows the alternatives are single pages and these windows. The constant
    /// covers the loss before a file is left to the kernel, and what streams read beyond their
    /// ends.
    #[test]
    fn short_windows_are_left_to_the_kernel_in_time(
        seed in 1..u64::MAX,
        mib in 1..200_u64,
        window in prop::sample::select(vec![8, 16, 32, 64, 128]),
        parts in prop::collection::vec(part(), 1..6),
    ) {
        let (mut random, pages) = (Random(seed), mib * 256 + 300);
        let mut governed = Governed::with_window(pages, COSTS, window);
        let of_window = COSTS.fault_ns + window * COSTS.page_ns;
        for part in &parts {
            for page in touches(part, &mut random, pages) {
                governed.touch(page);
            }
            let (cost, kernel) = (governed.cost_ns(), governed.kernel_ns());
            let clear = FIRST_NS + 40 * COSTS.fault_ns + BEYOND_NS;
            prop_assert!(cost <= kernel * 2 + clear, "{cost} of {kernel}");
            let singles = governed.touched() * of_window;
            prop_assert!(cost <= singles + clear, "{cost} of {singles}");
        }
    }
}
