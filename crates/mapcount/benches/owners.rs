//! What a batch takes with two slots and with exact sums: one mm maps all pages of a folio, it is
//! asked whether it owns the folio, and unmaps them.
//!
//! `cargo bench -p filemap-mapcount --bench owners -- 25 4 9` takes the repeats and the orders. All
//! ways alternate in one run. Times are the thread's CPU time. With one of the words `slots` and
//! `sums` it makes so many rounds of that way on a folio that another mm maps too, and prints
//! nothing: for a tool that counts instructions.

mod support;

use std::hint::black_box;

use filemap_mapcount::atomics::Real;
use filemap_mapcount::sums::ExactSums;
use filemap_mapcount::{
    Error, Folio, Mapcount, MmId, MmOwner, NoPageMapcount, Order, PreciseOwners,
};
use support::clock::thread_cpu_ns;
use support::{median, numbers, refuse};

/// Rounds between two looks at the clock.
const ROUNDS: usize = 20_000;

/// A folio, and whether another mm maps it all the time.
type Rounds = fn(Order, bool, usize) -> Result<(), Error>;

const WAYS: [(&str, [Rounds; 2]); 2] = [
    ("no counts of pages", [rounds::<NoPageMapcount>, rounds::<PreciseOwners>]),
    ("counts of pages", [rounds::<MmOwner>, rounds::<MmOwner<Real, ExactSums>>]),
];

fn main() {
    run().unwrap_or_else(|error| refuse(&error.to_string()));
}

fn run() -> Result<(), Error> {
    let numbers = numbers();
    let first = numbers.first().copied();
    for (word, rounds) in ["slots", "sums"].into_iter().zip(WAYS[0].1) {
        if std::env::args().any(|own| own == word) {
            return rounds(Order::PMD, true, first.unwrap_or(ROUNDS));
        }
    }
    for &order in numbers.get(1..).filter(|orders| !orders.is_empty()).unwrap_or(&[4, 9]) {
        let order = Order::new(u32::try_from(order).unwrap_or(u32::MAX))?;
        for ((name, ways), shared) in WAYS.iter().flat_map(|own| [(own, false), (own, true)]) {
            let times = alternate(first.unwrap_or(25), ways, order, shared)?;
            let of = |figure: &dyn Fn(&[f64; 2]) -> f64| {
                median(&times.iter().map(figure).collect::<Vec<_>>())
            };
            let kind = if shared { "shared" } else { "alone" };
            print!("{:>5} KiB, {name:<19}{kind:<8}", 4 << order.get());
            print!("slots {:8.1} ns  sums {:8.1} ns", of(&|ns| ns[0]), of(&|ns| ns[1]));
            println!("  ratio {:.2}", of(&|ns| ns[1] / ns[0]));
        }
    }
    Ok(())
}

/// Nanoseconds of a round of both, again and again. The first repeat warms up.
fn alternate(
    repeats: usize,
    ways: &[Rounds; 2],
    order: Order,
    shared: bool,
) -> Result<Vec<[f64; 2]>, Error> {
    // What has a count for each page takes longer.
    let all = ROUNDS.min(ROUNDS * 64 / order.pages());
    let mut times = vec![[0.0; 2]; repeats + 1];
    for (repeat, times) in times.iter_mut().enumerate() {
        for step in [repeat % 2, 1 - repeat % 2] {
            let start = thread_cpu_ns();
            ways[step](order, shared, all)?;
            times[step] = (thread_cpu_ns() - start) as f64 / all as f64;
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
