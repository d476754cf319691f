//! Threads that map and unmap one folio at once, and what each of them gets done.

use std::thread::Builder;

use filemap_job::FolioOpsRun;
use filemap_job::folio_ops::{
    Contended, MM_OWNER, NO_PAGE_MAPCOUNT, PAGE_MAPCOUNT, PRECISE_OWNERS,
};
use filemap_kernel::clock::now_ns;
use filemap_mapcount::one_folio::{OneFolio, ROUNDS_AT_A_TIME, Run, Until};
use filemap_mapcount::{Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners};

use super::at_once::at_once;
use super::take_turns;
use crate::error::Error;

/// As many as two CPUs run at once.
pub const THREADS: usize = 2;

/// How long they go on, in nanoseconds.
const TIME_NS: u64 = 20_000_000;

/// Mappings and unmappings of a round.
const BATCHES: u64 = 2;

/// What threads of one way to count did.
type Runs = fn(Order) -> Result<Vec<Run>, Error>;

/// The ways to count that threads may share. Counts that are not atomic lose updates.
const WAYS: [(&str, Runs); 4] = [
    (PAGE_MAPCOUNT, runs::<PageMapcount>),
    (MM_OWNER, runs::<MmOwner>),
    (NO_PAGE_MAPCOUNT, runs::<NoPageMapcount>),
    (PRECISE_OWNERS, runs::<PreciseOwners>),
];

/// Adds to each of `runs` what threads get done on a folio of this size and order.
pub fn time((folio_bytes, order): (u64, Order), runs: &mut [FolioOpsRun]) -> Result<(), Error> {
    for (turn, run) in runs.iter_mut().enumerate() {
        let done = take_turns(turn, WAYS.len(), |way| WAYS[way].1(order))?;
        let named = WAYS.into_iter().zip(done);
        run.contended.extend(named.map(|((counters, _), runs)| Contended {
            folio_bytes,
            counters: counters.to_string(),
            batches_per_second: runs.iter().map(|run| run.per_second() * BATCHES as f64).collect(),
            wait_batches: ROUNDS_AT_A_TIME * BATCHES,
            longest_wait_ns: runs.iter().map(|run| run.longest_ns).max(),
        }));
    }
    Ok(())
}

/// What each thread did. Afterwards no count is lost.
fn runs<C: Mapcount>(order: Order) -> Result<Vec<Run>, Error> {
    let folio = OneFolio::<C>::new(order, THREADS as u32)?;
    let bodies = vec![|| folio.run(Until::Ns(TIME_NS), now_ns); THREADS];
    let runs = at_once(bodies, Builder::new)?.into_iter().collect::<Result<Vec<Run>, _>>()?;
    assert!(folio.left().is_nothing(), "threads on one folio lost a count");
    Ok(runs)
}
