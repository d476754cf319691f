//! Rent or buy: the price of a window, what earns credit, and how much worse it can be than the
//! better of always and never reading windows.

use std::collections::HashSet;

use filemap_core::readahead::rent::{ENOUGH_CREDIT, FIRST_CREDIT, MAX_HITS, MAX_LEVEL};
use filemap_core::readahead::rent::{MAX_PRICE, MAX_SAVED, PAGES_PER_FAULT, Rent};
use filemap_core::units::{PageCount, PageIndex};

const WINDOW: PageCount = PageCount(PAGES_PER_FAULT);

/// Pages this far apart are not close, nor are those several times as far.
const APART: u64 = 256;

/// Misses that read their page alone before one reads a window, each far from the one before.
fn rented(rent: &mut Rent, window: PageCount) -> u64 {
    (1..)
        .find(|&miss| rent.record_miss(PageIndex(128 + miss * APART), window))
        .expect("some miss buys")
        - 1
}

/// Windows that `rent` buys until a miss reads its page alone.
fn bought(rent: &mut Rent, window: PageCount) -> usize {
    (1..).take_while(|miss| rent.record_miss(PageIndex(128 + miss * APART), window)).count()
}

/// A file whose windows of `window` pages have had the highest price for a while.
fn dear(window: PageCount) -> Rent {
    let mut rent = Rent::NEW;
    for _ in 0..250 {
        rented(&mut rent, window);
    }
    rent
}

#[test]
fn the_first_windows_are_free_until_little_credit_is_left() {
    assert_eq!((FIRST_CREDIT, ENOUGH_CREDIT), (256, 64));
    // 193 windows leave too little for the price to stay: 2 + 4 + 8 + 16 + 32 of the remaining 63.
    assert_eq!(bought(&mut { Rent::NEW }, WINDOW), 193 + 5);
    assert_eq!(bought(&mut { Rent::NEW }, PageCount(1)), 193 + 5, "no window costs less");
    // 13 * 16 + 32 of 256.
    assert_eq!(bought(&mut { Rent::NEW }, PageCount(512)), 14);
    assert_eq!(bought(&mut { Rent::NEW }, PageCount(2048)), 4);
}

#[test]
fn the_price_doubles_up_to_a_bound() {
    for (pages, price) in [
        (1, 64),
        (32, 64),
        (33, 128),
        (64, 128),
        (65, 192),
        (512, 1024),
        (2048, 4095),
        (1 << 30, 4095),
    ] {
        let rent = &mut dear(PageCount(pages));
        // The miss that buys had earned nothing before it.
        let prices = [0; 3].map(|_| rented(rent, PageCount(pages)));
        assert_eq!(prices, [price; 3], "{pages} pages");
    }
    assert_eq!(1 << MAX_LEVEL, 64);
    assert_eq!(MAX_PRICE, 4095);
}

#[test]
fn hit_window_halves_the_price() {
    for (pages, hits, is_worth_it) in [
        (32, 0, false),
        (32, 1, true),
        (64, 1, false),
        (64, 2, true),
        (96, 2, false),
        (96, 3, true),
        (992, 30, false),
        (992, 31, true),
    ] {
        let window = PageCount(pages);
        let rent = &mut dear(window);
        let price = rented(rent, window);
        (0..hits).for_each(|_| rent.record_hit());
        let saved = hits.min(MAX_SAVED.into());
        assert_eq!(rented(rent, window), price - saved, "the next one costs as much");
        let next = if is_worth_it { price / 2 } else { price };
        assert_eq!(rented(rent, window), next, "{hits} hits of a window of {pages} pages");
    }
}

#[test]
fn hits_add_credit_up_to_a_bound() {
    let rent = &mut dear(WINDOW);
    rented(rent, WINDOW);
    (0..100).for_each(|_| rent.record_hit());
    assert_eq!(rented(rent, WINDOW), 64 - u64::from(MAX_SAVED));
    assert_eq!(MAX_HITS, 31);
    // Hits after a page that was read alone are not those of a window.
    assert!(!rent.record_miss(PageIndex(50_000), WINDOW));
    (0..100).for_each(|_| rent.record_hit());
    assert_eq!(rented(rent, WINDOW), 31);
    let rich = &mut { Rent::NEW };
    rich.record_hit();
    assert_eq!(bought(rich, WINDOW), bought(&mut { Rent::NEW }, WINDOW));
}

#[test]
fn close_misses_earn_twice_as_much_and_halve_the_price() {
    // 50,000 is the first page of a block of 8. 11 bits of a block are kept.
    for (second, is_close) in [
        (50_000, true),
        (50_007, true),
        (50_008, true),
        (50_015, true),
        (50_016, false),
        (49_992, true),
        (49_991, false),
        (50_000 + (8 << 11), true),
        (50_015 + (8 << 11), true),
        (50_016 + (8 << 11), false),
        (50_016 + (8 << 10), false),
    ] {
        let rent = &mut dear(WINDOW);
        assert!(!rent.record_miss(PageIndex(50_000), WINDOW));
        assert!(!rent.record_miss(PageIndex(second), WINDOW));
        assert_eq!(rented(rent, WINDOW), if is_close { 61 } else { 62 }, "{second}");
        assert_eq!(rented(rent, WINDOW), if is_close { 32 } else { 64 }, "{second}");
    }
}

#[test]
fn a_scan_after_disorder_is_read_in_windows_again() {
    let rent = &mut dear(WINDOW);
    let read_alone = |rent: &mut Rent, from: u64| {
        (from..).take_while(|&index| !rent.record_miss(PageIndex(index), WINDOW)).count()
    };
    // Each window ends the scan; the next one starts elsewhere.
    let scans = [1, 2, 3, 4, 5, 6, 7].map(|scan| read_alone(rent, scan * 100_000));
    assert_eq!(scans, [32, 16, 8, 4, 2, 1, 1]);
}

/// A file whose pages stay cached, and the cost of reading it, in pages transferred.
#[derive(Clone, Default)]
struct File {
    cached: HashSet<u64>,
    cost: u64,
}

impl File {
    /// An access to page `index`: `buys` tells whether a miss reads a window around it.
    fn access(&mut self, index: u64, buys: impl FnOnce() -> bool) -> bool {
        let is_hit = self.cached.contains(&index);
        if !is_hit {
            let around = if buys() { WINDOW.0 } else { 1 };
            let first = index - around / 2;
            self.cached.extend(first..first + around);
            self.cost += PAGES_PER_FAULT + around;
        }
        is_hit
    }
}

/// One list of accesses, read in three ways.
#[derive(Clone)]
struct Race {
    rent: Rent,
    ours: File,
    always: File,
    never: File,
    /// The next page of each of two scans, and the next one that is far from all others.
    scans: [u64; 2],
    far: u64,
}

impl Race {
    fn from(rent: Rent) -> Race {
        let none = File::default();
        let (ours, always, never) = (none.clone(), none.clone(), none);
        Race { rent, ours, always, never, scans: [1 << 40, 1 << 41], far: 10_007 }
    }

    /// Continues scan 0 or 1, or accesses some other page.
    fn step(&mut self, choice: u64) {
        let index = match self.scans.get_mut(choice as usize) {
            Some(next) => {
                *next += 1;
                *next
            }
            None => {
                self.far += 10_007;
                self.far
            }
        };
        let rent = &mut self.rent;
        if self.ours.access(index, || rent.record_miss(PageIndex(index), WINDOW)) {
            self.rent.record_hit();
        }
        self.always.access(index, || true);
        self.never.access(index, || false);
        let better = self.always.cost.min(self.never.cost);
        assert!(self.ours.cost <= 2 * better + AT_MOST, "{} for {better}", self.ours.cost);
    }
}

/// Cost of learning beyond twice the better of both, in pages transferred: the misses that pay for
/// one window of each level.
const AT_MOST: u64 = (2 << MAX_LEVEL) * (PAGES_PER_FAULT + 1);

/// Tries each list of `left` accesses.
fn try_all(race: &Race, left: u32) {
    if left == 0 {
        return;
    }
    for choice in 0..3 {
        let mut next = race.clone();
        next.step(choice);
        try_all(&next, left - 1);
    }
}

#[test]
fn no_short_list_costs_more_than_twice_the_better_of_both() {
    for rent in [Rent::NEW, dear(WINDOW)] {
        try_all(&Race::from(rent), 8);
    }
}

#[test]
fn no_long_list_costs_more_than_twice_the_better_of_both() {
    let mut state = 1_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) % bound
    };
    for _ in 0..60 {
        let mut race = Race::from(Rent::NEW);
        for _ in 0..30 {
            // A phase of one kind or a mixture, for the time that learning takes or longer.
            let (kind, length) = (below(5), 1 << below(9));
            for step in 0..length {
                race.step(match kind {
                    3 => step % 2,
                    4 => below(3),
                    kind => kind,
                });
            }
        }
    }
}
