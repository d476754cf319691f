//! Programs and libraries of this machine, as their loader maps them.

use filemap_job::{Job, JobSpec, PhaseSpec, Record};
use serde_json::{Value, json};

use super::shapes::{VARIANTS, figure_columns, figures, side_by_side};
use crate::stats::percent;
use filemap_report::{Head, Table};

/// How the pages of the segments are touched: in order, and a tenth of them at random.
const TOUCHES: [&str; 2] = ["in order", "10 %"];

/// Readahead of the jobs, in KiB.
const READ_AHEAD_KB: u64 = 128;

/// The jobs of one program: each of [`TOUCHES`], without the series and with it.
pub(super) fn jobs(program: &JobSpec) -> Vec<Job> {
    let phase = |workload: &str, accesses, fraction| PhaseSpec {
        workload: Some(workload.to_string()),
        accesses,
        fraction,
        ..PhaseSpec::default()
    };
    let touches = [
        vec![phase("elf", None, Some(1.0))],
        // One page by the loader's workload, which maps the segments.
        vec![phase("elf", Some(1), None), phase("random", None, Some(0.1))],
    ];
    let jobs = touches.into_iter().flat_map(|phases| {
        VARIANTS.map(|variant| {
            let spec = JobSpec {
                with: Some(variant.to_string()),
                read_ahead_kb: Some(READ_AHEAD_KB),
                workload: None,
                phase: phases.clone(),
                ..program.clone()
            };
            spec.validate(None)
        })
    });
    // What cannot be mapped, and nothing else, is left out.
    jobs.collect::<Result<_, _>>().unwrap_or_default()
}

/// A program with its records, those of [`jobs`].
pub(super) struct Program<'a> {
    pub(super) path: &'a str,
    pub(super) records: &'a [Record],
}

impl Program<'_> {
    fn pairs(&self) -> impl Iterator<Item = (&'static str, [u64; 3], [u64; 3])> {
        let pairs = self.records.chunks(VARIANTS.len()).zip(TOUCHES);
        pairs.map(|(pair, touch)| (touch, figures(&pair[0]), figures(&pair[1])))
    }

    /// Its name without directories.
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.pairs().map(|(touch, before, after)| {
            let mut cells = vec![self.name().to_string(), touch.to_string()];
            cells.extend(side_by_side(before, after));
            let change = percent(after[1] as f64, before[1] as f64);
            cells.push(change.map_or("-".to_string(), |change| format!("{change:+.0} %")));
            cells
        })
    }

    pub(super) fn json(&self) -> Vec<Value> {
        let cell = |(touch, before, after): (&str, [u64; 3], [u64; 3])| {
            let [outside, pages, major] =
                [0, 1, 2].map(|index| json!({ "before": before[index], "after": after[index] }));
            json!({
                "series": "vma-bound",
                "name": format!("{} {touch}", self.path),
                "published": null,
                "figures": {
                    "cached_outside": outside,
                    "data_pages_read": pages,
                    "major_faults": major,
                },
                "error": null,
                "ok": null,
                "verdict": "model only",
            })
        };
        self.pairs().map(cell).collect()
    }

    pub(super) fn csv_rows(&self) -> Vec<Vec<String>> {
        let row = |touch: &str, variant: &str, figures: [u64; 3]| {
            let name = format!("{} {touch}", self.path);
            let names = ["vma-bound".to_string(), name, variant.to_string()];
            let figures = figures.map(|figure| figure.to_string());
            names.into_iter().chain(figures).chain([String::new()]).collect()
        };
        let both = |(touch, before, after)| {
            [row(touch, VARIANTS[0], before), row(touch, VARIANTS[1], after)]
        };
        self.pairs().flat_map(both).collect()
    }

    /// Pages that the series leaves outside the segments.
    pub(super) fn outside_after(&self) -> u64 {
        self.pairs().map(|(_, _, after)| after[0]).sum()
    }
}

pub(super) fn table(programs: &[Program]) -> Table {
    let mut columns = vec![Head::left("file"), Head::left("touched")];
    columns.extend(figure_columns(["outside", "read", "major"]));
    columns.push(Head::right("read\nchange"));
    Table {
        title: "Programs and libraries of this machine in the model, 128 KiB readahead".to_string(),
        columns,
        rows: programs.iter().flat_map(Program::rows).collect(),
    }
}
