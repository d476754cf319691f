//! The exec-order series: calls to 512 MiB of stubs, on arm64 with 64 KiB pages.

mod times;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use filemap_job::{Job, JobFlags, Record, SizeText};
use serde::Deserialize;
use serde_json::{Map, json};

use self::times::{Assumptions, PhaseCounts};
use super::cell::{Cell, FITTED, MODEL_ONLY, NOT_COMPARED};
use super::data::{Notes, Series, Values};
use super::study::{
    BeginProgress, PublishedOptions, SeriesFindings, Study, StudyLength, StudyResult,
};
use crate::error::Error;
use crate::stats::percent;

pub const NAME: &str = "exec-order";

static PUBLISHED: LazyLock<ExecOrderData> = LazyLock::new(|| Series::figures(NAME));

/// Before, after, and the rule merged instead. The published baseline contains vma-bound.
const VARIANTS: [(&str, &str); 3] = [
    ("before", "vma-bound"),
    ("after", "vma-bound+exec-order-v5"),
    ("merged", "vma-bound+exec-order"),
];

/// Advice and readahead in KiB; neither was published. The published ratios are compared with the
/// first: default readahead, and the advice without which the series changes nothing here.
const CONDITIONS: [(&str, u64); 4] =
    [("hugepage", 128), ("normal", 128), ("hugepage", 2048), ("normal", 2048)];

/// Calls of the random phase; not published.
const CALLS: u64 = 1_000_000;

/// Fitted to the cold ratio, since the published device is unknown.
const LATENCY_NS: f64 = 8_000.0;

/// Minimum bandwidth in GB/s for the published cold phase: 512 MiB in 41.3 ms.
const BANDWIDTH: f64 = 13.0;

#[derive(Deserialize)]
struct ExecOrderData {
    rows: Vec<PhaseRow>,
    /// Phase that the latency is fitted to: its ratio tests nothing.
    fitted: String,
    /// Number of misses in code that read ahead without the series if no hit is credited.
    misses: u64,
}

/// Calls whose pages lie too far apart to share a window, so that each call misses and none is
/// credited.
const FAR_APART: (&str, u64) = ("stride:8", 1000);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseRow {
    /// `cold` or `random`.
    phase: String,
    before_ms: f64,
    after_ms: f64,
}

/// The study of the series.
struct ExecOrder;

pub fn study(_: &PublishedOptions, _: StudyLength) -> StudyResult {
    Ok(Box::new(ExecOrder))
}

/// Number of published figures: ratios, and misses that read ahead.
pub fn figures() -> usize {
    PUBLISHED.rows.len() + 1
}

fn job(
    (advice, read_ahead_kb): (&str, u64),
    variant: &str,
    workload: &str,
    accesses: Option<u64>,
) -> Job {
    let text = |text: &str| Some(text.to_string());
    let spec = JobFlags {
        kernel: text("mm-2026-05"),
        with: text(variant),
        arch: text("arm64"),
        page_size: Some(SizeText("64k".to_string())),
        file_size: Some(SizeText("512m".to_string())),
        advice: text(advice),
        exec: Some(true),
        workload: text(workload),
        accesses,
        read_ahead_kb: Some(read_ahead_kb),
        ..JobFlags::default()
    };
    spec.validate(None).expect("the conditions of this study are jobs")
}

/// All conditions with all variants.
fn conditions() -> impl Iterator<Item = ((&'static str, u64), &'static str, &'static str)> {
    let both = |condition| VARIANTS.map(|(name, variant)| (condition, name, variant));
    CONDITIONS.into_iter().flat_map(both)
}

impl Study for ExecOrder {
    /// For each condition and variant the cold phase alone, and both phases: the random phase is
    /// the difference. Then the calls that are far apart.
    fn jobs(&self) -> Vec<Job> {
        let phases = [("exec:cold", None), ("exec", Some(CALLS))];
        let both = |(condition, _, variant)| {
            phases.map(|(workload, accesses)| job(condition, variant, workload, accesses))
        };
        let (workload, calls) = FAR_APART;
        let far_apart = VARIANTS
            .map(|(_, variant)| job(("normal", CONDITIONS[0].1), variant, workload, Some(calls)));
        conditions().flat_map(both).chain(far_apart).collect()
    }

    fn find(&self, records: &[Record], _: &BeginProgress<'_>) -> Result<SeriesFindings, Error> {
        let assumed = Assumptions::from_record(&records[0], LATENCY_NS, BANDWIDTH);
        let pairs = conditions().zip(records.as_chunks::<2>().0);
        let cell = |((condition, name, variant), [cold, both]): (_, &[Record; 2])| {
            let (advice, read_ahead_kb): (&str, u64) = condition;
            let first = PhaseCounts::since(&PhaseCounts::default(), &cold.runs[0]);
            let [cold, random] = [&first, &PhaseCounts::since(&first, &both.runs[0])]
                .map(|counts| assumed.with_times(counts));
            let (name, variant): (&str, &str) = (name, variant);
            Cell {
                name: Some(name.to_string()),
                advice: Some(advice.to_string()),
                read_ahead_kb: Some(read_ahead_kb),
                variant: Some(variant.to_string()),
                job: Some(both.job.clone()),
                ..Cell::new(NAME, json!({ "cold": cold, "random": random }))
            }
        };
        let conditions: Vec<Cell> = pairs.map(cell).collect();
        let ratio = |row| ratio(row, &conditions, &assumed);
        let mut cells: Vec<Cell> = PUBLISHED.rows.iter().map(ratio).collect();
        cells.extend(conditions);
        let far_apart = &records[2 * CONDITIONS.len() * VARIANTS.len()..];
        cells.extend(VARIANTS.into_iter().zip(far_apart).map(misses));
        Ok((cells, None))
    }
}

/// Number of misses that read ahead among calls that all miss. Published for the first variant.
fn misses(((name, variant), record): ((&str, &str), &Record)) -> Cell {
    let counters = &record.runs[0].counters;
    let read_ahead = counters.readahead_calls.unwrap_or(0);
    let published = (name == VARIANTS[0].0).then_some(PUBLISHED.misses);
    let figures = json!({
        "median": read_ahead,
        "misses": counters.major_faults,
        "data_pages_read": counters.data_pages_read,
    });
    let cell = Cell {
        experiment: Some("misses that read ahead".to_string()),
        name: Some(name.to_string()),
        variant: Some(variant.to_string()),
        unit: Some("misses that read ahead".to_string()),
        published: published.map(|count| count as f64),
        error: published.map(|count| read_ahead as f64 - count as f64),
        error_unit: Some("misses".to_string()),
        tolerance: published.map(|_| "exact".to_string()),
        job: Some(record.job.clone()),
        ..Cell::new(NAME, figures)
    };
    cell.with_judgement(published.map(|count| read_ahead == count), MODEL_ONLY)
}

/// Compares a published ratio with the first two of `conditions`.
fn ratio(row: &PhaseRow, conditions: &[Cell], assumed: &Assumptions) -> Cell {
    let path = format!("{}/predicted_ms", row.phase);
    let ms = [0, 1].map(|at: usize| conditions[at].number(&path).unwrap_or(f64::NAN));
    let (own, published) = (ms[1] / ms[0], row.after_ms / row.before_ms);
    let both = |[before, after]: [f64; 2]| -> BTreeMap<String, f64> {
        [("before".to_string(), before), ("after".to_string(), after)].into()
    };
    let (advice, kb) = CONDITIONS[0];
    let mut all: Map<_, _> = assumed.0.iter().map(|(name, ns)| (name.clone(), json!(ns))).collect();
    let more = json!({ "advice": advice, "read_ahead_kb": kb, "calls": CALLS });
    all.extend(more.as_object().cloned().unwrap_or_default());
    let figures = json!({
        "ratio": own,
        "predicted_ms": both(ms),
        "walk_ns_as_published": walk_ns(row, conditions, assumed),
    });
    let cell = Cell {
        phase: Some(row.phase.clone()),
        unit: Some("time with the series as a share of that without".to_string()),
        published: Some(published),
        published_ms: Some(both([row.before_ms, row.after_ms])),
        assumed: Some(all),
        error: percent(own, published),
        error_unit: Some("%".to_string()),
        ..Cell::new(NAME, figures)
    };
    cell.with_judgement(None, if row.phase == PUBLISHED.fitted { FITTED } else { NOT_COMPARED })
}

/// Cost of a page-table walk that would give the published ratio of a phase without I/O.
fn walk_ns(row: &PhaseRow, conditions: &[Cell], assumed: &Assumptions) -> Option<f64> {
    let value = |name: &str| {
        let place = format!("{}/{name}", row.phase);
        [0, 1].map(|at: usize| conditions[at].number(&place).unwrap_or(f64::NAN))
    };
    let ([before_ms, after_ms], [before, after]) = (value("predicted_ms"), value("itlb_walks"));
    let ratio = row.after_ms / row.before_ms;
    let more = (ratio * before_ms - after_ms) * 1e6 / (after - ratio * before);
    let is_alone = value("readahead_calls") == [0.0, 0.0];
    is_alone.then(|| assumed.0.get("walk_ns").map(|walk_ns| walk_ns + more))?
}

pub fn notes<'a>(_: &Series, cells: &'a [Cell]) -> Notes<'a> {
    let assumed = cells.first().and_then(|cell| cell.assumed.as_ref());
    let text = |value: &serde_json::Value| {
        value.to_string().replace('"', "").trim_end_matches(".0").to_string()
    };
    let costs =
        assumed.map(|all| all.iter().map(|(name, value)| (name.as_str(), text(value))).collect());
    let walks = cells.iter().find_map(|cell| cell.number("walk_ns_as_published"));
    let walks = walks.map(|ns| vec![("walk_ns", format!("{ns:.0}"))]);
    vec![
        ("walks", walks.into_iter().collect()),
        ("touched", touched_values(cells).into_iter().collect()),
        ("assumed", costs.into_iter().collect()),
    ]
}

/// Pages touched and pages read by the phases.
fn touched_values(cells: &[Cell]) -> Option<Values<'_>> {
    let after = cells.iter().find(|cell| cell.variant() == VARIANTS[1].1)?;
    let job = job(CONDITIONS[0], VARIANTS[0].1, "exec:cold", None);
    let pages = job.used_pages()?;
    let mib = |pages: u64| (pages.saturating_mul(job.page_size()) >> 20).to_string();
    let read = |phase: &str| mib(after.count(&format!("{phase}/data_pages_read")));
    Some(vec![
        ("pages", pages.to_string()),
        ("mib", mib(pages)),
        ("cold", read("cold")),
        ("random", read("random")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_complete() {
        let ratio = |row: &PhaseRow| row.after_ms / row.before_ms;
        let ratios: Vec<_> = PUBLISHED.rows.iter().map(ratio).collect();
        assert_eq!(format!("{ratios:.3?}"), "[0.495, 0.767]");
    }
}
