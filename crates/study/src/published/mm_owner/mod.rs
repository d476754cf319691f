//! The series "MM owner tracking for large folios": operations over anonymous memory, in real time.

mod cells;
mod counting;
mod data;

use filemap_job::folio_ops::{Operation, PAGE_BYTES, PMD_BYTES};
use filemap_job::{DEFAULT_SEED, EngineKind, FolioOps, FolioOpsRecord, Record};
use filemap_report::units::bytes;

use self::cells::{BENCHMARK, PERCENT};
pub use self::data::NAME;
use self::data::PUBLISHED;
use super::cell::{Cell, FAILS, HOLDS, NEAR, OFF};
use super::data::{Notes, Series, Values};
use super::study::{Begin, Chosen, Found, Length, Options, Study};
use crate::error::Error;
use crate::folio_ops::{self, Asked, Figure};
use crate::stats::MAD;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Sizes of folios: the control, then those that were published.
const SIZES: [u64; 9] =
    [4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, PMD_BYTES];

/// Those of a brief form.
const FEW_SIZES: [u64; 3] = [16 * KIB, 128 * KIB, PMD_BYTES];

/// The study of the series.
struct MmOwner(Length);

pub fn study(_: &Options, length: Length) -> Chosen {
    Ok(Box::new(MmOwner(length)))
}

/// How many figures were published: of each operation and size, two changes.
pub fn figures() -> usize {
    PUBLISHED.changes.values().map(|sizes| 2 * sizes.len()).sum()
}

/// What is run: over the published memory, an eighth of it, or for a second or two.
fn job(length: Length) -> FolioOps {
    let (bytes, runs, sizes) = match length {
        Length::Brief => (16 * MIB, 5, &FEW_SIZES[..]),
        Length::Short => (128 * MIB, 7, &SIZES[..]),
        Length::Full => (1024 * MIB, 9, &SIZES[..]),
    };
    let (engine, folio_bytes) = (EngineKind::Model, sizes.to_vec());
    FolioOps { engine, runs, seed: DEFAULT_SEED, bytes, folio_bytes, owners: false }
}

/// The length of a report over so much memory.
fn length_of(bytes: u64) -> Length {
    let is_own = |length: &Length| job(*length).bytes >= bytes;
    [Length::Brief, Length::Short].into_iter().find(is_own).unwrap_or(Length::Full)
}

impl Study for MmOwner {
    fn folio_ops(&self) -> Option<(FolioOps, Asked)> {
        let is_full = self.0 == Length::Full;
        let shorter_bytes = is_full.then(|| job(Length::Short).bytes);
        Some((job(self.0), Asked::Published { shorter_bytes }))
    }

    fn found(&self, _: &[Record], begin: &Begin<'_>) -> Result<Found, Error> {
        let (job, asked) = self.folio_ops().expect("it runs operations");
        found(&folio_ops::record(&job, asked, begin)?)
    }
}

/// What `record` says beside what is published. Times of a brief form are not compared: they are
/// too few and too short.
fn found(record: &FolioOpsRecord) -> Result<Found, Error> {
    let pages = folio_ops::pages(record);
    let bytes = pages * PAGE_BYTES;
    let compares_times = length_of(bytes) != Length::Brief;
    let mut cells = cells::beside(&folio_ops::compared(record), compares_times, pages);
    cells.extend(counting::cells()?);
    cells.extend(cells::alone(record, bytes));
    Ok((cells, Some(folio_ops::origin(record))))
}

/// The values of the notes.
pub fn notes<'a>(series: &Series, cells: &'a [Cell]) -> Notes<'a> {
    let form = cells.iter().find(|cell| cell.is_of(BENCHMARK)).map(|cell| form(series, cell));
    let said = PUBLISHED.vm_scalability.iter();
    let said = said.map(|(case, said)| format!("{}: {said}", case.replace('_', "-")));
    let said = said.collect::<Vec<_>>().join("; ");
    vec![
        ("form", form.into_iter().collect()),
        ("exact", of_all(cells, [HOLDS, FAILS]).into_iter().collect()),
        ("times", of_all(cells, [NEAR, OFF]).into_iter().collect()),
        ("carries_over", vec![vec![("reuse", reuse(series, &fault_ns(cells)))]]),
        ("noise", noise(cells).into_iter().collect()),
        ("anon_cow", vec![vec![("said", said)]]),
    ]
}

fn is_in(cell: &Cell, unit: &str) -> bool {
    cell.unit.as_deref() == Some(unit)
}

/// What was run, and how long it takes.
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
        ("length", series.note(length_of(memory).note(), &[])),
    ]
}

/// How many cells have the first of both verdicts, of those that have one; `None` where none has.
fn of_all<'a>(cells: &[Cell], both: [&str; 2]) -> Option<Values<'a>> {
    let [hold, others] = both.map(|own| cells.iter().filter(|cell| cell.verdict == own).count());
    let all = hold + others;
    (all > 0).then(|| vec![("hold", hold.to_string()), ("all", all.to_string())])
}

/// For both configurations of the series, with which cost of a fault in nanoseconds the published
/// change of writes that reuse pages comes out. It is negative where they gain less than published.
fn fault_ns(cells: &[Cell]) -> Vec<f64> {
    let reuses = |cell: &Cell| {
        let reuses = Operation::ALL.iter().filter(|operation| operation.reuses());
        reuses.map(|own| own.name()).any(|name| cell.workload.as_deref() == Some(name))
    };
    let of = |cell: &Cell| {
        let published = cell.published.filter(|percent| reuses(cell) && *percent < 0.0)?;
        let own = cell.number("median")?;
        Some(cell.number("base_ns_per_page/median")? * (own / published - 1.0))
    };
    cells.iter().filter(|cell| is_in(cell, PERCENT)).filter_map(of).collect()
}

/// In how many cells reuse gains more than was published, and which costs of a fault explain that.
/// `faults_ns` has the cost of each cell, which is negative where it gains less.
fn reuse(series: &Series, faults_ns: &[f64]) -> String {
    let all = ("all", faults_ns.len().to_string());
    let more: Vec<f64> = faults_ns.iter().copied().filter(|cost_ns| *cost_ns > 0.0).collect();
    let count = more.len();
    match Figure::of(more) {
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

/// Where folios of one page are timed: how far figures are off that ought to be 0.
fn noise(cells: &[Cell]) -> Option<Values<'_>> {
    let is_single = |cell: &&Cell| is_in(cell, PERCENT) && cell.folio_kib == Some(PAGE_BYTES >> 10);
    let changes = cells.iter().filter(is_single).filter_map(|cell| cell.number("median"));
    let most = changes.map(f64::abs).reduce(f64::max)?;
    Some(vec![("most", format!("{most:.1}"))])
}

#[cfg(test)]
mod tests;
