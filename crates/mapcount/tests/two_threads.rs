//! Two real threads on one folio: nothing is lost, and what each of them gets done.

use std::sync::Barrier;
use std::time::Instant;

use filemap_mapcount::atomics::PlainPages;
use filemap_mapcount::one_folio::{OneFolio, ROUNDS_AT_A_TIME, Run, Until, fairness};
use filemap_mapcount::{
    Error, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};

fn order(order: u32) -> Order {
    Order::new(order).expect("tests name orders that exist")
}

/// What two threads did at the same time. Nothing is left in the counters.
fn run<C: Mapcount>(until: Until) -> [Run; 2] {
    let folio = OneFolio::<C>::new(order(4), 2).expect("a large folio and two ids");
    let (begin, start) = (Barrier::new(2), Instant::now());
    let runs = std::thread::scope(|scope| {
        let run = || {
            begin.wait();
            let now_ns = || start.elapsed().as_nanos() as u64;
            folio.run(until, now_ns).expect("there are two ids")
        };
        // Where it cannot be started, nobody waits for it yet.
        let other = scope.spawn(run);
        [run(), other.join().expect("no count is wrong")]
    });
    assert!(folio.left().is_nothing(), "{:?}", folio.left());
    runs
}

/// Prints throughput and fairness, with `--nocapture`. They depend on the machine, so only the
/// counts are checked.
#[test]
fn two_threads_lose_nothing() {
    let until = Until::Ns(300_000_000);
    let all = [
        ("PageMapcount", run::<PageMapcount>(until)),
        ("MmOwner", run::<MmOwner>(until)),
        ("NoPageMapcount", run::<NoPageMapcount>(until)),
        ("PreciseOwners", run::<PreciseOwners>(until)),
    ];
    println!("{:<16}{:>12}{:>12}{:>16}", "", "rounds/ms", "fairness", "longest wait us");
    for (name, runs) in all {
        let per_ms = runs.iter().map(Run::per_second).sum::<f64>() / 1e3;
        let longest_ns = runs.iter().map(|run| run.longest_ns).max().expect("two threads");
        let fairness = fairness(&runs);
        println!("{name:<16}{per_ms:>12.0}{fairness:>12.2}{:>16}", longest_ns / 1000);
        assert!(runs.iter().all(|run| run.rounds >= ROUNDS_AT_A_TIME && run.time_ns > 0));
        assert!(runs.iter().all(|run| (1..=run.time_ns).contains(&run.longest_ns)));
        assert!((0.0..=1.0).contains(&fairness));
    }
}

#[test]
fn each_thread_makes_its_rounds() {
    for rounds in [0, 1, ROUNDS_AT_A_TIME, 10_000] {
        assert_eq!(run::<MmOwner>(Until::Rounds(rounds)).map(|run| run.rounds), [rounds; 2]);
    }
}

#[test]
fn a_thread_without_an_id_is_refused() {
    let folio = OneFolio::<MmOwner>::new(order(1), 1).expect("a large folio and an id");
    // The clock is read while the first thread has the only id.
    let mut refused = None;
    let now_ns = || {
        refused.get_or_insert_with(|| folio.run(Until::Rounds(1), || 0));
        0
    };
    assert_eq!(folio.run(Until::Rounds(1), now_ns).map(|run| run.rounds), Ok(1));
    assert_eq!(refused, Some(Err(Error::NoIdLeft { ids: 1 })));
    assert_eq!(OneFolio::<MmOwner>::new(Order::SINGLE, 2).err(), Some(Error::NotLarge));
    assert_eq!(OneFolio::<MmOwner>::new(order(1), 0).err(), Some(Error::Ids(0)));
}

#[test]
fn the_slowest_thread_is_compared_with_the_fastest() {
    let of = |rounds, time_ns| Run { rounds, time_ns, longest_ns: 1 };
    assert_eq!(fairness(&[of(300, 1000), of(100, 1000), of(200, 1000)]), 1.0 / 3.0);
    assert_eq!(fairness(&[of(100, 1000), of(200, 2000)]), 1.0);
    assert_eq!(fairness(&[]), 1.0);
    assert_eq!(of(500, 1_000_000).per_second(), 500_000.0);
}

/// What the tests above would find: plain counts lose updates.
#[test]
fn counts_that_are_not_atomic_are_caught() {
    let until = Until::Ns(300_000_000);
    let lost = || std::panic::catch_unwind(|| run::<MmOwner<PlainPages>>(until)).is_err();
    assert!((0..20).any(|_| lost()), "two threads never met");
}
