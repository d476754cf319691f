//! Runs operations over anonymous memory in the small mm of `filemap-mapcount`, with real memory,
//! real atomics and real time.

mod memory_budget;
mod threads;

use std::sync::Arc;

use filemap_job::folio_ops::{FolioOpsSample, Operation, PAGE_BYTES, SCHEMES};
use filemap_job::{EngineKind, FolioOps, FolioOpsRecord, FolioOpsRun};
use filemap_kernel::clock::thread_cpu_ns;
use filemap_kernel::engine::{available_bytes, host_environment};
use filemap_kernel::huge_pages::advise_huge_pages;
use filemap_mapcount::atomics::NonAtomicPages;
use filemap_mapcount::folio_ops::{self, Sample, contents, read_modify_write_ns};
use filemap_mapcount::mm::Contents;
use filemap_mapcount::{
    Error as MapcountError, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use serde_json::{Map, Value};

pub use self::memory_budget::SizeSource;
use crate::engine::Progress;
use crate::error::Error;
use crate::provenance;

/// Number of schemes.
const SCHEME_COUNT: usize = SCHEMES.len();

/// The size of folios in bytes, and an operation.
type TimedOperation = (u64, Operation);

/// Checks that enough memory is available.
///
/// # Errors
/// There is not enough; the remedy depends on the source of the size.
pub fn check_memory(job: &FolioOps, source: SizeSource) -> Result<(), Error> {
    memory_budget::check(job, source, cpus(), available_bytes())
}

/// Measures `job`, with all schemes in turn. `progress` gets the number of operations.
///
/// # Errors
/// As [`check_memory`], and when a thread cannot be started.
pub fn measure(
    job: &FolioOps,
    source: SizeSource,
    progress: impl FnOnce(u64) -> Box<dyn Progress>,
) -> Result<FolioOpsRecord, Error> {
    check_memory(job, source)?;
    let cpus = cpus();
    let progress = progress((job.folio_bytes.len() * Operation::ALL.len()) as u64);
    let mut runs = vec![FolioOpsRun::default(); job.runs as usize];
    for &folio_bytes in &job.folio_bytes {
        let order = folio_order(folio_bytes)?;
        let schemes = schemes(job, order)?;
        for operation in Operation::SINGLE_THREADED {
            time(&schemes, job, (folio_bytes, operation), &mut runs)?;
            progress.advance();
        }
        // Frees its memory for the next one.
        drop(schemes);
        for operation in [Operation::AnonCowSeq, Operation::AnonCowRand] {
            threads::time_children(job, (folio_bytes, operation), cpus, &mut runs)?;
            progress.advance();
        }
    }
    // L is measured once for each operation and repeated in the samples of all schemes.
    for run in &mut runs {
        let mut locked: Vec<f64> = run.cells.iter().filter_map(|sample| sample.locked_ns).collect();
        locked.sort_unstable_by(f64::total_cmp);
        run.locked_ns = locked.get(locked.len() / 2).copied();
    }
    let mut environment = environment();
    provenance::stamp(&mut environment, EngineKind::Model.name());
    Ok(FolioOpsRecord::new(job, environment, runs))
}

/// CPUs that this process may use, which is the number of children.
fn cpus() -> usize {
    usize::try_from(filemap_kernel::probe::cpus::allowed_cpus()).unwrap_or(1)
}

/// Runs an operation with one scheme.
type RunOperation = Box<dyn Fn(folio_ops::Operation) -> Result<Sample, MapcountError>>;

/// All schemes, in the same memory and the order of [`SCHEMES`].
fn schemes(job: &FolioOps, order: Order) -> Result<[RunOperation; SCHEME_COUNT], Error> {
    let pages = memory_budget::pages(job)?;
    let contents = contents(pages, &mut advise_huge_pages)?;
    Ok([
        scheme::<PageMapcount>(&contents, pages, order)?,
        scheme::<PageMapcount<NonAtomicPages>>(&contents, pages, order)?,
        scheme::<MmOwner>(&contents, pages, order)?,
        scheme::<NoPageMapcount>(&contents, pages, order)?,
        scheme::<PreciseOwners>(&contents, pages, order)?,
    ])
}

fn scheme<C: Mapcount + 'static>(
    contents: &Arc<Contents>,
    pages: usize,
    order: Order,
) -> Result<RunOperation, Error> {
    let ops = folio_ops::FolioOps::<C>::new(contents, pages, order, &mut advise_huge_pages)?;
    Ok(Box::new(move |operation| ops.run(operation, thread_cpu_ns)))
}

/// The order of folios of this size.
///
/// # Errors
/// No order has this size, which cannot happen for a valid job.
fn folio_order(folio_bytes: u64) -> Result<Order, Error> {
    Ok(Order::new((folio_bytes / PAGE_BYTES).ilog2())?)
}

/// Times one operation with each scheme in turn, once to warm up and once for each of `runs`.
fn time(
    schemes: &[RunOperation; SCHEME_COUNT],
    job: &FolioOps,
    timed: TimedOperation,
    runs: &mut [FolioOpsRun],
) -> Result<(), Error> {
    for turn in 0..=runs.len() {
        let locked_ns = read_modify_write_ns(thread_cpu_ns);
        let operation = mapcount_operation(timed.1);
        let samples = alternate(turn, SCHEME_COUNT, |at| Ok(schemes[at](operation)?))?;
        let Some(run) = turn.checked_sub(1).map(|at| &mut runs[at]) else { continue };
        run.cells.extend(SCHEMES.into_iter().zip(samples).map(|(name, own)| FolioOpsSample {
            locked_ns: Some(locked_ns),
            ..sample(timed, name, &[own], job.pages())
        }));
    }
    Ok(())
}

/// The sum of `samples` of one scheme, each of which is about `pages` pages.
fn sample(
    (folio_bytes, operation): TimedOperation,
    counters: &str,
    samples: &[Sample],
    pages: u64,
) -> FolioOpsSample {
    let sum = |field: fn(&Sample) -> u64| samples.iter().map(field).sum::<u64>();
    FolioOpsSample {
        folio_bytes,
        operation,
        counters: counters.to_string(),
        ns_per_page: sum(|sample| sample.time_ns) as f64 / (pages * samples.len() as u64) as f64,
        copied: operation.writes().then(|| sum(|sample| sample.copied as u64)),
        reused: operation.writes().then(|| sum(|sample| sample.reused as u64)),
        locked_ns: None,
    }
}

/// Calls `act` for each of `count` schemes and returns the results in their order. Every other turn
/// goes backwards, since each scheme finds the caches as its predecessor left them.
fn alternate<T>(
    turn: usize,
    count: usize,
    act: impl FnMut(usize) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    if turn.is_multiple_of(2) {
        return (0..count).map(act).collect();
    }
    let mut results = (0..count).rev().map(act).collect::<Result<Vec<_>, _>>()?;
    results.reverse();
    Ok(results)
}

fn mapcount_operation(operation: Operation) -> folio_ops::Operation {
    let same = folio_ops::Operation::ALL.into_iter().find(|own| own.name() == operation.name());
    same.expect("the small mm has every operation of one thread")
}

/// The environment of the record.
fn environment() -> Map<String, Value> {
    let scope = "real atomics in real time, in a small mm for anonymous memory; no TLB, no \
                 interrupts of other CPUs, no NUMA, no swap";
    let mut environment = host_environment();
    // The running kernel is not involved.
    environment.retain(|key, _| ["cpu", "cores", "ram_kib", "load", "thp"].contains(&key.as_str()));
    environment.insert("scope".to_string(), scope.into());
    environment
}

#[cfg(test)]
mod tests {
    use filemap_job::folio_ops::PMD_BYTES;
    use filemap_job::{FolioOpsSpec, SizeText};

    use super::*;
    use crate::engine::Engines;
    use crate::engine::mock::Mock;

    #[test]
    fn maps_every_single_threaded_operation() {
        for operation in Operation::SINGLE_THREADED {
            assert_eq!(mapcount_operation(operation).name(), operation.name());
        }
        assert_eq!(folio_order(4096).unwrap(), Order::SINGLE);
        assert_eq!(folio_order(PMD_BYTES).unwrap(), Order::PMD);
    }

    #[test]
    fn every_other_turn_goes_backwards() {
        for (turn, order) in [(0, [0, 1, 2]), (1, [2, 1, 0])] {
            let mut taken = Vec::new();
            let results = alternate(turn, 3, |at| {
                taken.push(at);
                Ok(at)
            });
            assert_eq!((taken, results.unwrap()), (order.to_vec(), vec![0, 1, 2]));
        }
    }

    #[test]
    fn every_repeat_has_every_cell_once() {
        let spec = FolioOpsSpec {
            size: Some(SizeText("2m".to_string())),
            folio_sizes: Some("4k,16k".to_string()),
            runs: Some(2),
            ..FolioOpsSpec::default()
        };
        let record = measure(&spec.validate().unwrap(), SizeSource::Flag, |_| {
            Mock::default().progress(None)
        })
        .unwrap();
        assert_eq!((record.runs.len(), record.engine.as_str()), (2, "model"));
        for run in &record.runs {
            assert!(run.locked_ns.is_some_and(|ns| ns > 0.0));
            // Operations of several threads have no non-atomic control.
            assert_eq!(run.cells.len(), 2 * (5 * SCHEME_COUNT + 2 * (SCHEME_COUNT - 1)));
            let (single, threaded): (Vec<_>, Vec<_>) =
                run.cells.iter().partition(|cell| cell.operation.is_single_threaded());
            let names = single.iter().map(|cell| cell.counters.as_str());
            assert!(names.eq(SCHEMES.into_iter().cycle().take(single.len())));
            assert!(single.iter().all(|cell| cell.locked_ns > Some(0.0)));
            assert!(threaded.iter().all(|cell| cell.locked_ns.is_none()));
            // One L for all schemes of an operation.
            let has_one_locked_ns = |samples: &[&FolioOpsSample]| {
                samples.iter().all(|sample| sample.locked_ns == samples[0].locked_ns)
            };
            assert!(single.chunks(SCHEME_COUNT).all(has_one_locked_ns));
            assert!(threaded.iter().all(|cell| cell.copied > Some(0) && cell.reused == Some(0)));
        }
    }
}
