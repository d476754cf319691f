//! One folio that several threads map and unmap at the same time: what each thread runs.
//!
//! ```
//! use filemap_mapcount::one_folio::{OneFolio, RunLimit, fairness};
//! use filemap_mapcount::{MmOwner, Order};
//!
//! let folio = OneFolio::<MmOwner>::new(Order::new(4)?, 2)?;
//! let runs = std::thread::scope(|scope| {
//!     let run = || folio.run(RunLimit::Rounds(1000), || 0).expect("there are two ids");
//!     let threads = [scope.spawn(run), scope.spawn(run)];
//!     threads.map(|thread| thread.join().expect("no count is wrong"))
//! });
//! assert_eq!(runs.map(|run| run.rounds), [1000, 1000]);
//! assert!(folio.remaining().is_zero());
//! # let _ = fairness(&runs);
//! # Ok::<(), filemap_mapcount::Error>(())
//! ```

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use crate::error::Error;
use crate::folio::{Folio, Order};
use crate::mapcount::Mapcount;
use crate::mm_id::MmIds;

/// A folio, the ids of the threads, and a sum of the pages that they mapped.
pub struct OneFolio<C: Mapcount> {
    folio: Folio<C>,
    ids: MmIds,
    mapped: AtomicI64,
}

/// When a thread stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLimit {
    /// After this many rounds.
    Rounds(u64),
    /// After this many nanoseconds of the caller's clock and the rounds that are timed together.
    Ns(u64),
}

/// Result of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadRun {
    /// Rounds: all pages are mapped, the owner is queried, and all pages are unmapped.
    pub rounds: u64,
    /// Time of all rounds.
    pub time_ns: u64,
    /// Longest time of [`ROUNDS_PER_CLOCK_READ`] rounds.
    pub longest_ns: u64,
}

/// The counters after the threads have ended, all of them zero if no update was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingCounts {
    /// Mappings of the folio.
    pub mappings: u32,
    /// Pages whose own count is not 0.
    pub pages: usize,
    /// Sum of the changes in mapped pages.
    pub mapped_pages: i64,
    /// Whether the folio is marked as shared.
    pub shared: bool,
}

/// Rounds between two reads of the clock, which would otherwise take part of the time.
pub const ROUNDS_PER_CLOCK_READ: u64 = 16;

impl<C: Mapcount> OneFolio<C> {
    /// A folio for this many threads.
    ///
    /// # Errors
    /// When the folio is not large, or there are not enough ids.
    pub fn new(order: Order, threads: u32) -> Result<OneFolio<C>, Error> {
        let (folio, ids) = (Folio::new(order)?, MmIds::new(threads)?);
        Ok(OneFolio { folio, ids, mapped: AtomicI64::new(0) })
    }

    /// Runs the calling thread's rounds, as an mm of its own.
    ///
    /// # Errors
    /// When more threads run at a time than there are ids.
    ///
    /// # Panics
    /// When a count is wrong.
    pub fn run(
        &self,
        limit: RunLimit,
        mut now_ns: impl FnMut() -> u64,
    ) -> Result<ThreadRun, Error> {
        let mm = self.ids.allocate()?;
        let pages = self.folio.order().pages();
        let mut run = ThreadRun { rounds: 0, time_ns: 0, longest_ns: 0 };
        let mut mapped = 0;
        let start = now_ns();
        loop {
            let rounds = match limit {
                RunLimit::Rounds(rounds) => (rounds - run.rounds).min(ROUNDS_PER_CLOCK_READ),
                RunLimit::Ns(ns) if run.time_ns < ns => ROUNDS_PER_CLOCK_READ,
                RunLimit::Ns(_) => 0,
            };
            if rounds == 0 {
                break;
            }
            for _ in 0..rounds {
                mapped += self.folio.map(mm, 0..pages);
                let owned = self.folio.counts().owned_by(mm);
                assert!(owned.is_none_or(|mappings| mappings as usize == pages));
                mapped += self.folio.unmap(mm, 0..pages);
            }
            let time_ns = now_ns() - start;
            run.rounds += rounds;
            run.longest_ns = run.longest_ns.max(time_ns - run.time_ns);
            run.time_ns = time_ns;
        }
        self.mapped.fetch_add(mapped, Relaxed);
        self.ids.release(mm);
        Ok(run)
    }

    /// The counters. Call it after the threads have ended.
    pub fn remaining(&self) -> RemainingCounts {
        let pages = 0..self.folio.order().pages();
        RemainingCounts {
            mappings: self.folio.counts().mappings(),
            pages: pages.filter(|&page| self.folio.page_mappings(page) > Some(0)).count(),
            mapped_pages: self.mapped.load(Relaxed),
            shared: self.folio.counts().maybe_shared(),
        }
    }
}

impl ThreadRun {
    /// Rounds in a second.
    pub fn per_second(&self) -> f64 {
        self.rounds as f64 * 1e9 / self.time_ns.max(1) as f64
    }
}

impl RemainingCounts {
    /// Whether no update was lost.
    pub fn is_zero(&self) -> bool {
        *self == RemainingCounts { mappings: 0, pages: 0, mapped_pages: 0, shared: false }
    }
}

/// Rounds per second of the slowest thread divided by the fastest thread's: 1 is fair.
pub fn fairness(runs: &[ThreadRun]) -> f64 {
    let fold = |pick: fn(f64, f64) -> f64| runs.iter().map(ThreadRun::per_second).reduce(pick);
    fold(f64::min).zip(fold(f64::max)).map_or(1.0, |(slowest, fastest)| slowest / fastest)
}
