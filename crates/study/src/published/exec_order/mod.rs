//! The exec-order series: 512 MiB of stubs that are called, on arm64 with pages of 64 KiB.

mod times;

use std::collections::BTreeMap;

use filemap_job::{Job, JobSpec, Record, SizeText};
use filemap_report::{Column, Head, Part, Table, csv, digits, figures, raw, table, words};
use serde_json::{Map, json};

use self::times::{Assumptions, Counts};
use super::cell::Cell;
use super::data::{ExecOrder as Published, PUBLISHED, PhaseRow};
use super::tolerance::Tolerance;
use super::{Begin, Found, Study};
use crate::error::Error;
use crate::stats::{Sample, percent};

pub const NAME: &str = "exec-order";

/// The published baseline contains vma-bound.
const VARIANTS: [&str; 2] = ["vma-bound", "vma-bound+exec-bypass+thp-order"];

/// Advice and KiB of readahead, neither of which was published. The published ratios are judged on
/// the first: the default readahead, and the advice without which the series changes nothing here.
const CONDITIONS: [(&str, u64); 4] =
    [("hugepage", 128), ("normal", 128), ("hugepage", 2048), ("normal", 2048)];

/// Calls of the random phase: their number was not published.
const CALLS: u64 = 1_000_000;

/// Phases by their published names.
const PHASES: [&str; 2] = ["cold", "random"];

/// Chosen so that the cold ratio comes out, as the published device is not known: a fitted value.
const LATENCY_NS: f64 = 8_000.0;

/// What the published time of the cold phase needs at least: 512 MiB in 41.3 ms.
const BANDWIDTH: f64 = 13.0;

/// Nanoseconds of a walk and of a call that a region spans.
const WALKS_NS: [f64; 6] = [10.0, 15.0, 20.0, 30.0, 40.0, 60.0];
const CALLS_NS: [f64; 5] = [20.0, 30.0, 40.0, 60.0, 80.0];

/// Microseconds of latency and GB a second that the other region spans.
const LATENCIES_US: [f64; 6] = [2.0, 4.0, 8.0, 16.0, 54.0, 100.0];
const BANDWIDTHS: [f64; 5] = [1.3, 3.25, 6.5, 13.0, 26.0];

/// The study of the series.
pub struct ExecOrder;

fn job(advice: &str, read_ahead_kb: u64, variant: &str, workload: &str) -> Job {
    let text = |text: &str| Some(text.to_string());
    let spec = JobSpec {
        kernel: text("mm-2026-05"),
        with: text(variant),
        arch: text("arm64"),
        page_size: Some(SizeText("64k".to_string())),
        file_size: Some(SizeText("512m".to_string())),
        advice: text(advice),
        exec: Some(true),
        workload: text(workload),
        accesses: (workload == "exec").then_some(CALLS),
        read_ahead_kb: Some(read_ahead_kb),
        ..JobSpec::default()
    };
    spec.validate(None).expect("the conditions of this study are jobs")
}

fn conditions() -> impl Iterator<Item = (&'static str, u64, &'static str)> {
    let conditions = CONDITIONS.into_iter();
    conditions.flat_map(|(advice, kb)| VARIANTS.map(|variant| (advice, kb, variant)))
}

impl Study for ExecOrder {
    /// For each condition and variant the cold phase alone, and both phases: what the random one
    /// counts is the difference.
    fn jobs(&self) -> Vec<Job> {
        let both = |(advice, kb, variant)| {
            ["exec:cold", "exec"].map(|workload| job(advice, kb, variant, workload))
        };
        conditions().flat_map(both).collect()
    }

    fn found(&self, records: &[Record], _: &Begin<'_>) -> Result<Found, Error> {
        let assumed = Assumptions::of(&records[0], LATENCY_NS, BANDWIDTH);
        let of = |((advice, read_ahead_kb, variant), records): ((&str, u64, &str), _)| {
            let [cold, both]: &[Record; 2] = records;
            let first = Counts::since(Counts::default(), &cold.runs[0]);
            let phases = [first, Counts::since(first, &both.runs[0])];
            let shown = phases.map(|counts| {
                let mut shown = json!(counts);
                shown["predicted_ms"] = assumed.ms(&counts).into();
                shown
            });
            let [cold, random] = shown;
            Cell {
                advice: Some(advice.to_string()),
                read_ahead_kb: Some(read_ahead_kb),
                variant: Some(variant.to_string()),
                job: Some(both.job.flags().into_owned()),
                ..Cell::new(NAME, json!({ "cold": cold, "random": random }))
            }
        };
        let (both, _) = records.as_chunks::<2>();
        let pairs: Vec<Cell> = conditions().zip(both).map(of).collect();
        let ratio = |row: &PhaseRow| {
            let path = format!("{}/predicted_ms", row.phase);
            let ms = [0, 1].map(|variant: usize| pairs[variant].number(&path).unwrap_or(f64::NAN));
            ratio(row, ms, &assumed)
        };
        let mut cells: Vec<Cell> = PUBLISHED.exec_order.rows.iter().map(ratio).collect();
        cells.extend(pairs);
        Ok(Found { series: NAME, cells, origin: None })
    }
}

/// A published ratio beside the model's, which takes so many milliseconds without the series and
/// with it.
fn ratio(row: &PhaseRow, ms: [f64; 2], assumed: &Assumptions) -> Cell {
    let Published { tolerance_percent, fitted, .. } = &PUBLISHED.exec_order;
    let figure = ms[1] / ms[0];
    let tolerance = Tolerance::Percent(*tolerance_percent);
    let both = |of: [f64; 2]| -> BTreeMap<String, f64> {
        ["before", "after"].into_iter().map(str::to_string).zip(of).collect()
    };
    let (advice, read_ahead_kb) = CONDITIONS[0];
    let serde_json::Value::Object(mut all) = json!(assumed) else { return Cell::default() };
    let more = [("advice", json!(advice)), ("read_ahead_kb", json!(read_ahead_kb))];
    all.extend(more.into_iter().chain([("calls", json!(CALLS))]).map(|(key, of)| (key.into(), of)));
    let cell = Cell {
        phase: Some(row.phase.clone()),
        unit: Some("time with the series as a share of that without".to_string()),
        published: Some(row.ratio()),
        published_ms: Some(both([row.before_ms, row.after_ms])),
        assumed: Some(all),
        error: percent(figure, row.ratio()),
        error_unit: Some("%".to_string()),
        tolerance: Some(tolerance.to_string()),
        ..Cell::new(NAME, json!({ "ratio": figure, "predicted_ms": both(ms) }))
    };
    let own = Sample::of(vec![figure]).filter(|_| row.phase != *fitted);
    cell.judged(own.and_then(|own| tolerance.holds(&own, row.ratio())), "fitted")
}

const RATIOS: [Column<Cell>; 7] = [
    words("phase", |cell| cell.phase.clone().into()),
    figures("published ms", |cell| {
        let ms = |key: &str| cell.published_ms.as_ref()?.get(key).copied();
        ms("before").zip(ms("after")).map(|(before, after)| format!("{before} -> {after}")).into()
    }),
    figures("model ms", |cell| {
        let ms = |key: &str| cell.number(&format!("predicted_ms/{key}"));
        let both = ms("before").zip(ms("after"));
        both.map(|(before, after)| format!("{before:.1} -> {after:.1}")).into()
    }),
    figures("published", |cell| digits(cell.published, 3)),
    figures("model", |cell| digits(cell.number("ratio"), 3)),
    figures("error", |cell| cell.error.map(|error| format!("{error:+.1} %")).into()),
    words("verdict", |cell| cell.said().into()),
];

/// What a phase counted under one condition.
#[derive(Clone, Copy)]
struct Counted<'a> {
    cell: &'a Cell,
    phase: &'static str,
}

impl Counted<'_> {
    fn counts(self) -> Counts {
        self.cell.read(self.phase).unwrap_or_default()
    }
}

/// `cells` with each of `phases`.
fn counted<'a>(cells: &'a [Cell], phases: &[&'static str]) -> Vec<Counted<'a>> {
    let of = |cell| phases.iter().map(move |&phase| Counted { cell, phase });
    cells.iter().flat_map(of).collect()
}

fn counts_table(phase: &'static str, cells: &[Cell]) -> Table {
    let columns: [Column<Counted>; 9] = [
        words("advice", |of| of.cell.advice.clone().into()),
        figures("readahead\nKiB", |of| of.cell.read_ahead_kb.map(|kb| kb.to_string()).into()),
        words("variant", |of| {
            if of.cell.variant() == VARIANTS[0] { "before" } else { "after" }.into()
        }),
        figures("major", |of| of.counts().major_faults.to_string().into()),
        figures("minor", |of| of.counts().minor_faults.to_string().into()),
        figures("windows", |of| of.counts().readahead_calls.to_string().into()),
        figures("pages\nread", |of| of.counts().data_pages_read.to_string().into()),
        figures("TLB\nmisses", |of| of.counts().itlb_misses.to_string().into()),
        figures("walks", |of| of.counts().itlb_walks.to_string().into()),
    ];
    table(format!("Counts of the {phase} phase"), &columns, &counted(cells, &[phase]))
}

/// One row for each condition, variant and phase.
pub fn rows(cells: &[Cell]) -> Table {
    let columns: [Column<Counted>; 12] = [
        raw("series", |_| NAME.into()),
        raw("advice", |of| of.cell.advice.clone().into()),
        raw("read_ahead_kb", |of| of.cell.read_ahead_kb.into()),
        raw("variant", |of| of.cell.variant().into()),
        raw("phase", |of| of.phase.into()),
        raw("major_faults", |of| of.counts().major_faults.into()),
        raw("minor_faults", |of| of.counts().minor_faults.into()),
        raw("readahead_calls", |of| of.counts().readahead_calls.into()),
        raw("data_pages", |of| of.counts().data_pages_read.into()),
        raw("itlb_misses", |of| of.counts().itlb_misses.into()),
        raw("itlb_walks", |of| of.counts().itlb_walks.into()),
        raw("predicted_ms", |of| of.cell.number(&format!("{}/predicted_ms", of.phase)).into()),
    ];
    csv(&columns, &counted(conditions_of(cells), &PHASES))
}

/// The cells of conditions, which come behind those of ratios.
fn conditions_of(cells: &[Cell]) -> &[Cell] {
    &cells[cells.partition_point(|cell| cell.phase.is_some())..]
}

pub fn parts(cells: &[Cell]) -> Vec<Part> {
    let Published { about, tolerance_percent, .. } = &PUBLISHED.exec_order;
    let pairs = conditions_of(cells);
    let ratios = &cells[..cells.len() - pairs.len()];
    let assumed = ratios.first().and_then(|cell| cell.assumed.as_ref());
    let note = |name: &str, values: &[(&str, String)]| Part::Paragraph(about.note(name, values));
    let (advice, kb) = CONDITIONS[0];
    let title = format!("Time after / before, advice {advice}, {kb} KiB readahead");
    let mut parts = vec![Part::Table(table(title, &RATIOS, ratios))];
    parts.extend(touched(pairs).map(|values| note("touched", &values)));
    parts.extend(assumed.map(|assumed| note("assumed", &costs(assumed, *tolerance_percent))));
    parts.extend(PHASES.map(|phase| Part::Table(counts_table(phase, pairs))));
    parts.push(note("counts", &[]));
    let assumed: Option<Assumptions> =
        assumed.and_then(|map| serde_json::from_value(map.clone().into()).ok());
    if let (Some(assumed), [before, after, ..]) = (assumed, pairs) {
        parts.extend(regions(&assumed, [before, after]).map(Part::Table));
    }
    parts.push(note("regions", &[]));
    parts
}

/// How much the phases touch beside what they read.
fn touched(pairs: &[Cell]) -> Option<[(&'static str, String); 4]> {
    let [_, after, ..] = pairs else { return None };
    let job = job(CONDITIONS[0].0, CONDITIONS[0].1, VARIANTS[0], "exec:cold");
    let pages = job.used_pages()?;
    let mib = |pages: u64| (pages.saturating_mul(job.page_size()) >> 20).to_string();
    let read = |phase: &str| after.count(&format!("{phase}/data_pages_read"));
    Some([
        ("pages", pages.to_string()),
        ("mib", mib(pages)),
        ("cold", mib(read("cold"))),
        ("random", mib(read("random"))),
    ])
}

fn costs(assumed: &Map<String, serde_json::Value>, tolerance: f64) -> Vec<(&'static str, String)> {
    let of = |key: &str| assumed.get(key).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN);
    vec![
        ("calls", CALLS.to_string()),
        ("latency", (of("latency_ns") / 1000.0).to_string()),
        ("bandwidth", of("bandwidth_gb_s").to_string()),
        ("call", of("call_ns").to_string()),
        ("touch", of("touch_ns").to_string()),
        ("second", of("second_ns").to_string()),
        ("walk", of("walk_ns").to_string()),
        ("fault", of("fault_ns").to_string()),
        ("add", of("add_page_ns").to_string()),
        ("tolerance", tolerance.to_string()),
    ]
}

/// Where the ratios hold: the random one over the time of a walk and of a call, the cold one over
/// the device.
fn regions(assumed: &Assumptions, pair: [&Cell; 2]) -> [Table; 2] {
    let ratio = |phase: &str, assumed: &Assumptions| {
        let [before, after] = pair.map(|cell| assumed.ms(&cell.read(phase).unwrap_or_default()));
        after / before
    };
    [
        region("ns a walk, by ns a call", "random", &WALKS_NS, &CALLS_NS, |walk_ns, call_ns| {
            ratio("random", &Assumptions { walk_ns, call_ns, ..*assumed })
        }),
        region("us of latency, by GB/s", "cold", &LATENCIES_US, &BANDWIDTHS, |us, gb_s| {
            let latency_ns = us * 1000.0;
            ratio("cold", &Assumptions { latency_ns, bandwidth_gb_s: gb_s, ..*assumed })
        }),
    ]
}

/// Ratios of a phase over two constants; those that hold have a star.
fn region(
    axes: &str,
    phase: &str,
    down: &[f64],
    across: &[f64],
    ratio: impl Fn(f64, f64) -> f64,
) -> Table {
    let Published { rows, tolerance_percent, .. } = &PUBLISHED.exec_order;
    let published = rows.iter().find(|row| row.phase == phase).map_or(f64::NAN, PhaseRow::ratio);
    let holds =
        |ratio| percent(ratio, published).is_some_and(|off| off.abs() <= *tolerance_percent);
    let cell = |ratio: f64| format!("{ratio:.3}{}", if holds(ratio) { "*" } else { " " });
    let row = |&first: &f64| {
        let cells = across.iter().map(|&second| cell(ratio(first, second)));
        std::iter::once(first.to_string()).chain(cells).collect()
    };
    let mut columns = vec![Head::right("")];
    columns.extend(across.iter().map(|value| Head::right(format!("{value} "))));
    Table {
        title: format!("Where the {phase} ratio holds (*): {axes}"),
        columns,
        rows: down.iter().map(row).collect(),
    }
}
