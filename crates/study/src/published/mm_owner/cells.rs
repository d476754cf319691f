//! The cells of the published table: operations, read-modify-writes, and lost owners.

use filemap_job::FolioOpsRecord;
use filemap_job::folio_ops::{
    MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_BYTES, PAGE_MAPCOUNT, PRECISE_OWNERS,
};
use filemap_mapcount::atomics::CountingAtomics;
use filemap_mapcount::exit_orders::lost_share_of_two_slots;
use filemap_mapcount::{
    Error as MapcountError, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use serde_json::{Value, json};

use super::data::{NAME, OwnerTolerance, PUBLISHED};
use crate::folio_ops::{BatchCost, OperationComparison, locked};
use crate::published::cell::{Cell, MODEL_ONLY, NOT_COMPARED};

/// Units of the figures: the change of the time, the saving of a page, and pages that were copied.
pub const PERCENT: &str = "percent";
const SAVED: &str = "L a page";
const COPIED: &str = "pages copied of 100";

/// The experiment whose cell describes the run.
pub const BENCHMARK: &str = "benchmark";

/// A published figure and the measured one.
type FigurePair = (Option<f64>, Option<f64>);

/// Whether a figure is within its tolerance, and the tolerance.
type ToleranceCheck = Option<(bool, String)>;

/// The cells of all operations over `pages` pages. Times are compared if `compares_times`.
pub fn operations(all: &[OperationComparison], compares_times: bool, pages: u64) -> Vec<Cell> {
    let cells = |comparison: &OperationComparison| {
        let counters: Vec<&str> =
            comparison.configurations.iter().map(|own| own.counters.as_str()).collect();
        let others = || counters.iter().copied().filter(|counters| *counters != PAGE_MAPCOUNT);
        let times = others().map(|own| time(comparison, own, compares_times));
        let savings = others().filter_map(|own| saving(comparison, own, compares_times));
        let copies = counters.iter().filter_map(|own| copy_cell(comparison, own, pages));
        times.chain(savings).chain(copies).collect::<Vec<_>>()
    };
    all.iter().flat_map(cells).collect()
}

/// A cell of a time. It depends on the machine and its load, so it is not judged.
fn time_cell(
    comparison: &OperationComparison,
    counters: &str,
    unit: &str,
    pair: FigurePair,
    check: ToleranceCheck,
) -> Cell {
    let own = comparison.scheme(counters);
    let base = comparison.scheme(PAGE_MAPCOUNT);
    let (is_near, tolerance) = check.unzip();
    let figures = json!({
        "median": pair.1,
        "near": is_near,
        "ns_per_page": own.map(|own| own.ns_per_page),
        "base_ns_per_page": base.map(|base| base.ns_per_page),
        "locked_ns": comparison.locked_ns,
        "change": own.and_then(|own| own.change.as_ref()),
    });
    let cell = cell(comparison, counters, unit, pair, tolerance, figures);
    cell.with_comparison(is_near, unjudged_reason(pair))
}

/// The verdict on a figure that is neither judged nor compared.
fn unjudged_reason((published, _): FigurePair) -> &'static str {
    if published.is_some() { NOT_COMPARED } else { MODEL_ONLY }
}

fn cell(
    comparison: &OperationComparison,
    counters: &str,
    unit: &str,
    (published, own): FigurePair,
    tolerance: Option<String>,
    figures: Value,
) -> Cell {
    let error_unit = if unit == PERCENT { "percentage points" } else { unit };
    Cell {
        workload: Some(comparison.operation.to_string()),
        folio_kib: Some(comparison.folio_bytes >> 10),
        variant: Some(counters.to_string()),
        unit: Some(unit.to_string()),
        published,
        error: published.zip(own).map(|(published, own)| own - published),
        error_unit: Some(error_unit.to_string()),
        tolerance: Some(tolerance.unwrap_or("none".to_string())),
        ..Cell::new(NAME, figures)
    }
}

/// The cell of a change in time.
fn time(comparison: &OperationComparison, counters: &str, is_compared: bool) -> Cell {
    let (published, own) = (published_percent(comparison, counters), percent(comparison, counters));
    let pair = published.zip(own).filter(|_| is_compared);
    let near = pair.and_then(|pair| check_time(comparison, counters, pair));
    time_cell(comparison, counters, PERCENT, (published, own), near)
}

/// The cell of the saving of a page in munmap or fork. The series removes one read-modify-write.
fn saving(comparison: &OperationComparison, counters: &str, is_compared: bool) -> Option<Cell> {
    if comparison.operation.writes() || comparison.folio_bytes == PAGE_BYTES {
        return None;
    }
    let own = comparison.change(counters)?.saved_locked.map(|saved| saved.median);
    let published = (counters == NO_PAGE_MAPCOUNT).then_some(1.0);
    let OwnerTolerance { saved_locked: (least, most), saved_kib, .. } = PUBLISHED.tolerance;
    let is_compared =
        is_compared && published.is_some() && comparison.folio_bytes >= saved_kib << 10;
    let holds = |own: f64| ((least..=most).contains(&own), format!("{least} to {most} L"));
    let near = own.filter(|_| is_compared).map(holds);
    Some(time_cell(comparison, counters, SAVED, (published, own), near))
}

/// The cell of copied pages of 100: all, unless the remaining owner is known. Counts are the same
/// on every machine.
fn copy_cell(comparison: &OperationComparison, counters: &str, pages: u64) -> Option<Cell> {
    let own = comparison.scheme(counters).filter(|_| comparison.operation.writes())?;
    let is_alone = comparison.operation.is_single_threaded();
    let is_published = is_alone && [PAGE_MAPCOUNT, MM_OWNER, NO_PAGE_MAPCOUNT].contains(&counters);
    let knows_owner = comparison.folio_bytes == PAGE_BYTES || counters != PAGE_MAPCOUNT;
    let all = !(comparison.operation.reuses() && knows_owner);
    let expected = if all { (pages, 0) } else { (0, pages) };
    let counts = own.copied.zip(own.reused);
    let copied = counts.map(|(copied, reused)| {
        let pages = if is_alone { pages } else { copied + reused };
        copied as f64 * 100.0 / pages.max(1) as f64
    });
    let published = is_published.then_some(if all { 100.0 } else { 0.0 });
    let ok = is_published.then(|| counts == Some(expected));
    let figures = json!({ "median": copied, "copied": own.copied, "reused": own.reused });
    let (pair, tolerance) = ((published, copied), ok.map(|_| "exact".to_string()));
    Some(
        cell(comparison, counters, COPIED, pair, tolerance, figures)
            .with_judgement(ok, unjudged_reason(pair)),
    )
}

/// The measured change in percent.
fn percent(comparison: &OperationComparison, counters: &str) -> Option<f64> {
    comparison.change(counters).map(|change| change.percent.median)
}

/// The published change in percent. With single pages nothing changes for one thread.
fn published_percent(comparison: &OperationComparison, counters: &str) -> Option<f64> {
    let position = [MM_OWNER, NO_PAGE_MAPCOUNT].iter().position(|name| *name == counters)?;
    if comparison.folio_bytes == PAGE_BYTES {
        return comparison.operation.is_single_threaded().then_some(0.0);
    }
    let by_size = PUBLISHED.changes.get(comparison.operation.name())?;
    by_size.get(&(comparison.folio_bytes >> 10).to_string()).map(|percents| percents[position])
}

/// Checks a change in time against its tolerance; `None` if there is none.
fn check_time(
    comparison: &OperationComparison,
    counters: &str,
    (published, own): (f64, f64),
) -> ToleranceCheck {
    let tolerated = &PUBLISHED.tolerance;
    let within = |percent: f64| (own.abs() <= percent, format!("within {percent} %"));
    if comparison.folio_bytes == PAGE_BYTES {
        return Some(within(tolerated.same_percent));
    }
    match (comparison.operation, counters) {
        (Operation::CowByte, _) => Some(within(tolerated.copied_percent)),
        (Operation::ReuseByte | Operation::ChildReuseByte, _) => {
            let percents = [MM_OWNER, NO_PAGE_MAPCOUNT].map(|name| percent(comparison, name));
            let apart = percents[0].zip(percents[1]).map(|(one, other)| (one - other).abs());
            let (percent, points) = (tolerated.reuse_percent, tolerated.alike_points);
            let holds = own <= -percent && apart.is_some_and(|apart| apart <= points);
            let tolerance =
                format!("{percent} % faster or more, and within {points} points of each other");
            Some((holds, tolerance))
        }
        (Operation::Munmap | Operation::Fork, MM_OWNER)
            if comparison.folio_bytes < tolerated.owner_free_kib << 10 =>
        {
            let most = tolerated.owner_locked;
            let extra = comparison.change(counters)?.extra_locked_per_folio?.median;
            Some((extra.abs() <= most, format!("within {most} L a folio")))
        }
        (Operation::Munmap | Operation::Fork, MM_OWNER) => Some(within(tolerated.same_percent)),
        (Operation::Munmap | Operation::Fork, _) => {
            let (least, most) = (-published, tolerated.most_percent);
            let holds = own <= published && own >= -most;
            Some((holds, format!("{least} to {most} % faster")))
        }
        (Operation::AnonCowSeq | Operation::AnonCowRand, _) => None,
    }
}

/// The cell of the run itself.
pub fn benchmark(record: &FolioOpsRecord, bytes: u64) -> Cell {
    let figures = json!({
        "bytes": bytes,
        "runs": record.runs.len(),
        "locked_ns": locked(&record.runs),
    });
    unpublished_cell(BENCHMARK, "operations of one thread".to_string(), "all", figures)
}

/// A cell without a published figure.
fn unpublished_cell(experiment: &str, name: String, variant: &str, figures: Value) -> Cell {
    Cell {
        experiment: Some(experiment.to_string()),
        name: Some(name),
        variant: Some(variant.to_string()),
        ..Cell::new(NAME, figures)
    }
}

/// Orders of the folios whose read-modify-writes are counted: 64 KiB and 2 MiB.
const COUNTED_ORDERS: [u32; 2] = [4, 9];

/// Numbers of mms that share a folio.
const MMS: [u32; 6] = [2, 3, 4, 8, 16, 64];

/// The cells that do not depend on time: read-modify-writes, and lost owners.
///
/// # Errors
/// Never, since such folios have counters.
pub fn counts() -> Result<Vec<Cell>, MapcountError> {
    let mut cells = Vec::new();
    for order in COUNTED_ORDERS {
        let order = Order::new(order)?;
        cells.push(batch::<PageMapcount<CountingAtomics>>(PAGE_MAPCOUNT, order)?);
        cells.push(batch::<MmOwner<CountingAtomics>>(MM_OWNER, order)?);
        cells.push(batch::<NoPageMapcount<CountingAtomics>>(NO_PAGE_MAPCOUNT, order)?);
        cells.push(batch::<PreciseOwners<CountingAtomics>>(PRECISE_OWNERS, order)?);
    }
    cells.extend(MMS.map(|mms| {
        let figures = json!({ "mms": mms, "share": lost_share_of_two_slots(mms) });
        unpublished_cell("falsely shared", format!("{mms} mms"), MM_OWNER, figures)
    }));
    Ok(cells)
}

/// The read-modify-writes of a fork and of the last unmap of all pages.
fn batch<C: Mapcount>(counters: &str, order: Order) -> Result<Cell, MapcountError> {
    let BatchCost { fork, last_unmap, .. } = BatchCost::measure::<C>(order)?;
    let pages = order.pages();
    let figures = json!({ "pages": pages, "fork": fork, "last_unmap": last_unmap });
    Ok(unpublished_cell("read-modify-writes", format!("{pages} pages"), counters, figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_one_for_each_page_or_one_for_all() {
        let cells = counts().unwrap();
        let atomics = || cells.iter().filter(|cell| cell.belongs_to("read-modify-writes"));
        assert_eq!(atomics().count(), 8);
        for atomic in atomics() {
            let pages = atomic.count("pages");
            let expected = match atomic.variant() {
                PAGE_MAPCOUNT | MM_OWNER => (pages + 1, pages + 2),
                _ => (1, 1),
            };
            assert_eq!((atomic.count("fork"), atomic.count("last_unmap")), expected, "{atomic:?}");
        }
    }
}
