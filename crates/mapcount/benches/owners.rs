//! The cost of a batch with two slots and with exact sums: one mm maps all pages of a folio,
//! queries whether it owns the folio, and unmaps them.
//!
//! `cargo bench -p filemap-mapcount --bench owners -- 25 4 9` takes the number of repeats and the
//! orders. Both schemes alternate in one run. Times are CPU times of the thread. With the word
//! `slots` or `sums` it only runs that many rounds of one scheme, on a folio that another mm maps
//! too, and prints nothing: for tools that count instructions.

#[allow(dead_code, reason = "another clock is in it too")]
#[path = "../../kernel/src/clock.rs"]
mod clock;

use std::hint::black_box;

use clock::thread_cpu_ns;
use filemap_mapcount::atomics::StdAtomics;
use filemap_mapcount::sums::ExactSums;
use filemap_mapcount::{
    Error, Folio, Mapcount, MmId, MmOwner, NoPageMapcount, Order, PreciseOwners,
};

/// Rounds between two reads of the clock.
const ROUNDS: usize = 20_000;

/// Runs rounds on a folio that another mm maps too, or not.
type Rounds = fn(Order, bool, usize) -> Result<(), Error>;

/// Two slots and exact sums, without and with counts of pages.
const SCHEMES: [(&str, [Rounds; 2]); 2] = [
    ("no counts of pages", [rounds::<NoPageMapcount>, rounds::<PreciseOwners>]),
    ("counts of pages", [rounds::<MmOwner>, rounds::<MmOwner<StdAtomics, ExactSums>>]),
];

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}");
        std::process::exit(2)
    }
}

fn run() -> Result<(), Error> {
    let numbers: Vec<usize> =
        std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let repeats = numbers.first().copied();
    for (word, rounds) in ["slots", "sums"].into_iter().zip(SCHEMES[0].1) {
        if std::env::args().any(|argument| argument == word) {
            return rounds(Order::PMD, true, repeats.unwrap_or(ROUNDS));
        }
    }
    for &order in numbers.get(1..).filter(|orders| !orders.is_empty()).unwrap_or(&[4, 9]) {
        let order = Order::new(u32::try_from(order).unwrap_or(u32::MAX))?;
        for ((name, schemes), shared) in SCHEMES.iter().flat_map(|row| [(row, false), (row, true)])
        {
            let times = alternate(repeats.unwrap_or(25), schemes, order, shared)?;
            let median = |figure: &dyn Fn(&[f64; 2]) -> f64| {
                let mut figures: Vec<f64> = times.iter().map(figure).collect();
                figures.sort_by(f64::total_cmp);
                figures[figures.len() / 2]
            };
            let kind = if shared { "shared" } else { "alone" };
            print!("{:>5} KiB, {name:<19}{kind:<8}", 4 << order.get());
            print!("slots {:8.1} ns  sums {:8.1} ns", median(&|ns| ns[0]), median(&|ns| ns[1]));
            println!("  ratio {:.2}", median(&|ns| ns[1] / ns[0]));
        }
    }
    Ok(())
}

/// Nanoseconds of a round of both schemes, for each repeat after one that warms up.
fn alternate(
    repeats: usize,
    schemes: &[Rounds; 2],
    order: Order,
    shared: bool,
) -> Result<Vec<[f64; 2]>, Error> {
    // Counts of pages take time in proportion to the size.
    let rounds = ROUNDS.min(ROUNDS * 64 / order.pages());
    let mut times = vec![[0.0; 2]; repeats + 1];
    for (repeat, times) in times.iter_mut().enumerate() {
        for scheme in [repeat % 2, 1 - repeat % 2] {
            let start = thread_cpu_ns();
            schemes[scheme](order, shared, rounds)?;
            times[scheme] = (thread_cpu_ns() - start) as f64 / rounds as f64;
        }
    }
    Ok(times.split_off(1))
}

fn rounds<C: Mapcount>(order: Order, shared: bool, rounds: usize) -> Result<(), Error> {
    let folio = Folio::<C>::new(order)?;
    let [parent, child] = [MmId::new(1)?, MmId::new(2)?];
    let pages = || 0..order.pages();
    if shared {
        folio.map(parent, pages());
    }
    for _ in 0..rounds {
        folio.map(child, pages());
        black_box(folio.counts().owned_by(child));
        folio.unmap(child, pages());
    }
    Ok(())
}
