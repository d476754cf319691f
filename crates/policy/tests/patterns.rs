//! Typical access patterns with limits on major faults and pages read. None costs more than twice
//! the better of single faults and whole regions.

use crate::support::{Governed, Random};

/// Size of the file in pages: 4 GiB.
const FILE: u64 = 1 << 20;

/// 1 % of the pages.
const PERCENT: u64 = FILE / 100;

/// Name, touches, maximum faults, and maximum pages read per 1000 touched pages.
type Row = (&'static str, Vec<u64>, u64, u64);

/// The touches `one`, with the next of `other` after every `every` of them.
fn mixed(one: Vec<u64>, other: Vec<u64>, every: usize) -> Vec<u64> {
    let mut other = other.into_iter();
    one.chunks(every).flat_map(|part| part.iter().copied().chain(other.next())).collect()
}

fn shuffled(random: &mut Random, count: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..count).collect();
    for last in (1..all.len()).rev() {
        all.swap(last, random.below(last as u64 + 1) as usize);
    }
    all
}

fn singles(random: &mut Random) -> Vec<Row> {
    let touches = random.pages(PERCENT, FILE);
    vec![
        ("random 1 %", touches, PERCENT, 1060),
        ("random 1 % of 16 MiB", random.pages(40, 4096), 40, 1060),
        // The whole file is read ahead.
        ("random 300 % of 16 MiB", random.pages(3 * 4096, 4096), 155, 1060),
    ]
}

fn strides() -> Vec<Row> {
    let stride = |by: u64| (0..PERCENT).map(|number| number * by % FILE).collect();
    let by_turns = (0..2000).flat_map(|number| [number * 101, FILE / 2 + number * 67]).collect();
    vec![
        ("stride 1021", stride(1021), 80, 1150),
        ("stride 4099", stride(4099), 230, 1020),
        // Reading everything costs less than requesting every second page.
        ("stride 2", (0..100_000).map(|number| 2 * number).collect(), 20, 2050),
        ("two strides by turns", by_turns, 15, 1030),
    ]
}

fn scans(random: &mut Random) -> Vec<Row> {
    const GIB: u64 = FILE / 4;
    let interleaved = |threads: u64| {
        let part = GIB / threads;
        (0..part).flat_map(|page| (0..threads).map(move |thread| thread * part + page)).collect()
    };
    let most = |random: &mut Random| (0..GIB).filter(|_| random.below(10) > 0).collect();
    vec![
        ("sequential 1 %", (0..PERCENT).collect(), 3, 1500),
        ("reverse 1 %", (FILE - PERCENT..FILE).rev().collect(), 3, 1500),
        ("a quarter of the file", (0..GIB).collect(), 3, 1030),
        ("nine pages of ten", most(random), 3, 1150),
        ("four scans", interleaved(4), 25, 1030),
        ("sixteen scans", interleaved(16), 60, 1010),
    ]
}

fn runs(random: &mut Random) -> Vec<Row> {
    let uneven = (0..300).flat_map(|_| {
        let pages = 1 + random.below(200);
        random.runs(1, pages, FILE)
    });
    let uneven: Vec<u64> = uneven.collect();
    let batches = shuffled(random, FILE / 64);
    let batches = batches[..800].iter().flat_map(|batch| 64 * batch..64 * (batch + 1));
    vec![
        ("clusters of 16", random.runs(655, 16, FILE), 950, 1100),
        ("clusters of 4", random.runs(2600, 4, FILE), 3700, 1050),
        // MADV_NORMAL with a 128 KiB window reads about 1460 here.
        ("ranges of 800 KiB", random.runs(100, 200, FILE), 110, 1060),
        ("runs of 1 to 200", uneven, 600, 1330),
        ("shuffled batches of 64", batches.collect(), 1250, 1120),
    ]
}

fn mixes(random: &mut Random) -> Vec<Row> {
    let scan = || (0..FILE / 8).collect();
    let away = |pages: Vec<u64>| pages.into_iter().map(|page| FILE / 2 + page).collect();
    let often = away(random.pages(FILE / 32, FILE / 2));
    let seldom = away(random.pages(FILE / 800, FILE / 2));
    let clusters = [random.runs(655, 16, FILE), random.pages(10_000, FILE)].concat();
    let mut ranges = Vec::new();
    for _ in 0..100 {
        ranges.extend(random.pages(10, FILE));
        ranges.extend(random.runs(1, 200, FILE));
    }
    vec![
        // The half of the file with the random pages is read as a whole, which costs less than 32
        // faults per region.
        ("a scan, one in four is random", mixed(scan(), often, 4), FILE / 63, 4080),
        ("a scan, one in 100 is random", mixed(scan(), seldom, 100), FILE / 800 + 10, 1060),
        // The random pages first use up the credit that the clusters earned.
        ("clusters, then random", clusters, 10_800, 1210),
        ("gets and ranges", ranges, 1200, 1060),
    ]
}

#[test]
fn what_programs_do_costs_little() {
    let mut random = Random::NEW;
    let mut rows = singles(&mut random);
    rows.extend(strides());
    rows.extend(scans(&mut random));
    rows.extend(runs(&mut random));
    rows.extend(mixes(&mut random));
    let mut beyond = Vec::new();
    for (name, touches, most_faults, most_read) in rows {
        let governed = Governed::after(FILE, touches);
        let per_1000 = (governed.read * 1000).div_ceil(governed.touched());
        let better = governed.singles_ns().min(governed.regions_ns(512));
        let percent = (governed.cost_ns() * 100).div_ceil(better);
        println!("{name}: {} faults, {per_1000} pages for 1000, {percent} %", governed.faults);
        assert!(percent <= 200, "{name} costs {percent} % of the better of two ways");
        if governed.faults > most_faults || per_1000 > most_read {
            beyond.push((name, governed.faults, per_1000));
        }
    }
    assert!(beyond.is_empty(), "{beyond:?}");
}
