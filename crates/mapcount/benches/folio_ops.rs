//! Nanoseconds per page of each operation, and what counting differently saves, in units of L.
//!
//! `cargo bench -p filemap-mapcount --bench folio_ops -- 256 9 2 4` takes the MiB of memory, the
//! repeats and the orders; without numbers they are 64, 9 and all. With the word `scattered` folios
//! lie apart in memory. Configurations alternate in one run, in memory that they share. Times are
//! the thread's CPU time.

mod support;

use filemap_mapcount::atomics::PlainPages;
use filemap_mapcount::folio_ops::{
    FolioOps, Operation, Placement, Sample, contents, read_modify_write_ns,
};
use filemap_mapcount::{
    Error, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use support::clock::thread_cpu_ns;
use support::{huge_pages, median, numbers, refuse};

const NAMES: [&str; 5] =
    ["PageMapcount", "plain counts", "MmOwner", "NoPageMapcount", "PreciseOwners"];

/// Fault costs for which reuse is compared: none, and two of real machines.
const FAULT_NS: [f64; 3] = [0.0, 360.0, 800.0];

/// A configuration, whatever its type.
trait Run {
    fn run(&self, operation: Operation) -> Result<Sample, Error>;
}

impl<C: Mapcount> Run for FolioOps<C> {
    fn run(&self, operation: Operation) -> Result<Sample, Error> {
        FolioOps::run(self, operation, thread_cpu_ns)
    }
}

fn main() {
    let numbers = numbers();
    let placement = if std::env::args().any(|word| word == "scattered") {
        Placement::Scattered
    } else {
        Placement::InOrder
    };
    let pages = numbers.first().copied().unwrap_or(64) * 256;
    let repeats = numbers.get(1).copied().unwrap_or(9);
    if pages == 0 || repeats == 0 {
        refuse("0 MiB or 0 repeats measure nothing; give at least 1 of each, for example 64 9");
    }
    println!("{} MiB, {repeats} alternating repeats, medians", pages / 256);
    let orders = numbers.get(2..).filter(|orders| !orders.is_empty());
    for &order in orders.unwrap_or(&[0, 2, 3, 4, 5, 6, 7, 8, 9]) {
        let order = Order::new(u32::try_from(order).unwrap_or(u32::MAX));
        let done = order.and_then(|order| of_order(pages, repeats, order, placement));
        done.unwrap_or_else(|error| refuse(&error.to_string()));
    }
}

fn of_order(pages: usize, repeats: usize, order: Order, placement: Placement) -> Result<(), Error> {
    let contents = contents(pages, order, placement, &mut huge_pages)?;
    macro_rules! boxed {
        ($type:ty) => {
            Box::new(FolioOps::<$type>::with(&contents, pages, order, placement, &mut huge_pages)?)
        };
    }
    let all: [Box<dyn Run>; 5] = [
        boxed!(PageMapcount),
        boxed!(PageMapcount<PlainPages>),
        boxed!(MmOwner),
        boxed!(NoPageMapcount),
        boxed!(PreciseOwners),
    ];
    for operation in Operation::ALL {
        let mut rounds = Vec::new();
        for round in 0..=repeats {
            let mut ns = [0.0; 5];
            let mut copied = [0; 5];
            let locked_ns = read_modify_write_ns(thread_cpu_ns);
            // Every other time the other way round, so that none always comes after another.
            for step in 0..all.len() {
                let index = if round % 2 == 0 { step } else { all.len() - 1 - step };
                let sample = all[index].run(operation)?;
                ns[index] = sample.time_ns as f64 / pages as f64;
                copied[index] = sample.copied;
            }
            assert!(order == Order::SINGLE || copied[0] == copied[1]);
            rounds.push(Round { ns, locked_ns });
        }
        // The first one warms up.
        show(order, operation, &rounds[1..]);
    }
    Ok(())
}

/// Nanoseconds per page of all configurations, one after the other, and L.
struct Round {
    ns: [f64; 5],
    locked_ns: f64,
}

/// Of each round a change is computed, and then the median: what slows a machine down for a while
/// slows all configurations of a round down.
fn show(order: Order, operation: Operation, rounds: &[Round]) {
    let of =
        |figure: &dyn Fn(&Round) -> f64| median(&rounds.iter().map(figure).collect::<Vec<_>>());
    print!("{:>5} KiB {:<16}", 4 << order.get(), operation.name());
    print!(
        " L {:4.2}  base {:6.2} ns/page",
        of(&|round| round.locked_ns),
        of(&|round| round.ns[0])
    );
    for (index, name) in NAMES.iter().enumerate().skip(1) {
        let percent = of(&|round| (round.ns[index] / round.ns[0] - 1.0) * 100.0);
        let saved = of(&|round| (round.ns[0] - round.ns[index]) / round.locked_ns);
        print!("  {name} {percent:+.1}% {saved:+.2} L");
    }
    let of_folio = of(&|round| (round.ns[2] - round.ns[0]) / round.locked_ns);
    println!("  MmOwner {:+.1} L per folio", of_folio * order.pages() as f64);
    if operation == Operation::ReuseByte {
        show_faults(std::array::from_fn(|index| of(&|round| round.ns[index])));
    }
}

fn show_faults(ns: [f64; 5]) {
    for fault_ns in FAULT_NS {
        let percent = |index: usize| ((ns[index] + fault_ns) / (ns[0] + fault_ns) - 1.0) * 100.0;
        print!("{:>34} ns per fault:", fault_ns);
        println!(" MmOwner {:+.0}%, NoPageMapcount {:+.0}%", percent(2), percent(3));
    }
}
