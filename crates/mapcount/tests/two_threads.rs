//! Two real threads on one folio: no update is lost; throughput and fairness.

use std::sync::Barrier;
use std::time::Instant;

use filemap_mapcount::atomics::NonAtomicPages;
use filemap_mapcount::one_folio::{OneFolio, ROUNDS_PER_CLOCK_READ, RunLimit, ThreadRun, fairness};
use filemap_mapcount::{
    Error, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};

fn order(order: u32) -> Order {
    Order::new(order).expect("tests name orders that exist")
}

/// Runs two threads at the same time and checks that the counters are zero afterwards.
fn run<C: Mapcount>(limit: RunLimit) -> [ThreadRun; 2] {
    let folio = OneFolio::<C>::new(order(4), 2).expect("a large folio and two ids");
    let (begin, start) = (Barrier::new(2), Instant::now());
    let runs = std::thread::scope(|scope| {
        let run = || {
            begin.wait();
            let now_ns = || start.elapsed().as_nanos() as u64;
            folio.run(limit, now_ns).expect("there are two ids")
        };
        let other = scope.spawn(run);
        [run(), other.join().expect("no count is wrong")]
    });
    assert!(folio.remaining().is_zero(), "{:?}", folio.remaining());
    runs
}

/// Prints throughput and fairness with `--nocapture`; they depend on the machine, so only counts
/// are checked.
#[test]
fn two_threads_lose_no_update() {
    let limit = RunLimit::Ns(300_000_000);
    let all = [
        ("PageMapcount", run::<PageMapcount>(limit)),
        ("MmOwner", run::<MmOwner>(limit)),
        ("NoPageMapcount", run::<NoPageMapcount>(limit)),
        ("PreciseOwners", run::<PreciseOwners>(limit)),
    ];
    println!("{:<16}{:>12}{:>12}{:>16}", "", "rounds/ms", "fairness", "longest wait us");
    for (name, runs) in all {
        let per_ms = runs.iter().map(ThreadRun::per_second).sum::<f64>() / 1e3;
        let longest_ns = runs.iter().map(|run| run.longest_ns).max().expect("two threads");
        let fairness = fairness(&runs);
        println!("{name:<16}{per_ms:>12.0}{fairness:>12.2}{:>16}", longest_ns / 1000);
        assert!(runs.iter().all(|run| run.rounds >= ROUNDS_PER_CLOCK_READ && run.time_ns > 0));
        assert!(runs.iter().all(|run| (1..=run.time_ns).contains(&run.longest_ns)));
        assert!((0.0..=1.0).contains(&fairness));
    }
}

#[test]
fn each_thread_runs_its_rounds() {
    for rounds in [0, 1, ROUNDS_PER_CLOCK_READ, 10_000] {
        assert_eq!(run::<MmOwner>(RunLimit::Rounds(rounds)).map(|run| run.rounds), [rounds; 2]);
    }
}

#[test]
fn refuses_a_thread_without_an_id() {
    let folio = OneFolio::<MmOwner>::new(order(1), 1).expect("a large folio and an id");
    // The clock is read while the first run has the only id.
    let mut refused = None;
    let now_ns = || {
        refused.get_or_insert_with(|| folio.run(RunLimit::Rounds(1), || 0));
        0
    };
    assert_eq!(folio.run(RunLimit::Rounds(1), now_ns).map(|run| run.rounds), Ok(1));
    assert_eq!(refused, Some(Err(Error::NoIdLeft { ids: 1 })));
    assert_eq!(OneFolio::<MmOwner>::new(Order::SINGLE, 2).err(), Some(Error::NotLarge));
    assert_eq!(OneFolio::<MmOwner>::new(order(1), 0).err(), Some(Error::Ids(0)));
}

#[test]
fn fairness_compares_the_slowest_thread_with_the_fastest() {
    let run = |rounds, time_ns| ThreadRun { rounds, time_ns, longest_ns: 1 };
    assert_eq!(fairness(&[run(300, 1000), run(100, 1000), run(200, 1000)]), 1.0 / 3.0);
    assert_eq!(fairness(&[run(100, 1000), run(200, 2000)]), 1.0);
    assert_eq!(fairness(&[]), 1.0);
    assert_eq!(run(500, 1_000_000).per_second(), 500_000.0);
}

/// The tests above can fail: non-atomic counts lose updates.
#[test]
fn non_atomic_counts_are_caught() {
    let limit = RunLimit::Ns(300_000_000);
    let lost = || std::panic::catch_unwind(|| run::<MmOwner<NonAtomicPages>>(limit)).is_err();
    assert!((0..20).any(|_| lost()), "two threads never met");
}
