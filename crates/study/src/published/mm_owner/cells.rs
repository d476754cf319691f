//! What operations came to, as cells.

use filemap_job::FolioOpsRecord;
use filemap_job::folio_ops::{MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_BYTES, PAGE_MAPCOUNT};
use serde_json::{Value, json};

use super::data::{NAME, OwnerTolerance, PUBLISHED};
use crate::folio_ops::{Compared, locked};
use crate::published::cell::{Cell, MODEL_ONLY, NOT_COMPARED};

/// Units of the figures: the change of the time, the saving of a page, and pages that were copied.
pub const PERCENT: &str = "percent";
const SAVED: &str = "L a page";
const COPIED: &str = "pages copied of 100";

/// The experiment that says what was run.
pub const BENCHMARK: &str = "benchmark";

/// A published figure and the one here.
type Both = (Option<f64>, Option<f64>);

/// Whether a figure is inside what is tolerated, and what that is.
type Near = Option<(bool, String)>;

/// Every figure of `all`; times are compared if `compares_times`. Memory is `pages` pages.
pub fn beside(all: &[Compared], compares_times: bool, pages: u64) -> Vec<Cell> {
    let of = |of: &Compared| {
        let counters: Vec<&str> =
            of.configurations.iter().map(|own| own.counters.as_str()).collect();
        let others = || counters.iter().copied().filter(|counters| *counters != PAGE_MAPCOUNT);
        let times = others().map(|own| time(of, own, compares_times));
        let savings = others().filter_map(|own| saving(of, own, compares_times));
        let copies = counters.iter().filter_map(|own| copied(of, own, pages));
        times.chain(savings).chain(copies).collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

/// A cell of a time. It depends on this machine and on what else that does, so it decides nothing.
fn timed(of: &Compared, counters: &str, unit: &str, both: Both, near: Near) -> Cell {
    let own = of.configuration(counters);
    let base = of.configuration(PAGE_MAPCOUNT);
    let (is_near, tolerance) = near.unzip();
    let figures = json!({
        "median": both.1,
        "near": is_near,
        "ns_per_page": own.map(|own| own.ns_per_page),
        "base_ns_per_page": base.map(|base| base.ns_per_page),
        "locked_ns": of.locked_ns,
        "change": own.and_then(|own| own.change.as_ref()),
    });
    let cell = cell(of, counters, unit, both, tolerance, figures);
    cell.compared(is_near, otherwise(both))
}

/// The verdict on what is neither judged nor compared.
fn otherwise((published, _): Both) -> &'static str {
    if published.is_some() { NOT_COMPARED } else { MODEL_ONLY }
}

fn cell(
    of: &Compared,
    counters: &str,
    unit: &str,
    (published, own): Both,
    tolerance: Option<String>,
    figures: Value,
) -> Cell {
    let error_unit = if unit == PERCENT { "percentage points" } else { unit };
    Cell {
        workload: Some(of.operation.to_string()),
        folio_kib: Some(of.folio_bytes >> 10),
        variant: Some(counters.to_string()),
        unit: Some(unit.to_string()),
        published,
        error: published.zip(own).map(|(published, own)| own - published),
        error_unit: Some(error_unit.to_string()),
        tolerance: Some(tolerance.unwrap_or("none".to_string())),
        ..Cell::new(NAME, figures)
    }
}

/// The change of the time.
fn time(of: &Compared, counters: &str, is_compared: bool) -> Cell {
    let (published, own) = (published_percent(of, counters), percent(of, counters));
    let both = published.zip(own).filter(|_| is_compared);
    let near = both.and_then(|both| time_holds(of, counters, both));
    timed(of, counters, PERCENT, (published, own), near)
}

/// What counting folios alone saves of a page that is unmapped or forked. The series takes one
/// read-modify-write of a page away.
fn saving(of: &Compared, counters: &str, is_compared: bool) -> Option<Cell> {
    if of.operation.writes() || of.folio_bytes == PAGE_BYTES {
        return None;
    }
    let own = of.change(counters)?.saved_locked.map(|saved| saved.median);
    let published = (counters == NO_PAGE_MAPCOUNT).then_some(1.0);
    let OwnerTolerance { saved_locked: (least, most), saved_kib, .. } = PUBLISHED.tolerance;
    let is_compared = is_compared && published.is_some() && of.folio_bytes >= saved_kib << 10;
    let holds = |own: f64| ((least..=most).contains(&own), format!("{least} to {most} L"));
    let near = own.filter(|_| is_compared).map(holds);
    Some(timed(of, counters, SAVED, (published, own), near))
}

/// Of 100 pages, those that write faults copied: all where nobody knows that a page has one owner
/// left. It is counted, not timed, and so the same on every machine.
fn copied(of: &Compared, counters: &str, pages: u64) -> Option<Cell> {
    let own = of.configuration(counters).filter(|_| of.operation.writes())?;
    let is_alone = of.operation.is_of_one_thread();
    let is_published = is_alone && [PAGE_MAPCOUNT, MM_OWNER, NO_PAGE_MAPCOUNT].contains(&counters);
    let knows = of.folio_bytes == PAGE_BYTES || counters != PAGE_MAPCOUNT;
    let all = !(of.operation.reuses() && knows);
    let expected = if all { (pages, 0) } else { (0, pages) };
    let counts = own.copied.zip(own.reused);
    let copied = counts.map(|(copied, reused)| {
        let pages = if is_alone { pages } else { copied + reused };
        copied as f64 * 100.0 / pages.max(1) as f64
    });
    let published = is_published.then_some(if all { 100.0 } else { 0.0 });
    let ok = is_published.then(|| counts == Some(expected));
    let figures = json!({ "median": copied, "copied": own.copied, "reused": own.reused });
    let (both, tolerance) = ((published, copied), ok.map(|_| "exact".to_string()));
    Some(cell(of, counters, COPIED, both, tolerance, figures).judged(ok, otherwise(both)))
}

/// The change of the time in percent.
fn percent(of: &Compared, counters: &str) -> Option<f64> {
    of.change(counters).map(|change| change.percent.median)
}

/// What is published of the change; nothing changes for one thread with folios of one page.
fn published_percent(of: &Compared, counters: &str) -> Option<f64> {
    let position = [MM_OWNER, NO_PAGE_MAPCOUNT].iter().position(|name| *name == counters)?;
    if of.folio_bytes == PAGE_BYTES {
        return of.operation.is_of_one_thread().then_some(0.0);
    }
    let by_size = PUBLISHED.changes.get(of.operation.name())?;
    by_size.get(&(of.folio_bytes >> 10).to_string()).map(|both| both[position])
}

/// Whether a change holds beside the published one, and what is tolerated; `None` where it cannot
/// be said.
fn time_holds(of: &Compared, counters: &str, (published, own): (f64, f64)) -> Near {
    let tolerated = &PUBLISHED.tolerance;
    let within = |percent: f64| (own.abs() <= percent, format!("within {percent} %"));
    if of.folio_bytes == PAGE_BYTES {
        return Some(within(tolerated.same_percent));
    }
    match (of.operation, counters) {
        (Operation::CowByte, _) => Some(within(tolerated.copied_percent)),
        (Operation::ReuseByte | Operation::ChildReuseByte, _) => {
            let both = [MM_OWNER, NO_PAGE_MAPCOUNT].map(|name| percent(of, name));
            let apart = both[0].zip(both[1]).map(|(one, other)| (one - other).abs());
            let (percent, points) = (tolerated.reuse_percent, tolerated.alike_points);
            let holds = own <= -percent && apart.is_some_and(|apart| apart <= points);
            let tolerance =
                format!("{percent} % faster or more, and within {points} points of each other");
            Some((holds, tolerance))
        }
        (Operation::Munmap | Operation::Fork, MM_OWNER)
            if of.folio_bytes < tolerated.owner_free_kib << 10 =>
        {
            let most = tolerated.owner_locked;
            let extra = of.change(counters)?.extra_locked_per_folio?.median;
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

/// What was run, and what threads got done on one folio in each repeat.
pub fn alone(record: &FolioOpsRecord, bytes: u64) -> Vec<Cell> {
    let figures = json!({
        "bytes": bytes,
        "runs": record.runs.len(),
        "locked_ns": locked(&record.runs),
    });
    let benchmark = without(BENCHMARK, "operations of one thread".to_string(), "all", figures);
    let contended = record.runs.iter().flat_map(|run| &run.contended).map(|of| {
        let figures = json!({
            "batches_per_second": of.batches_per_second,
            "wait_batches": of.wait_batches,
            "longest_wait_ns": of.longest_wait_ns,
        });
        let cell = without("one folio", "two threads".to_string(), &of.counters, figures);
        Cell { folio_kib: Some(of.folio_bytes >> 10), ..cell }
    });
    contended.chain([benchmark]).collect()
}

/// A cell of an experiment without a published figure.
pub fn without(experiment: &str, name: String, variant: &str, figures: Value) -> Cell {
    Cell {
        experiment: Some(experiment.to_string()),
        name: Some(name),
        variant: Some(variant.to_string()),
        ..Cell::new(NAME, figures)
    }
}
