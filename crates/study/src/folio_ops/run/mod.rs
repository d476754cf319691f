//! Runs operations over anonymous memory here: in the small mm of `filemap-mapcount`, with real
//! memory, real atomics and real time.

mod anon_cow;
mod at_once;
mod memory_budget;
mod one_folio;

use std::sync::Arc;

use filemap_job::folio_ops::{CONFIGURATIONS, FolioCell, Operation, PAGE_BYTES};
use filemap_job::{FolioOps, FolioOpsRecord, FolioOpsRun};
use filemap_kernel::clock::thread_cpu_ns;
use filemap_kernel::engine::{available_bytes, host_environment};
use filemap_kernel::huge_pages::advise_huge_pages;
use filemap_mapcount::atomics::PlainPages;
use filemap_mapcount::folio_ops::{self, Placement, Sample, contents, read_modify_write_ns};
use filemap_mapcount::mm::Contents;
use filemap_mapcount::{
    Error as OfMapcount, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use serde_json::{Map, Value};

pub use self::memory_budget::Asked;
use crate::engine::Progress;
use crate::error::Error;
use crate::provenance;

/// How many ways to count run side by side.
const WAYS: usize = CONFIGURATIONS.len();

/// An operation in folios of so many bytes.
type Timed = (u64, Operation);

/// Refuses a job for which there is too little memory now.
///
/// # Errors
/// Such a job, with a remedy for who has `asked` for it.
pub fn check(job: &FolioOps, asked: Asked) -> Result<(), Error> {
    memory_budget::check(job, asked, cpus(), available_bytes())
}

/// The record of `job`, all of whose ways to count take turns. `progress` shows how far so many
/// operations are.
///
/// # Errors
/// As [`check`].
pub fn record(
    job: &FolioOps,
    asked: Asked,
    progress: impl FnOnce(u64) -> Box<dyn Progress>,
) -> Result<FolioOpsRecord, Error> {
    check(job, asked)?;
    let cpus = cpus();
    let progress = progress((job.folio_bytes.len() * Operation::ALL.len()) as u64);
    let mut runs = vec![FolioOpsRun::default(); job.runs as usize];
    for &folio_bytes in &job.folio_bytes {
        let order = order_of(folio_bytes)?;
        let ways = ways(job, order)?;
        for operation in Operation::OF_ONE_THREAD {
            time(&ways, job, (folio_bytes, operation), &mut runs)?;
            progress.advance();
        }
        // Its memory is the next one's.
        drop(ways);
        for operation in [Operation::AnonCowSeq, Operation::AnonCowRand] {
            anon_cow::time(job, (folio_bytes, operation), cpus, &mut runs)?;
            progress.advance();
        }
        if cpus >= one_folio::THREADS && order != Order::SINGLE {
            one_folio::time((folio_bytes, order), &mut runs)?;
        }
    }
    // Each operation has one L, which all ways to count have beside them.
    for run in &mut runs {
        let mut all: Vec<f64> = run.cells.iter().filter_map(|cell| cell.locked_ns).collect();
        all.sort_unstable_by(f64::total_cmp);
        run.locked_ns = all.get(all.len() / 2).copied();
    }
    let mut environment = environment();
    provenance::stamp(&mut environment, job.engine.name());
    Ok(FolioOpsRecord::new(job, environment, runs))
}

/// CPUs that this process may use: so many children write at once.
fn cpus() -> usize {
    usize::try_from(filemap_kernel::probe::cpus::allowed_cpus()).unwrap_or(1)
}

/// Runs an operation with one way to count, whatever its type.
type Way = Box<dyn Fn(folio_ops::Operation) -> Result<Sample, OfMapcount>>;

/// All ways to count, in the same memory, in the order of [`CONFIGURATIONS`].
fn ways(job: &FolioOps, order: Order) -> Result<[Way; WAYS], Error> {
    let pages = memory_budget::pages(job)?;
    let contents = contents(pages, order, PLACEMENT, &mut advise_huge_pages)?;
    Ok([
        way::<PageMapcount>(&contents, pages, order)?,
        way::<PageMapcount<PlainPages>>(&contents, pages, order)?,
        way::<MmOwner>(&contents, pages, order)?,
        way::<NoPageMapcount>(&contents, pages, order)?,
        way::<PreciseOwners>(&contents, pages, order)?,
    ])
}

/// Where folios lie: as in memory that nobody used before, as in the published runs.
const PLACEMENT: Placement = Placement::InOrder;

fn way<C: Mapcount + 'static>(
    contents: &Arc<Contents>,
    pages: usize,
    order: Order,
) -> Result<Way, Error> {
    let advise = &mut advise_huge_pages;
    let own = folio_ops::FolioOps::<C>::with(contents, pages, order, PLACEMENT, advise)?;
    Ok(Box::new(move |operation| own.run(operation, thread_cpu_ns)))
}

/// The order of folios of this size.
///
/// # Errors
/// When there is none, which no valid job asks for.
fn order_of(folio_bytes: u64) -> Result<Order, Error> {
    Ok(Order::new((folio_bytes / PAGE_BYTES).ilog2())?)
}

/// Times one operation with each of `ways` in turn, once for each of `runs`, and once before
/// that to warm up.
fn time(
    ways: &[Way; WAYS],
    job: &FolioOps,
    timed: Timed,
    runs: &mut [FolioOpsRun],
) -> Result<(), Error> {
    for turn in 0..=runs.len() {
        let locked_ns = read_modify_write_ns(thread_cpu_ns);
        let samples = take_turns(turn, WAYS, |way| Ok(ways[way](of_mapcount(timed.1))?))?;
        let Some(run) = turn.checked_sub(1).map(|at| &mut runs[at]) else { continue };
        let cell = |(counters, sample): (&str, Sample)| {
            let cell = cell(timed, counters, &[sample], job.pages());
            FolioCell { locked_ns: Some(locked_ns), ..cell }
        };
        run.cells.extend(CONFIGURATIONS.into_iter().zip(samples).map(cell));
    }
    Ok(())
}

/// What `samples` of one way to count come to, of which each is of so many pages.
fn cell(
    (folio_bytes, operation): Timed,
    counters: &str,
    samples: &[Sample],
    pages: u64,
) -> FolioCell {
    let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>();
    FolioCell {
        folio_bytes,
        operation,
        counters: counters.to_string(),
        ns_per_page: sum(|sample| sample.time_ns) as f64 / (pages * samples.len() as u64) as f64,
        copied: operation.writes().then(|| sum(|sample| sample.copied as u64)),
        reused: operation.writes().then(|| sum(|sample| sample.reused as u64)),
        locked_ns: None,
    }
}

/// What `act` comes to for each of so many `ways`, in their order. Every other time they have their
/// turns the other way round, as who comes after another finds caches as that left them.
fn take_turns<T>(
    turn: usize,
    ways: usize,
    act: impl FnMut(usize) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    if turn.is_multiple_of(2) {
        return (0..ways).map(act).collect();
    }
    let mut done = (0..ways).rev().map(act).collect::<Result<Vec<_>, _>>()?;
    done.reverse();
    Ok(done)
}

fn of_mapcount(operation: Operation) -> folio_ops::Operation {
    let found = folio_ops::Operation::ALL.into_iter().find(|own| own.name() == operation.name());
    found.expect("the small mm has every operation of one thread")
}

/// Where the figures come from.
fn environment() -> Map<String, Value> {
    let scope = "real atomics in real time, in a small mm for anonymous memory; no TLB, no \
                 interrupts of other CPUs, no NUMA, no swap";
    let mut environment = host_environment();
    // The running kernel does none of it.
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
    fn every_operation_of_a_job_is_one_of_the_small_mm() {
        for operation in Operation::OF_ONE_THREAD {
            assert_eq!(of_mapcount(operation).name(), operation.name());
        }
        assert_eq!(order_of(4096).unwrap(), Order::SINGLE);
        assert_eq!(order_of(PMD_BYTES).unwrap(), Order::PMD);
    }

    #[test]
    fn every_other_turn_goes_the_other_way_round() {
        for (turn, order) in [(0, [0, 1, 2]), (1, [2, 1, 0])] {
            let mut taken = Vec::new();
            let done = take_turns(turn, 3, |way| {
                taken.push(way);
                Ok(way)
            });
            assert_eq!((taken, done.unwrap()), (order.to_vec(), vec![0, 1, 2]));
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
        let record =
            record(&spec.validate().unwrap(), Asked::Size, |_| Mock::default().progress(None))
                .unwrap();
        assert_eq!((record.runs.len(), record.engine.as_str()), (2, "model"));
        for run in &record.runs {
            assert!(run.locked_ns.is_some_and(|ns| ns > 0.0));
            // Threads do not count without atomics.
            assert_eq!(run.cells.len(), 2 * (5 * WAYS + 2 * (WAYS - 1)));
            let (alone, beside): (Vec<_>, Vec<_>) =
                run.cells.iter().partition(|cell| cell.operation.is_of_one_thread());
            let names = alone.iter().map(|cell| cell.counters.as_str());
            assert!(names.eq(CONFIGURATIONS.into_iter().cycle().take(alone.len())));
            assert!(alone.iter().all(|cell| cell.locked_ns > Some(0.0)));
            assert!(beside.iter().all(|cell| cell.locked_ns.is_none()));
            // One L for all ways to count, which were timed beside it.
            let beside_it =
                |ways: &[&FolioCell]| ways.iter().all(|cell| cell.locked_ns == ways[0].locked_ns);
            assert!(alone.chunks(WAYS).all(beside_it));
            assert!(beside.iter().all(|cell| cell.copied > Some(0) && cell.reused == Some(0)));
        }
    }
}
