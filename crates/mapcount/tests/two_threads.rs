//! Two real threads on one folio: nothing is lost, and what each of them gets done.

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use filemap_mapcount::atomics::PlainPages;
use filemap_mapcount::{Mapcount, MmId, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners};
use support::{folio, mm};

const TIME: Duration = Duration::from_millis(300);

/// Rounds of mapping and unmapping 16 pages that each of two threads made.
struct Rounds {
    by_thread: [u64; 2],
    time: Duration,
}

impl Rounds {
    fn per_ms(&self) -> f64 {
        self.by_thread.iter().sum::<u64>() as f64 / self.time.as_secs_f64() / 1e3
    }

    /// The slower thread's share of what the faster one did.
    fn fairness(&self) -> f64 {
        let [first, second] = self.by_thread.map(|rounds| rounds as f64);
        first.min(second) / first.max(second)
    }
}

fn run<C: Mapcount>() -> Rounds {
    let folio = folio::<C>(4);
    let (mapped, over, begin) = (AtomicI64::new(0), AtomicBool::new(false), Barrier::new(3));
    let act = |mm: MmId| {
        let (mut rounds, mut pages) = (0, 0);
        begin.wait();
        while !over.load(Ordering::Relaxed) {
            pages += folio.map(mm, 0..16).pages;
            let owned = folio.counts().owned_by(mm);
            assert!(owned.is_none_or(|mappings| mappings == 16));
            pages += folio.unmap(mm, 0..16).pages;
            rounds += 1;
        }
        mapped.fetch_add(pages, Ordering::Relaxed);
        rounds
    };
    let (by_thread, time) = std::thread::scope(|scope| {
        let threads = [mm(1), mm(2)].map(|mm| scope.spawn(move || act(mm)));
        begin.wait();
        let start = Instant::now();
        std::thread::sleep(TIME);
        over.store(true, Ordering::Relaxed);
        let rounds = threads.map(|thread| thread.join().expect("no count is wrong"));
        (rounds, start.elapsed())
    });
    assert_eq!(folio.counts().mappings(), 0);
    assert_eq!(mapped.into_inner(), 0);
    assert!((0..16).all(|page| folio.page_mappings(page) == 0));
    assert!(!folio.counts().maybe_shared());
    Rounds { by_thread, time }
}

/// Prints throughput and fairness, with `--nocapture`. They depend on the machine, so only the
/// counts are checked.
#[test]
fn two_threads_lose_nothing() {
    let all = [
        ("PageMapcount", run::<PageMapcount>()),
        ("MmOwner", run::<MmOwner>()),
        ("NoPageMapcount", run::<NoPageMapcount>()),
        ("PreciseOwners", run::<PreciseOwners>()),
    ];
    println!("{:<16}{:>12}{:>12}", "", "rounds/ms", "fairness");
    for (name, rounds) in all {
        println!("{name:<16}{:>12.0}{:>12.2}", rounds.per_ms(), rounds.fairness());
    }
}

/// What the test above would find: plain counts lose updates.
#[test]
fn counts_that_are_not_atomic_are_caught() {
    let lost = || std::panic::catch_unwind(run::<MmOwner<PlainPages>>).is_err();
    assert!((0..20).any(|_| lost()), "two threads never met");
}
