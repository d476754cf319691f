//! Runs operations over anonymous memory here: in the small mm of `filemap-mapcount`, with real
//! memory, real atomics and real time.

mod contended;

use filemap_job::folio_ops::{
    CONFIGURATIONS, Contended, FolioCell, Operation, PAGE_BYTES, PMD_BYTES,
};
use filemap_job::{FolioOps, FolioOpsRun, Record, Run, format_size};
use filemap_kernel::engine::{available_bytes, host_environment};
use filemap_mapcount::atomics::PlainPages;
use filemap_mapcount::folio_ops::{self, Sample, read_modify_write_ns};
use filemap_mapcount::{
    Error as OfMapcount, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use filemap_report::units::bytes;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::progress::Progress;
use crate::provenance;

/// How many ways to count run side by side.
const WAYS: usize = CONFIGURATIONS.len();

/// What a page takes beside its bytes, at most, as a part of them: what is known of it, and its
/// places in page tables.
const KEEPING_PART: u64 = 32;

/// The record of `job`, all of whose ways to count take turns.
///
/// # Errors
/// When there is too little memory.
pub fn record(job: &FolioOps) -> Result<Record, Error> {
    check_memory(job, available_bytes())?;
    let operations = Operation::OF_ONE_THREAD;
    let progress = Progress::new(job.folio_bytes.len() * operations.len());
    let mut repeats = vec![Repeat::default(); job.runs as usize];
    for &folio_bytes in &job.folio_bytes {
        let ways = ways(job, folio_bytes)?;
        for operation in operations {
            time(&ways, job, (folio_bytes, operation), &mut repeats)?;
            progress.advance();
        }
        if has_two_cpus() {
            for repeat in &mut repeats {
                repeat.contended.extend(contended::all(folio_bytes)?);
            }
        }
    }
    let runs = repeats.into_iter().map(|repeat| repeat.into_run(job.seed)).collect();
    let mut record = Record::of_folio_ops(job, job.engine.name(), environment(), runs);
    provenance::stamp_record(&mut record);
    Ok(record)
}

/// What was timed in one repeat.
#[derive(Clone, Default)]
struct Repeat {
    /// L before each operation.
    locked_ns: Vec<f64>,
    cells: Vec<FolioCell>,
    contended: Vec<Contended>,
}

impl Repeat {
    fn into_run(mut self, seed: u64) -> Run {
        self.locked_ns.sort_unstable_by(f64::total_cmp);
        let locked_ns = self.locked_ns.get(self.locked_ns.len() / 2).copied();
        let run = FolioOpsRun { locked_ns, cells: self.cells, contended: self.contended };
        Run { seed, folio_ops: Some(run), ..Run::default() }
    }
}

/// Operations with one way to count, whatever its type.
trait Way {
    fn run(&self, operation: folio_ops::Operation) -> Result<Sample, OfMapcount>;
}

impl<C: Mapcount> Way for folio_ops::FolioOps<C> {
    fn run(&self, operation: folio_ops::Operation) -> Result<Sample, OfMapcount> {
        folio_ops::FolioOps::run(self, operation, thread_ns)
    }
}

/// All ways to count, each with memory of its own, in the order of [`CONFIGURATIONS`].
fn ways(job: &FolioOps, folio_bytes: u64) -> Result<[Box<dyn Way>; WAYS], Error> {
    let pages = usize::try_from(job.pages()).map_err(|_| too_large(job))?;
    let order = order_of(folio_bytes)?;
    Ok([
        way::<PageMapcount>(pages, order)?,
        way::<PageMapcount<PlainPages>>(pages, order)?,
        way::<MmOwner>(pages, order)?,
        way::<NoPageMapcount>(pages, order)?,
        way::<PreciseOwners>(pages, order)?,
    ])
}

fn way<C: Mapcount + 'static>(pages: usize, order: Order) -> Result<Box<dyn Way>, Error> {
    Ok(Box::new(folio_ops::FolioOps::<C>::new(pages, order)?))
}

/// The order of folios of this size.
///
/// # Errors
/// When there is none, which no valid job asks for.
pub fn order_of(folio_bytes: u64) -> Result<Order, Error> {
    Ok(Order::new((folio_bytes / PAGE_BYTES).ilog2())?)
}

/// Times one operation with each of `ways` in turn, once for each of `repeats`, and once before
/// that to warm up.
fn time(
    ways: &[Box<dyn Way>; WAYS],
    job: &FolioOps,
    (folio_bytes, operation): (u64, Operation),
    repeats: &mut [Repeat],
) -> Result<(), Error> {
    for turn in 0..=repeats.len() {
        let locked_ns = read_modify_write_ns(thread_ns);
        let mut samples = [None; WAYS];
        // Each has the first turn at times: what comes behind another finds caches as that left
        // them.
        for way in (0..WAYS).map(|way| (way + turn) % WAYS) {
            samples[way] = Some(ways[way].run(of_mapcount(operation))?);
        }
        let Some(repeat) = turn.checked_sub(1).map(|at| &mut repeats[at]) else { continue };
        repeat.locked_ns.push(locked_ns);
        for (counters, sample) in CONFIGURATIONS.into_iter().zip(samples.into_iter().flatten()) {
            repeat.cells.push(FolioCell {
                folio_bytes,
                operation,
                counters: counters.to_string(),
                ns_per_page: sample.time_ns as f64 / job.pages() as f64,
                copied: operation.writes().then_some(sample.copied as u64),
                reused: operation.writes().then_some(sample.reused as u64),
            });
        }
    }
    Ok(())
}

fn of_mapcount(operation: Operation) -> folio_ops::Operation {
    let found = folio_ops::Operation::ALL.into_iter().find(|own| own.name() == operation.name());
    found.expect("the small mm has every operation of one thread")
}

/// Whether threads can run at once.
fn has_two_cpus() -> bool {
    filemap_kernel::probe::cpus::allowed() >= contended::THREADS as u64
}

/// Time that this thread has run for, in nanoseconds.
fn thread_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Memory that `job` takes at a time: each way to count has its own, and room to copy each page.
fn needed_bytes(job: &FolioOps) -> u64 {
    let own = 2 * job.bytes + PMD_BYTES;
    WAYS as u64 * (own + own / KEEPING_PART)
}

/// Refuses a job for which `available` bytes are too little.
fn check_memory(job: &FolioOps, available: Option<u64>) -> Result<(), Error> {
    let needed = needed_bytes(job);
    let Some(available) = available.filter(|&available| available < needed) else { return Ok(()) };
    let least = needed_bytes(&FolioOps { bytes: 0, ..job.clone() });
    let per_byte = (needed - least) as f64 / job.bytes as f64;
    let fits = (available.saturating_sub(least) as f64 / per_byte) as u64 / PMD_BYTES * PMD_BYTES;
    let remedy = match fits {
        0 => "end other programs".to_string(),
        fits => format!("give {} or less", format_size(fits)),
    };
    Err(Error::CannotRun(format!(
        "--file-size {}: {} of memory are needed, as each of {WAYS} ways to count has its own and \
         room for copies, and {} are available; {remedy}",
        format_size(job.bytes),
        bytes(needed as f64),
        bytes(available as f64),
    )))
}

fn too_large(job: &FolioOps) -> Error {
    Error::CannotRun(format!(
        "--file-size {} is more than this machine can address; give less",
        format_size(job.bytes)
    ))
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
    use filemap_job::JobSpec;

    use super::*;

    fn job(keys: &str) -> FolioOps {
        let spec = JobSpec::from_toml(&format!("workload = 'folio-ops'\n{keys}")).unwrap();
        spec.validate_folio_ops().unwrap()
    }

    #[test]
    fn every_operation_of_a_job_is_one_of_the_small_mm() {
        for operation in Operation::OF_ONE_THREAD {
            assert_eq!(of_mapcount(operation).name(), operation.name());
        }
        assert_eq!(order_of(4096).unwrap(), Order::SINGLE);
        assert_eq!(order_of(PMD_BYTES).unwrap(), Order::PMD);
    }

    #[test]
    fn every_repeat_has_every_cell_once() {
        let job = job("file_size = '2m'\nfolio_sizes = '4k,16k'\nruns = 2");
        let record = record(&job).unwrap();
        assert_eq!((record.runs.len(), record.engine.as_str()), (2, "model"));
        for run in &record.runs {
            let run = run.folio_ops.as_ref().unwrap();
            assert!(run.locked_ns.is_some_and(|ns| ns > 0.0));
            assert_eq!(run.cells.len(), 2 * 5 * WAYS);
            let names = run.cells.iter().map(|cell| cell.counters.as_str());
            assert!(names.eq(CONFIGURATIONS.into_iter().cycle().take(run.cells.len())));
        }
    }

    #[test]
    fn too_little_memory_is_told_with_what_fits() {
        let job = job("file_size = '1g'");
        assert!(check_memory(&job, None).is_ok());
        let needed = needed_bytes(&job);
        assert!(check_memory(&job, Some(needed)).is_ok());
        let error = check_memory(&job, Some(needed / 2)).unwrap_err();
        assert_eq!(error.exit_code(), 4);
        let error = error.to_string();
        assert!(error.contains("--file-size 1g: 10.3 GiB of memory are needed"), "{error}");
        assert!(error.contains("5.16 GiB are available; give 510m or less"), "{error}");
        let fits = FolioOps { bytes: 510 << 20, ..job.clone() };
        assert!(check_memory(&fits, Some(needed / 2)).is_ok());
        let none = check_memory(&job, Some(1 << 20)).unwrap_err().to_string();
        assert!(none.ends_with("end other programs"), "{none}");
    }
}
