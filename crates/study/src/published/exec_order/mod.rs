//! The exec-order series: 512 MiB of stubs that are called, on arm64 with pages of 64 KiB.

mod cells;
mod layout;
mod times;

use filemap_job::Job;
use serde_json::Value;

use self::cells::{CONDITIONS, JUDGED, PHASES, Pair, Ratio, VARIANTS, job};
use self::times::Assumptions;
use super::data::PUBLISHED;
use super::{Findings, Ran, Study};
use filemap_report::{Head, Table};

/// Chosen so that the cold ratio comes out, as the published device is not known: a fitted value.
const LATENCY_NS: f64 = 8_000.0;

/// What the published time of the cold phase needs at least: 512 MiB in 41.3 ms.
const BANDWIDTH: f64 = 13.0;

/// The study of the series.
pub struct ExecOrder;

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

    fn findings(&self, ran: &Ran<'_>) -> Findings {
        let records = ran.records;
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
    Table { title: String::new(), columns: names.into_iter().map(Head::left).collect(), rows }
}
