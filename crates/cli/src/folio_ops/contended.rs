//! Threads that map and unmap one folio at once, and what each of them gets done.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use filemap_job::folio_ops::{
    Contended, MM_OWNER, NO_PAGE_MAPCOUNT, PAGE_BYTES, PAGE_MAPCOUNT, PRECISE_OWNERS,
};
use filemap_mapcount::{
    Folio, Mapcount, MmId, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};

use super::order_of;
use crate::error::Error;

/// As many as two CPUs run at once.
pub const THREADS: usize = 2;

/// How long they go on.
const TIME: Duration = Duration::from_millis(20);

/// What they get done with each way to count that threads may share, in a folio of this size; a
/// folio of one page has no owners. Counts that are not atomic lose updates.
///
/// # Errors
/// When there are no such folios, which no valid job asks for.
pub fn all(folio_bytes: u64) -> Result<Vec<Contended>, Error> {
    if folio_bytes == PAGE_BYTES {
        return Ok(Vec::new());
    }
    let order = order_of(folio_bytes)?;
    let batches = [
        (PAGE_MAPCOUNT, batches_per_second::<PageMapcount>(order)?),
        (MM_OWNER, batches_per_second::<MmOwner>(order)?),
        (NO_PAGE_MAPCOUNT, batches_per_second::<NoPageMapcount>(order)?),
        (PRECISE_OWNERS, batches_per_second::<PreciseOwners>(order)?),
    ];
    let contended = batches.into_iter().map(|(counters, batches_per_second)| Contended {
        folio_bytes,
        counters: counters.to_string(),
        batches_per_second,
        longest_wait_ns: None,
    });
    Ok(contended.collect())
}

/// Batches of all pages that each thread maps or unmaps in a second. No count is lost: afterwards
/// the folio has no mapping left.
fn batches_per_second<C: Mapcount>(order: Order) -> Result<Vec<f64>, Error> {
    let folio = Folio::<C>::new(order)?;
    let (mapped, over, begin) =
        (AtomicI64::new(0), AtomicBool::new(false), Barrier::new(THREADS + 1));
    let act = |mm: MmId| {
        let pages = 0..order.pages();
        let (mut batches, mut change) = (0_u64, 0);
        begin.wait();
        while !over.load(Ordering::Relaxed) {
            change += folio.map(mm, pages.clone()).pages;
            change += folio.unmap(mm, pages.clone()).pages;
            batches += 2;
        }
        mapped.fetch_add(change, Ordering::Relaxed);
        batches
    };
    let mms = (1..=THREADS as u32).map(MmId::new).collect::<Result<Vec<_>, _>>()?;
    let (batches, time) = thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> = mms.into_iter().map(|mm| scope.spawn(move || act(mm))).collect();
        begin.wait();
        let start = Instant::now();
        thread::sleep(TIME);
        over.store(true, Ordering::Relaxed);
        let batches = threads.into_iter().map(|thread| thread.join().expect("no count is wrong"));
        (batches.collect::<Vec<u64>>(), start.elapsed())
    });
    let left = (folio.counts().mappings(), mapped.into_inner());
    assert_eq!(left, (0, 0), "two threads lost a count");
    Ok(batches.into_iter().map(|batches| batches as f64 / time.as_secs_f64()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_gets_something_done() {
        assert_eq!(all(PAGE_BYTES).unwrap(), []);
        let all = all(16 << 10).unwrap();
        assert_eq!(all.len(), 4);
        for of in all {
            assert_eq!(of.batches_per_second.len(), THREADS, "{of:?}");
            assert!(of.batches_per_second.iter().sum::<f64>() > 0.0, "{of:?}");
        }
    }
}
