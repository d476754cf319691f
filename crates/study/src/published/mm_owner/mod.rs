//! The series "MM owner tracking for large folios": operations over anonymous memory, in real time.

mod cells;
mod data;

use filemap_job::folio_ops::{Operation, PAGE_BYTES, PMD_BYTES};
use filemap_job::{DEFAULT_SEED, FolioOps, FolioOpsRecord, Record};
use filemap_report::units::bytes;

use self::cells::{BENCHMARK, PERCENT};
pub use self::data::NAME;
use self::data::PUBLISHED;
use super::cell::{Cell, FAILS, HOLDS, NEAR, OFF};
use super::data::{Notes, Series, Values};
use super::study::{
    BeginProgress, PublishedOptions, SeriesFindings, Study, StudyLength, StudyResult,
};
use crate::error::Error;
use crate::folio_ops::{self, Figure, SizeSource};
use crate::stats::MAD;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Sizes of folios: the control, then those that were published.
const SIZES: [u64; 9] =
    [4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, PMD_BYTES];

/// Sizes of a brief form.
const FEW_SIZES: [u64; 3] = [16 * KIB, 128 * KIB, PMD_BYTES];

/// The study of the series.
struct MmOwner(StudyLength);

pub fn study(_: &PublishedOptions, length: StudyLength) -> StudyResult {
    Ok(Box::new(MmOwner(length)))
}

/// Number of published figures: two changes for each operation and size.
pub fn figures() -> usize {
    PUBLISHED.changes.values().map(|sizes| 2 * sizes.len()).sum()
}

/// The job: over the published memory, an eighth of it, or for a second or two.
fn job(length: StudyLength) -> FolioOps {
    let (bytes, runs, sizes) = match length {
        StudyLength::Brief => (16 * MIB, 5, &FEW_SIZES[..]),
        StudyLength::Short => (128 * MIB, 7, &SIZES[..]),
        StudyLength::Full => (1024 * MIB, 9, &SIZES[..]),
    };
    FolioOps { runs, seed: DEFAULT_SEED, bytes, folio_bytes: sizes.to_vec(), owners: false }
}

/// The length of a report over this much memory.
fn study_length(bytes: u64) -> StudyLength {
    let fits = |length: &StudyLength| job(*length).bytes >= bytes;
    [StudyLength::Brief, StudyLength::Short].into_iter().find(fits).unwrap_or(StudyLength::Full)
}

impl Study for MmOwner {
    fn folio_ops(&self) -> Option<(FolioOps, SizeSource)> {
        let is_full = self.0 == StudyLength::Full;
        let shorter_bytes = is_full.then(|| job(StudyLength::Short).bytes);
        Some((job(self.0), SizeSource::Published { shorter_bytes }))
    }

    fn find(&self, _: &[Record], begin: &BeginProgress<'_>) -> Result<SeriesFindings, Error> {
        let (job, source) = self.folio_ops().expect("it runs operations");
        find_in_record(&folio_ops::measure(&job, source, begin)?)
    }
}

/// Compares `record` with the published figures. Times of a brief form are not compared: they are
/// too few and too short.
fn find_in_record(record: &FolioOpsRecord) -> Result<SeriesFindings, Error> {
    let pages = folio_ops::pages(record);
    let bytes = pages * PAGE_BYTES;
    let compares_times = study_length(bytes) != StudyLength::Brief;
    let mut cells =
        cells::operations(&folio_ops::compare_operations(record), compares_times, pages);
    cells.extend(cells::counts()?);
    cells.push(cells::benchmark(record, bytes));
    Ok((cells, Some(folio_ops::origin(record))))
}

/// The values of the notes.
pub fn notes<'a>(series: &Series, cells: &'a [Cell]) -> Notes<'a> {
    let form = cells.iter().find(|cell| cell.belongs_to(BENCHMARK)).map(|cell| form(series, cell));
    let quotes = PUBLISHED.vm_scalability.iter();
    let quotes = quotes.map(|(case, quote)| format!("{}: {quote}", case.replace('_', "-")));
    let quoted = quotes.collect::<Vec<_>>().join("; ");
    vec![
        ("form", form.into_iter().collect()),
        ("exact", verdict_counts(cells, [HOLDS, FAILS]).into_iter().collect()),
        ("times", verdict_counts(cells, [NEAR, OFF]).into_iter().collect()),
        ("carries_over", vec![vec![("reuse", reuse(series, &fault_ns(cells)))]]),
        ("noise", noise(cells).into_iter().collect()),
        ("anon_cow", vec![vec![("said", quoted)]]),
    ]
}

fn has_unit(cell: &Cell, unit: &str) -> bool {
    cell.unit.as_deref() == Some(unit)
}

/// The extent of the run, and how long it takes.
fn form<'a>(series: &Series, benchmark: &Cell) -> Values<'a> {
    let memory = benchmark.count("bytes");
    let locked = benchmark.read("locked_ns").map(|Figure { median, min, max, .. }| {
        let [median, min, max] = [median, min, max].map(|ns| format!("{ns:.2}"));
        format!(" {}", series.note("locked", &[("median", median), ("min", min), ("max", max)]))
    });
    vec![
        ("memory", bytes(memory as f64)),
        ("runs", benchmark.count("runs").to_string()),
        ("mad", MAD.to_string()),
        ("locked", locked.unwrap_or_default()),
        ("length", series.note(study_length(memory).note(), &[])),
    ]
}

/// How many cells have the first verdict, of those with either; `None` if there are none.
fn verdict_counts<'a>(cells: &[Cell], verdicts: [&str; 2]) -> Option<Values<'a>> {
    let [hold, others] =
        verdicts.map(|verdict| cells.iter().filter(|cell| cell.verdict == verdict).count());
    let all = hold + others;
    (all > 0).then(|| vec![("hold", hold.to_string()), ("all", all.to_string())])
}

/// The cost of a fault, in nanoseconds, with which each reuse cell would match its published
/// figure. Negative if reuse gains less than published.
fn fault_ns(cells: &[Cell]) -> Vec<f64> {
    let reuses = |cell: &Cell| {
        let reuses = Operation::ALL.iter().filter(|operation| operation.reuses());
        reuses.map(|own| own.name()).any(|name| cell.workload.as_deref() == Some(name))
    };
    let cost_ns = |cell: &Cell| {
        let published = cell.published.filter(|percent| reuses(cell) && *percent < 0.0)?;
        let own = cell.number("median")?;
        Some(cell.number("base_ns_per_page/median")? * (own / published - 1.0))
    };
    cells.iter().filter(|cell| has_unit(cell, PERCENT)).filter_map(cost_ns).collect()
}

/// The number of cells in which reuse gains more than published, and the fault costs that explain
/// them.
fn reuse(series: &Series, faults_ns: &[f64]) -> String {
    let all = ("all", faults_ns.len().to_string());
    let more: Vec<f64> = faults_ns.iter().copied().filter(|cost_ns| *cost_ns > 0.0).collect();
    let count = more.len();
    match Figure::from_samples(more) {
        _ if faults_ns.is_empty() => String::new(),
        None => format!(" {}", series.note("no_reuse", &[all])),
        Some(costs_ns) => {
            let these = if count == faults_ns.len() { "them" } else { "these" };
            let values = [
                all,
                ("more", count.to_string()),
                ("min", format!("{:.0}", costs_ns.min)),
                ("max", format!("{:.0}", costs_ns.max)),
                ("these", these.to_string()),
            ];
            format!(" {}", series.note("reuse", &values))
        }
    }
}

/// With single pages: the largest change, which should be 0.
fn noise(cells: &[Cell]) -> Option<Values<'_>> {
    let is_single =
        |cell: &&Cell| has_unit(cell, PERCENT) && cell.folio_kib == Some(PAGE_BYTES >> 10);
    let changes = cells.iter().filter(is_single).filter_map(|cell| cell.number("median"));
    let most = changes.map(f64::abs).reduce(f64::max)?;
    Some(vec![("most", format!("{most:.1}"))])
}

#[cfg(test)]
mod tests;
