//! Nanoseconds per page of each operation, and what counting differently saves, in units of L.
//!
//! `cargo bench -p filemap-mapcount --bench folio_ops -- 256 9 2 4` takes the MiB of memory, the
//! repeats and the orders; without numbers they are 64, 9 and all. Configurations alternate in one
//! run. Times are the thread's CPU time.

use filemap_mapcount::atomics::PlainPages;
use filemap_mapcount::folio_ops::{FolioOps, Operation, Sample, read_modify_write_ns};
use filemap_mapcount::{
    Error, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use rustix::time::{ClockId, clock_gettime};

const NAMES: [&str; 5] =
    ["PageMapcount", "plain counts", "MmOwner", "NoPageMapcount", "PreciseOwners"];

/// Fault costs for which reuse is compared: none, and two of real machines.
const FAULT_NS: [f64; 3] = [0.0, 360.0, 800.0];

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A configuration, whatever its type.
trait Run {
    fn run(&self, operation: Operation) -> Result<Sample, Error>;
}

impl<C: Mapcount> Run for FolioOps<C> {
    fn run(&self, operation: Operation) -> Result<Sample, Error> {
        FolioOps::run(self, operation, now_ns)
    }
}

fn main() -> Result<(), Error> {
    let numbers: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let pages = numbers.first().copied().unwrap_or(64) * 256;
    let repeats = numbers.get(1).copied().unwrap_or(9);
    println!("{} MiB, {repeats} alternating repeats, medians", pages / 256);
    let orders = numbers.get(2..).filter(|orders| !orders.is_empty());
    for &order in orders.unwrap_or(&[0, 2, 3, 4, 5, 6, 7, 8, 9]) {
        of_order(pages, repeats, Order::new(order as u32)?)?;
    }
    Ok(())
}

fn of_order(pages: usize, repeats: usize, order: Order) -> Result<(), Error> {
    let all: [Box<dyn Run>; 5] = [
        Box::new(FolioOps::<PageMapcount>::new(pages, order)?),
        Box::new(FolioOps::<PageMapcount<PlainPages>>::new(pages, order)?),
        Box::new(FolioOps::<MmOwner>::new(pages, order)?),
        Box::new(FolioOps::<NoPageMapcount>::new(pages, order)?),
        Box::new(FolioOps::<PreciseOwners>::new(pages, order)?),
    ];
    for operation in Operation::ALL {
        let mut times = [const { Vec::new() }; 5];
        let mut locked = Vec::new();
        let mut copied = [0; 5];
        for _ in 0..=repeats {
            locked.push(read_modify_write_ns(now_ns));
            for (index, configuration) in all.iter().enumerate() {
                let sample = configuration.run(operation)?;
                times[index].push(sample.time_ns as f64 / pages as f64);
                copied[index] = sample.copied;
            }
        }
        // The first repeat warms up.
        let medians = times.map(|times| median(&times[1..]));
        show(order, operation, medians, median(&locked[1..]));
        if operation == Operation::ReuseByte {
            show_faults(medians);
        }
        assert!(order == Order::SINGLE || copied[0] == copied[1]);
    }
    Ok(())
}

fn show(order: Order, operation: Operation, ns: [f64; 5], locked_ns: f64) {
    print!("{:>5} KiB {:<17} L {locked_ns:5.2}", 4 << order.get(), operation.name());
    print!("  base {:7.2} ns/page", ns[0]);
    for index in 1..5 {
        let percent = (ns[index] / ns[0] - 1.0) * 100.0;
        let saved = (ns[0] - ns[index]) / locked_ns;
        print!("  {} {percent:+.1}% {saved:+.2} L", NAMES[index]);
    }
    let of_folio = (ns[2] - ns[0]) / locked_ns * order.pages() as f64;
    print!("  MmOwner {of_folio:+.1} L per folio");
    println!();
}

fn show_faults(ns: [f64; 5]) {
    for fault_ns in FAULT_NS {
        let percent = |index: usize| ((ns[index] + fault_ns) / (ns[0] + fault_ns) - 1.0) * 100.0;
        print!("{:>34} ns per fault:", fault_ns);
        println!(" MmOwner {:+.0}%, NoPageMapcount {:+.0}%", percent(2), percent(3));
    }
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
