//! The exec-order series: 512 MiB of stubs that are called, on arm64 with pages of 64 KiB.

mod layout;
mod times;

use filemap_job::{Job, JobSpec, Record, SizeText};
use serde_json::{Value, json};

use self::times::{Assumptions, Counts};
use super::data::{PUBLISHED, PhaseRow};
use super::{Findings, Study, Trials};
use crate::stats::percent;
use crate::table::{Column, Table};

/// The published baseline contains vma-bound.
const VARIANTS: [&str; 2] = ["vma-bound", "vma-bound+exec-bypass+thp-order"];

/// Advice and KiB of readahead, neither of which was published. The published ratios are judged
/// on [`JUDGED`].
const CONDITIONS: [(&str, u64); 4] =
    [("hugepage", 128), ("normal", 128), ("hugepage", 2048), ("normal", 2048)];

/// The default readahead, and the advice without which the series changes nothing here.
const JUDGED: usize = 0;

/// Calls of the random phase: their number was not published.
const CALLS: u64 = 1_000_000;

/// Chosen so that the cold ratio comes out, as the published device is not known: a fitted value.
const LATENCY_NS: f64 = 8_000.0;

/// The phase that [`LATENCY_NS`] is fitted to: its ratio tests nothing.
const FITTED: &str = "cold";

/// What the published time of the cold phase needs at least: 512 MiB in 41.3 ms.
const BANDWIDTH: f64 = 13.0;

/// By how many percent a ratio may be off the published one.
const TOLERANCE_PERCENT: f64 = 10.0;

/// Phases by their published names.
const PHASES: [&str; 2] = ["cold", "random"];

/// The study of the series.
pub struct ExecOrder;

/// Both variants under one condition.
struct Pair<'a> {
    advice: &'static str,
    read_ahead_kb: u64,
    /// Of each variant, of each phase.
    counts: [[Counts; 2]; 2],
    /// Of each variant, both phases in one run.
    records: [&'a Record; 2],
    /// Of each variant, the job of the cold phase.
    jobs: [Job; 2],
}

/// A published ratio beside the model's.
struct Ratio {
    row: &'static PhaseRow,
    /// Milliseconds without the series and with it.
    ms: [f64; 2],
}

impl Ratio {
    fn figure(&self) -> f64 {
        self.ms[1] / self.ms[0]
    }

    fn error_percent(&self) -> Option<f64> {
        percent(self.figure(), self.row.ratio())
    }

    /// Whether the ratio holds; `None` for the one that is fitted.
    fn ok(&self) -> Option<bool> {
        (self.row.phase != FITTED).then(|| near(self.figure(), self.row))
    }
}

/// Whether a ratio is within the tolerance of the published one.
fn near(ratio: f64, row: &PhaseRow) -> bool {
    percent(ratio, row.ratio()).is_some_and(|off| off.abs() <= TOLERANCE_PERCENT)
}

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

impl Study for ExecOrder {
    /// For each condition and variant the cold phase alone, and both phases: what the random one
    /// counts is the difference.
    fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (advice, read_ahead_kb) in CONDITIONS {
            for variant in VARIANTS {
                let workloads = ["exec:cold", "exec"];
                jobs.extend(workloads.map(|name| job(advice, read_ahead_kb, variant, name)));
            }
        }
        jobs
    }

    fn findings(&self, records: &[Record], _: &Trials) -> Findings {
        let pair = |(&(advice, read_ahead_kb), records)| Pair::new(advice, read_ahead_kb, records);
        let pairs: Vec<Pair> = CONDITIONS.iter().zip(records.chunks(4)).map(pair).collect();
        let assumed = Assumptions::of(&records[0], LATENCY_NS, BANDWIDTH);
        let judged = &pairs[JUDGED];
        let ratios: Vec<Ratio> = PUBLISHED
            .exec_order
            .rows
            .iter()
            .map(|row| {
                let phase = PHASES.iter().position(|name| *name == row.phase);
                let phase = phase.expect("the published phases are those of the workload");
                Ratio { row, ms: [0, 1].map(|of| assumed.ms(&judged.counts[of][phase])) }
            })
            .collect();
        let mut cells: Vec<Value> = ratios.iter().map(|ratio| ratio.json(&assumed)).collect();
        cells.extend(pairs.iter().flat_map(|pair| pair.json(&assumed)));
        Findings {
            parts: layout::parts(&pairs, &ratios, &assumed),
            rows: rows(&pairs, &assumed),
            cells,
            source: &PUBLISHED.exec_order.source,
            failed: ratios.iter().filter(|ratio| ratio.ok() == Some(false)).count(),
            origin: None,
        }
    }
}

impl Ratio {
    fn json(&self, assumed: &Assumptions) -> Value {
        json!({
            "series": "exec-order",
            "phase": self.row.phase,
            "unit": "time with the series as a share of that without",
            "published": self.row.ratio(),
            "published_ms": { "before": self.row.before_ms, "after": self.row.after_ms },
            "figures": {
                "ratio": self.figure(),
                "predicted_ms": { "before": self.ms[0], "after": self.ms[1] },
            },
            "assumed": {
                "advice": CONDITIONS[JUDGED].0,
                "read_ahead_kb": CONDITIONS[JUDGED].1,
                "calls": CALLS,
                "latency_ns": assumed.latency_ns,
                "bandwidth_gb_s": assumed.bandwidth,
                "touch_ns": assumed.touch_ns,
                "call_ns": assumed.call_ns,
                "second_ns": assumed.second_ns,
                "walk_ns": assumed.walk_ns,
                "fault_ns": assumed.fault_ns,
                "add_page_ns": assumed.add_page_ns,
            },
            "error": self.error_percent(),
            "error_unit": "%",
            "tolerance": format!("{TOLERANCE_PERCENT} %"),
            "ok": self.ok(),
            "verdict": match self.ok() {
                None => "fitted",
                Some(true) => "ok",
                Some(false) => "fail",
            },
        })
    }
}

impl<'a> Pair<'a> {
    /// `records` are those of the cold phase and of both phases, for each variant.
    fn new(advice: &'static str, read_ahead_kb: u64, records: &'a [Record]) -> Pair<'a> {
        let phases = |cold: &Record, both: &Record| {
            let cold = Counts::of(&cold.runs[0]);
            [cold, Counts::of(&both.runs[0]).since(cold)]
        };
        let counts = [phases(&records[0], &records[1]), phases(&records[2], &records[3])];
        let jobs = VARIANTS.map(|variant| job(advice, read_ahead_kb, variant, "exec:cold"));
        Pair { advice, read_ahead_kb, counts, records: [&records[1], &records[3]], jobs }
    }

    fn json(&self, assumed: &Assumptions) -> Vec<Value> {
        let phase = |counts: &Counts| {
            json!({
                "calls": counts.calls,
                "data_pages_read": counts.pages,
                "major_faults": counts.major,
                "minor_faults": counts.minor,
                "readahead_calls": counts.windows,
                "async_readahead": counts.in_advance,
                "itlb_misses": counts.misses,
                "itlb_walks": counts.walks,
                "predicted_ms": assumed.ms(counts),
            })
        };
        let cell = |variant: usize| {
            json!({
                "series": "exec-order",
                "advice": self.advice,
                "read_ahead_kb": self.read_ahead_kb,
                "variant": VARIANTS[variant],
                "published": null,
                "figures": {
                    "cold": phase(&self.counts[variant][0]),
                    "random": phase(&self.counts[variant][1]),
                },
                "error": null,
                "ok": null,
                "verdict": "model only",
                "job": self.records[variant].job,
            })
        };
        [0, 1].map(cell).to_vec()
    }
}

fn rows(pairs: &[Pair], assumed: &Assumptions) -> Table {
    let names = [
        "series",
        "advice",
        "read_ahead_kb",
        "variant",
        "phase",
        "major_faults",
        "minor_faults",
        "readahead_calls",
        "data_pages",
        "itlb_misses",
        "itlb_walks",
        "predicted_ms",
    ];
    let mut rows = Vec::new();
    for pair in pairs {
        for (variant, phases) in VARIANTS.iter().zip(&pair.counts) {
            for (phase, counts) in PHASES.iter().zip(phases) {
                rows.push(vec![
                    "exec-order".to_string(),
                    pair.advice.to_string(),
                    pair.read_ahead_kb.to_string(),
                    (*variant).to_string(),
                    (*phase).to_string(),
                    counts.major.to_string(),
                    counts.minor.to_string(),
                    counts.windows.to_string(),
                    counts.pages.to_string(),
                    counts.misses.to_string(),
                    counts.walks.to_string(),
                    assumed.ms(counts).to_string(),
                ]);
            }
        }
    }
    Table { title: String::new(), columns: names.into_iter().map(Column::left).collect(), rows }
}
