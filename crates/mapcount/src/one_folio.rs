//! One folio that several threads map and unmap at the same time: what each of them runs.
//!
//! ```
//! use filemap_mapcount::one_folio::{OneFolio, Until, fairness};
//! use filemap_mapcount::{MmOwner, Order};
//!
//! let folio = OneFolio::<MmOwner>::new(Order::new(4)?, 2)?;
//! let runs = std::thread::scope(|scope| {
//!     let run = || folio.run(Until::Rounds(1000), || 0).expect("there are two ids");
//!     let threads = [scope.spawn(run), scope.spawn(run)];
//!     threads.map(|thread| thread.join().expect("no count is wrong"))
//! });
//! assert_eq!(runs.map(|run| run.rounds), [1000, 1000]);
//! assert!(folio.left().is_nothing());
//! # let _ = fairness(&runs);
//! # Ok::<(), filemap_mapcount::Error>(())
//! ```

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use crate::error::Error;
use crate::folio::Folio;
use crate::mapcount::Mapcount;
use crate::mm_id::MmIds;
use crate::order::Order;

/// A folio, the ids of those who map it, and what they counted.
pub struct OneFolio<C: Mapcount> {
    folio: Folio<C>,
    ids: MmIds,
    mapped: AtomicI64,
}

/// How long a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// So many rounds.
    Rounds(u64),
    /// So many nanoseconds, by the caller's clock, to the end of the rounds that are timed
    /// together.
    Ns(u64),
}

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Rounds: all pages of the folio mapped, its owner asked for, and all pages unmapped.
    pub rounds: u64,
    /// The time of all rounds.
    pub time_ns: u64,
    /// The longest time that [`ROUNDS_AT_A_TIME`] rounds took.
    pub longest_ns: u64,
}

/// What is left in the counters, which should be nothing when nobody maps the folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Mappings of the folio.
    pub mappings: u32,
    /// Pages with mappings of their own.
    pub pages: usize,
    /// Pages that statistics say are mapped.
    pub statistics: i64,
    /// Whether the folio counts as shared.
    pub shared: bool,
}

/// Rounds between two looks at the clock, which would otherwise take part of the time.
pub const ROUNDS_AT_A_TIME: u64 = 16;

impl<C: Mapcount> OneFolio<C> {
    /// A folio for so many `threads`.
    ///
    /// # Errors
    /// When the folio would not be large, or there are not as many ids.
    pub fn new(order: Order, threads: u32) -> Result<OneFolio<C>, Error> {
        let (folio, ids) = (Folio::new(order)?, MmIds::new(threads)?);
        Ok(OneFolio { folio, ids, mapped: AtomicI64::new(0) })
    }

    /// What one thread runs, as an mm of its own.
    ///
    /// # Errors
    /// When more threads run at a time than there are ids.
    ///
    /// # Panics
    /// When a count is wrong.
    pub fn run(&self, until: Until, mut now_ns: impl FnMut() -> u64) -> Result<Run, Error> {
        let mm = self.ids.allocate()?;
        let all = self.folio.order().pages();
        let mut run = Run { rounds: 0, time_ns: 0, longest_ns: 0 };
        let mut mapped = 0;
        let start = now_ns();
        loop {
            let rounds = match until {
                Until::Rounds(rounds) => (rounds - run.rounds).min(ROUNDS_AT_A_TIME),
                Until::Ns(ns) if run.time_ns < ns => ROUNDS_AT_A_TIME,
                Until::Ns(_) => 0,
            };
            if rounds == 0 {
                break;
            }
            for _ in 0..rounds {
                mapped += self.folio.map(mm, 0..all).pages;
                let owned = self.folio.counts().owned_by(mm);
                assert!(owned.is_none_or(|mappings| mappings as usize == all));
                mapped += self.folio.unmap(mm, 0..all).pages;
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

    /// What is left when the threads have ended.
    pub fn left(&self) -> Left {
        let pages = 0..self.folio.order().pages();
        Left {
            mappings: self.folio.counts().mappings(),
            pages: pages.filter(|&page| self.folio.page_mappings(page) > 0).count(),
            statistics: self.mapped.load(Relaxed),
            shared: self.folio.counts().maybe_shared(),
        }
    }
}

impl Run {
    /// Rounds in a second.
    pub fn per_second(&self) -> f64 {
        self.rounds as f64 * 1e9 / self.time_ns.max(1) as f64
    }
}

impl Left {
    /// Whether all counters are 0, as they should be.
    pub fn is_nothing(&self) -> bool {
        *self == Left { mappings: 0, pages: 0, statistics: 0, shared: false }
    }
}

/// The slowest thread's rounds in a second, as a part of the fastest one's: 1 is fair.
pub fn fairness(runs: &[Run]) -> f64 {
    let fold = |pick: fn(f64, f64) -> f64| runs.iter().map(Run::per_second).reduce(pick);
    fold(f64::min).zip(fold(f64::max)).map_or(1.0, |(slowest, fastest)| slowest / fastest)
}
