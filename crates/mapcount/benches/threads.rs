//! Threads at the same time: children that copy a parent's pages, and mms on one folio.
//!
//! `cargo bench -p filemap-mapcount --bench threads -- 64 9 2` takes the MiB of memory, the repeats
//! and the threads; without numbers they are 64, 9 and 2. Configurations alternate in one run, in
//! memory that they share. Children are timed by the CPU time of their threads, as other programs
//! take time too. On one folio waiting is what counts, so the clock goes on there.

mod support;

use std::sync::{Arc, Barrier};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use filemap_mapcount::anon_cow::{AnonCow, Child, Pattern};
use filemap_mapcount::mm::Contents;
use filemap_mapcount::one_folio::{OneFolio, Run, Until, fairness};
use filemap_mapcount::{
    Error, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use support::clock::{now_ns, thread_cpu_ns};
use support::{huge_pages, median, numbers, refuse};

const NAMES: [&str; 4] = ["PageMapcount", "MmOwner", "NoPageMapcount", "PreciseOwners"];

/// Of the orders in which children write at random.
const SEED: u64 = 1;

/// How long threads meet on one folio.
const ONE_FOLIO_NS: u64 = 100_000_000;

fn main() {
    let numbers = numbers();
    let number = |index: usize, usual| numbers.get(index).copied().unwrap_or(usual);
    let (pages, repeats, threads) = (number(0, 64) * 256, number(1, 9), number(2, 2));
    if pages == 0 || repeats == 0 || threads == 0 {
        refuse("0 MiB, repeats or threads measure nothing; give at least 1 of each: 64 9 2");
    }
    for order in [2, 4, 9] {
        let order = Order::new(order);
        let done = order.and_then(|order| of_order(pages, repeats, threads, order));
        done.unwrap_or_else(|error| refuse(&error.to_string()));
    }
}

fn of_order(pages: usize, repeats: usize, threads: usize, order: Order) -> Result<(), Error> {
    let needed = AnonCow::<MmOwner>::memory_pages(pages, threads);
    let contents = Arc::new(Contents::new(needed, &mut huge_pages)?);
    let copy: [&dyn Fn(Pattern) -> Result<f64, Error>; 4] = [
        &|pattern| copies::<PageMapcount>(&contents, pages, order, threads, pattern),
        &|pattern| copies::<MmOwner>(&contents, pages, order, threads, pattern),
        &|pattern| copies::<NoPageMapcount>(&contents, pages, order, threads, pattern),
        &|pattern| copies::<PreciseOwners>(&contents, pages, order, threads, pattern),
    ];
    for pattern in Pattern::ALL {
        let rounds = alternate(repeats, &copy, |copy| copy(pattern))?;
        print!("{:>5} KiB {:<14}", 4 << order.get(), pattern.name());
        let ns = |index: usize| median(&rounds.iter().map(|ns| ns[index]).collect::<Vec<_>>());
        print!("  base {:7.2} ns/page", ns(0));
        for (index, name) in NAMES.iter().enumerate().skip(1) {
            let more = rounds.iter().map(|ns| (ns[0] / ns[index] - 1.0) * 100.0);
            print!("  {name} {:+.1}% throughput", median(&more.collect::<Vec<_>>()));
        }
        println!();
    }
    let meet: [&dyn Fn() -> Result<[f64; 3], Error>; 4] = [
        &|| one_folio::<PageMapcount>(order, threads),
        &|| one_folio::<MmOwner>(order, threads),
        &|| one_folio::<NoPageMapcount>(order, threads),
        &|| one_folio::<PreciseOwners>(order, threads),
    ];
    let rounds = alternate(repeats, &meet, |meet| meet())?;
    for (index, name) in NAMES.iter().enumerate() {
        let of = |figure: usize| {
            median(&rounds.iter().map(|round| round[index][figure]).collect::<Vec<_>>())
        };
        print!("{:>5} KiB one folio, {name:<15}", 4 << order.get());
        print!("{:9.0} rounds/ms of all threads, fairness {:.2}", of(0), of(1));
        println!(", longest wait {:.0} us", of(2));
    }
    Ok(())
}

/// Figures of all configurations, repeated. The first round warms up.
fn alternate<F, T: Copy + Default>(
    repeats: usize,
    all: &[F; 4],
    figure: impl Fn(&F) -> Result<T, Error>,
) -> Result<Vec<[T; 4]>, Error> {
    let mut rounds = Vec::new();
    for round in 0..=repeats {
        let mut figures = [T::default(); 4];
        for step in 0..all.len() {
            let index = if round % 2 == 0 { step } else { all.len() - 1 - step };
            figures[index] = figure(&all[index])?;
        }
        rounds.push(figures);
    }
    Ok(rounds.split_off(1))
}

/// Nanoseconds of CPU time per page, of the slowest child.
fn copies<C: Mapcount>(
    contents: &Arc<Contents>,
    pages: usize,
    order: Order,
    threads: usize,
    pattern: Pattern,
) -> Result<f64, Error> {
    let mut cow = AnonCow::<C>::with(contents, pages, order, threads, &mut huge_pages)?;
    let children = cow.children(pattern, SEED)?;
    let begin = Barrier::new(threads);
    let times = std::thread::scope(|scope| {
        let run = |mut child: Child<C>| {
            let begin = &begin;
            start(scope, threads, move || {
                begin.wait();
                (child.run(thread_cpu_ns), child)
            })
        };
        let started: Vec<_> = children.into_iter().map(run).collect();
        let ends = started.into_iter().map(|thread| thread.join().expect("no count is wrong"));
        // No child ends before the last has written.
        let (samples, _children): (Vec<_>, Vec<_>) = ends.unzip();
        let times = samples.into_iter().map(|sample| sample.map(|sample| sample.time_ns));
        times.collect::<Result<Vec<_>, _>>()
    })?;
    Ok(times.into_iter().max().unwrap_or(0) as f64 / pages as f64)
}

/// Starts one of `threads` threads. Where there cannot be as many it ends the program, as those
/// that are there wait for the missing ones.
fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    threads: usize,
    body: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    Builder::new().spawn_scoped(scope, body).unwrap_or_else(|error| {
        refuse(&format!("{threads} threads at once cannot be started: {error}; give fewer"))
    })
}

/// Rounds in a millisecond, fairness, and the longest wait in microseconds.
fn one_folio<C: Mapcount>(order: Order, threads: usize) -> Result<[f64; 3], Error> {
    let folio = OneFolio::<C>::new(order, u32::try_from(threads).unwrap_or(u32::MAX))?;
    let begin = Barrier::new(threads);
    let runs = std::thread::scope(|scope| {
        let run = |_| {
            start(scope, threads, || {
                begin.wait();
                folio.run(Until::Ns(ONE_FOLIO_NS), now_ns)
            })
        };
        let started: Vec<_> = (0..threads).map(run).collect();
        let ends = started.into_iter().map(|thread| thread.join().expect("no count is wrong"));
        ends.collect::<Result<Vec<_>, _>>()
    })?;
    assert!(folio.left().is_nothing(), "a count was lost");
    let per_ms = runs.iter().map(Run::per_second).sum::<f64>() / 1e3;
    let longest_ns = runs.iter().map(|run| run.longest_ns).max().unwrap_or(0);
    Ok([per_ms, fairness(&runs), longest_ns as f64 / 1e3])
}
