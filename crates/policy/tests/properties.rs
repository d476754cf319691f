//! What holds for all faults.

mod support;

use filemap_policy::{Bounds, Pages, State};
use proptest::prelude::*;
use support::plain::Plain;
use support::{Governed, Random};

/// What a program does next, from where it is.
#[derive(Clone, Debug)]
enum Part {
    Run(u64, u8),
    Back(u64, u8),
    Stride(u64, u16, u8),
    Singles(Vec<u64>),
}

/// Page numbers: of a small file, of a large one, and near the end of all numbers.
fn page() -> impl Strategy<Value = u64> {
    let last = u64::MAX - 400..=u64::MAX;
    prop_oneof![4 => 0..200_u64, 4 => 0..1_000_000_u64, 1 => last, 1 => any::<u64>()]
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        (page(), 1..60_u8).prop_map(|(from, count)| Part::Run(from, count)),
        (page(), 1..60_u8).prop_map(|(from, count)| Part::Back(from, count)),
        (page(), 1..500_u16, 1..60_u8).prop_map(|(from, by, count)| Part::Stride(from, by, count)),
        prop::collection::vec(page(), 1..20).prop_map(Part::Singles),
    ]
}

fn faults() -> impl Strategy<Value = Vec<u64>> {
    let pages = |part: Part| -> Vec<u64> {
        match part {
            Part::Run(from, count) => (0..count.into()).map(|i| from.wrapping_add(i)).collect(),
            Part::Back(from, count) => (0..count.into()).map(|i| from.wrapping_sub(i)).collect(),
            Part::Stride(from, by, count) => {
                (0..u64::from(count)).map(|i| from.wrapping_add(i * u64::from(by))).collect()
            }
            Part::Singles(pages) => pages,
        }
    };
    let parts = prop::collection::vec(part(), 1..60);
    // Threads take turns: parts are dealt out, or one follows the other.
    (parts, any::<bool>()).prop_map(move |(parts, by_turns)| {
        let rows: Vec<Vec<u64>> = parts.into_iter().map(pages).collect();
        if !by_turns {
            return rows.concat();
        }
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest)
            .flat_map(|at| rows.iter().filter_map(move |row| row.get(at).copied()))
            .collect()
    })
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let of = |(first, end, file_pages)| Bounds { mapping: Pages { first, end }, file_pages };
    let end = || prop_oneof![page(), Just(u64::MAX)];
    (prop_oneof![Just(0), page()], end(), end()).prop_map(of)
}

fn largest() -> impl Strategy<Value = u64> {
    prop_oneof![Just(4096_u64), 0..100_u64, Just(u64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Never outside, never more than the largest window, never the page itself, the same again
    /// from the same faults, and no panic. The tests count with overflow checks.
    #[test]
    fn every_answer_is_within_bounds(
        faults in faults(),
        bounds in prop::collection::vec(bounds(), 1..4),
        largest in largest(),
    ) {
        let (mut state, mut again) = (State::new(largest), State::new(largest));
        for (number, &page) in faults.iter().enumerate() {
            // A mapping and its file may grow and shrink.
            let bounds = bounds[number * bounds.len() / faults.len()];
            let reads = state.fault(page, bounds);
            prop_assert_eq!(reads, again.fault(page, bounds));
            prop_assert!(reads.pages() <= largest);
            let mut pages = 0;
            for range in reads.ranges() {
                prop_assert!(range.first < range.end && !range.contains(page));
                prop_assert!(bounds.mapping.first <= range.first);
                prop_assert!(range.end <= bounds.mapping.end && range.end <= bounds.file_pages);
                pages += range.count();
            }
            prop_assert_eq!(pages, reads.pages(), "a range has no page twice");
        }
    }

    /// The second implementation asks for the same pages.
    #[test]
    fn the_plain_policy_agrees(faults in faults(), bounds in bounds(), largest in 0..5000_u64) {
        let (mut state, mut plain) = (State::new(largest), Plain::new(largest));
        for (number, &page) in faults.iter().enumerate() {
            let reads = state.fault(page, bounds);
            let mut pages: Vec<u64> = reads.ranges().flat_map(|at| at.first..at.end).collect();
            pages.sort_unstable();
            prop_assert_eq!(pages, plain.fault(page, bounds), "fault {} at {}", number, page);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Uniform random accesses read next to nothing that they do not ask for, in a file of any
    /// size and however many there are, and whatever the program did before.
    #[test]
    fn random_accesses_waste_little(
        seed in 1..u64::MAX,
        file_mib in 16..512_u64,
        percent in 1..200_u64,
    ) {
        let pages = file_mib * 256;
        let mut random = Random(seed);
        let accesses = random.pages(pages * percent / 100, pages);
        let governed = Governed::after(pages, accesses);
        let wasted = governed.read - governed.touched();
        // Three by chance in a row may ask for a window of 4.
        prop_assert!(wasted <= 3 + governed.touched() / 500, "{} pages", wasted);
    }

    #[test]
    fn what_was_learned_is_forgotten_when_accesses_are_random(
        seed in 1..u64::MAX,
        run in 2..3000_u64,
        count in 1..60_u64,
    ) {
        const PAGES: u64 = 1 << 20;
        let mut random = Random(seed);
        let mut governed = Governed::after(PAGES, random.runs(count, run, PAGES));
        let asked = |governed: &Governed| governed.read - governed.faults;
        let before = asked(&governed);
        random.pages(5000, PAGES).into_iter().for_each(|page| governed.touch(page));
        let wasted = asked(&governed) - before;
        // Some fifty faults, each of which asks for 256 pages at the most.
        prop_assert!(wasted <= 50 * 256, "{} pages", wasted);
    }
}

/// Long jobs, in which much is counted, halved and forgotten.
#[test]
fn the_plain_policy_agrees_with_long_jobs() {
    const PAGES: u64 = 1 << 18;
    let mut random = Random::NEW;
    for (run, others) in [(1, 3), (2, 0), (16, 1), (40, 0), (200, 5), (700, 1)] {
        let (mut state, mut plain) = (State::new(4096), Plain::new(4096));
        let mut cached = vec![false; PAGES as usize];
        for _ in 0..600 {
            let length = 1 + random.below(2 * run);
            let mut touches = random.runs(1, length, PAGES);
            touches.extend(random.pages(random.0 % (others + 1), PAGES));
            for page in touches {
                if std::mem::replace(&mut cached[page as usize], true) {
                    continue;
                }
                let reads = state.fault(page, support::whole(PAGES));
                let mut pages: Vec<u64> = reads.ranges().flat_map(|at| at.first..at.end).collect();
                pages.sort_unstable();
                assert_eq!(pages, plain.fault(page, support::whole(PAGES)), "runs of {run}");
                pages.into_iter().for_each(|page| cached[page as usize] = true);
            }
            if random.below(20) == 0 {
                cached.fill(false);
            }
        }
    }
}
