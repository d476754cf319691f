//! The cells of the series: counters under each condition, and the published ratios.

use filemap_job::{Job, JobSpec, Record, SizeText};
use serde_json::{Value, json};

use super::times::{Assumptions, Counts};
use crate::published::data::PhaseRow;
use crate::stats::percent;

/// The published baseline contains vma-bound.
pub const VARIANTS: [&str; 2] = ["vma-bound", "vma-bound+exec-bypass+thp-order"];

/// Advice and KiB of readahead, neither of which was published. The published ratios are judged
/// on [`JUDGED`].
pub const CONDITIONS: [(&str, u64); 4] =
    [("hugepage", 128), ("normal", 128), ("hugepage", 2048), ("normal", 2048)];

/// The default readahead, and the advice without which the series changes nothing here.
pub const JUDGED: usize = 0;

/// Calls of the random phase: their number was not published.
pub const CALLS: u64 = 1_000_000;

/// The phase that the latency is fitted to: its ratio tests nothing.
pub const FITTED: &str = "cold";

/// By how many percent a ratio may be off the published one.
pub const TOLERANCE_PERCENT: f64 = 10.0;

/// Phases by their published names.
pub const PHASES: [&str; 2] = ["cold", "random"];

/// Both variants under one condition.
pub struct Pair<'a> {
    pub advice: &'static str,
    pub read_ahead_kb: u64,
    /// Of each variant, of each phase.
    pub counts: [[Counts; 2]; 2],
    /// Of each variant, both phases in one run.
    pub records: [&'a Record; 2],
    /// Of each variant, the job of the cold phase.
    pub jobs: [Job; 2],
}

/// A published ratio beside the model's.
pub struct Ratio {
    pub row: &'static PhaseRow,
    /// Milliseconds without the series and with it.
    pub ms: [f64; 2],
}

impl Ratio {
    pub fn figure(&self) -> f64 {
        self.ms[1] / self.ms[0]
    }

    pub fn error_percent(&self) -> Option<f64> {
        percent(self.figure(), self.row.ratio())
    }

    /// Whether the ratio holds; `None` for the one that is fitted.
    pub fn ok(&self) -> Option<bool> {
        (self.row.phase != FITTED).then(|| near(self.figure(), self.row))
    }
}

/// Whether a ratio is within the tolerance of the published one.
pub fn near(ratio: f64, row: &PhaseRow) -> bool {
    percent(ratio, row.ratio()).is_some_and(|off| off.abs() <= TOLERANCE_PERCENT)
}

pub fn job(advice: &str, read_ahead_kb: u64, variant: &str, workload: &str) -> Job {
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

impl Ratio {
    pub fn json(&self, assumed: &Assumptions) -> Value {
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
    pub fn new(advice: &'static str, read_ahead_kb: u64, records: &'a [Record]) -> Pair<'a> {
        let phases = |cold: &Record, both: &Record| {
            let cold = Counts::of(&cold.runs[0]);
            [cold, Counts::of(&both.runs[0]).since(cold)]
        };
        let counts = [phases(&records[0], &records[1]), phases(&records[2], &records[3])];
        let jobs = VARIANTS.map(|variant| job(advice, read_ahead_kb, variant, "exec:cold"));
        Pair { advice, read_ahead_kb, counts, records: [&records[1], &records[3]], jobs }
    }

    pub fn json(&self, assumed: &Assumptions) -> Vec<Value> {
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
