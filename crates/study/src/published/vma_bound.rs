//! The vma-bound series: fio's rows, which it does not affect, and jobs that it does.

use std::sync::LazyLock;

use filemap_job::{Job, JobFlags, PhaseSpec, Record};
use serde::Deserialize;
use serde_json::json;

use super::cell::{Cell, FAILS, NOT_COMPARED};
use super::cell_table::signed;
use super::data::{Notes, Series, Values};
use super::study::{
    BeginProgress, PublishedOptions, SeriesFindings, Study, StudyLength, StudyResult,
};
use crate::error::Error;
use crate::stats::{SampleStats, percent};

pub const NAME: &str = "vma-bound";

static PUBLISHED: LazyLock<VmaBoundData> = LazyLock::new(|| Series::figures(NAME));

/// Without the series, and with it.
const VARIANTS: [&str; 2] = ["baseline", NAME];

/// Access patterns of a program's segments: in order, or a random tenth.
const TOUCHES: [&str; 2] = ["in order", "10 %"];

/// Readahead of the jobs with programs, in KiB.
const READ_AHEAD_KB: u64 = 128;

#[derive(Deserialize)]
struct VmaBoundData {
    rows: Vec<FioRow>,
    /// Jobs shaped like fio's.
    fio: Vec<Shape>,
    /// Jobs that reach the end of a mapping.
    seeing: Vec<Shape>,
}

/// A job of fio: five runs before, five after.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FioRow {
    ioengine: String,
    rw: String,
    before_mib_s: Vec<f64>,
    after_mib_s: Vec<f64>,
}

/// A job that runs without and with the series.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    name: String,
    job: JobFlags,
}

/// The study of the series.
struct VmaBound {
    /// Programs of this machine and their jobs.
    programs: Vec<(String, Vec<Job>)>,
    /// Names of missing programs.
    absent: Vec<String>,
}

/// The study, with programs of this machine if there are any.
pub fn study(options: &PublishedOptions, _: StudyLength) -> StudyResult {
    let jobs = |spec: &JobFlags| Some((spec.file.clone()?, program_jobs(spec)));
    let programs = options.programs.iter().filter_map(jobs);
    let programs = programs.filter(|(_, jobs)| !jobs.is_empty()).collect();
    Ok(Box::new(VmaBound { programs, absent: options.absent.clone() }))
}

/// Number of published figures: fio's rows, and the claim that nothing outside is cached.
pub fn figures() -> usize {
    PUBLISHED.rows.len() + 1
}

/// All shapes, with their purpose.
fn shapes() -> impl Iterator<Item = (&'static str, &'static Shape)> {
    let fio = PUBLISHED.fio.iter().map(|shape| ("shapes of fio", shape));
    fio.chain(PUBLISHED.seeing.iter().map(|shape| ("ends of mappings", shape)))
}

impl Shape {
    fn job(&self, variant: &str) -> Job {
        let spec = JobFlags { with: Some(variant.to_string()), ..self.job.clone() };
        spec.validate(None).expect("the shapes of this study are jobs")
    }

    /// Whether it faults: the claim is about faults, read(2) is not bounded by a mapping.
    fn faults(&self) -> bool {
        self.job.workload.as_ref().is_some_and(|workload| !workload.starts_with("read-"))
    }
}

/// Jobs of a program: each access pattern without and with the series.
fn program_jobs(program: &JobFlags) -> Vec<Job> {
    let phase = |workload: &str, accesses: Option<u64>, fraction: Option<f64>| PhaseSpec {
        workload: Some(workload.to_string()),
        accesses,
        fraction,
        ..PhaseSpec::default()
    };
    let touches = [
        vec![phase("elf", None, Some(1.0))],
        // One page by workload `elf`, which maps the segments.
        vec![phase("elf", Some(1), None), phase("random", None, Some(0.1))],
    ];
    let jobs = touches.into_iter().flat_map(|phases| {
        VARIANTS.map(|variant| {
            let spec = JobFlags {
                with: Some(variant.to_string()),
                read_ahead_kb: Some(READ_AHEAD_KB),
                workload: None,
                phase: phases.clone(),
                ..program.clone()
            };
            spec.validate(None)
        })
    });
    // Only programs that cannot be mapped are left out.
    jobs.collect::<Result<_, _>>().unwrap_or_default()
}

impl Study for VmaBound {
    fn jobs(&self) -> Vec<Job> {
        let shapes = shapes().flat_map(|(_, shape)| VARIANTS.map(|variant| shape.job(variant)));
        shapes.chain(self.programs.iter().flat_map(|(_, jobs)| jobs.clone())).collect()
    }

    fn find(&self, records: &[Record], _: &BeginProgress<'_>) -> Result<SeriesFindings, Error> {
        let mut outside_after = 0;
        let mut cells = Vec::new();
        let mut records = records.iter();
        for (job, shape) in shapes() {
            for (variant, record) in VARIANTS.into_iter().zip(records.by_ref()) {
                let is_judged = variant == NAME && shape.faults();
                outside_after += if is_judged { outside(record) } else { 0 };
                cells.push(shape_cell(job, shape, variant, record));
            }
        }
        let touches = self.programs.iter().flat_map(|(path, _)| TOUCHES.map(|touch| (path, touch)));
        for ((path, touch), [before, after]) in touches.zip(records.as_slice().as_chunks::<2>().0) {
            outside_after += outside(after);
            cells.push(program_cell(path, touch, [before, after]));
        }
        cells.extend(self.absent.iter().map(|file| absent_cell(file)));
        cells.extend(PUBLISHED.rows.iter().map(fio_cell));
        // The published claim that the model can check.
        let claim = Cell {
            name: Some("pages that faults cache outside the mapping".to_string()),
            variant: Some(NAME.to_string()),
            published: Some(0.0),
            error: Some(outside_after as f64),
            error_unit: Some("pages".to_string()),
            ..Cell::new(NAME, json!({ "cached_outside": outside_after }))
        };
        cells.push(claim.with_judgement(Some(outside_after == 0), NOT_COMPARED));
        Ok((cells, None))
    }
}

/// Pages cached outside the mapping.
fn outside(record: &Record) -> u64 {
    let cached = &record.runs[0].cached;
    [cached.before, cached.between, cached.after].into_iter().flatten().sum()
}

fn shape_cell(workload: &str, shape: &Shape, variant: &str, record: &Record) -> Cell {
    let run = &record.runs[0];
    let figures = json!({
        "cached_outside": outside(record),
        "cached": run.cached,
        "counters": run.counters,
    });
    Cell {
        experiment: Some(workload.to_string()),
        name: Some(shape.name.clone()),
        variant: Some(variant.to_string()),
        touched_pages: shape.job(VARIANTS[0]).used_pages(),
        job: Some(record.job.clone()),
        ..Cell::new(NAME, figures)
    }
}

/// A program without and with the series, in one access pattern.
fn program_cell(path: &str, touch: &str, both: [&Record; 2]) -> Cell {
    let counts = |count: fn(&Record) -> u64| {
        let [before, after] = both.map(count);
        json!({ "before": before, "after": after })
    };
    let elapsed_ns = both.map(|record| record.runs[0].elapsed_ns.unwrap_or(0) as f64);
    let figures = json!({
        "file": path.rsplit('/').next(),
        "touched": touch,
        "cached_outside": counts(outside),
        "data_pages_read": counts(|record| record.runs[0].counters.data_pages_read.unwrap_or(0)),
        "major_faults": counts(|record| record.runs[0].counters.major_faults.unwrap_or(0)),
        "elapsed_ns": { "before": elapsed_ns[0], "after": elapsed_ns[1] },
        "elapsed_change_percent": percent(elapsed_ns[1], elapsed_ns[0]),
    });
    Cell { name: Some(format!("{path} {touch}")), ..Cell::new(NAME, figures) }
}

/// A program missing on this machine.
fn absent_cell(file: &str) -> Cell {
    Cell { name: Some(file.to_string()), ..Cell::new(NAME, json!({ "is_absent": true })) }
}

/// A published row that the model does not reproduce.
fn fio_cell(row: &FioRow) -> Cell {
    let [before, after] = [&row.before_mib_s, &row.after_mib_s]
        .map(|runs| SampleStats::from_sorted(runs.clone()).expect("each row has five runs"));
    let range = |runs: &SampleStats| format!("{}-{}", runs.min, runs.max);
    let figures = json!({
        "published_mib_s": { "before": row.before_mib_s, "after": row.after_mib_s },
        "published_median_mib_s": { "before": before.median, "after": after.median },
        "published_range_mib_s": { "before": range(&before), "after": range(&after) },
        "published_change_percent": percent(after.median, before.median),
    });
    let name = Some(format!("fio {} {}", row.ioengine, row.rw));
    Cell { name, ..Cell::new(NAME, figures) }.with_judgement(None, NOT_COMPARED)
}

pub fn notes<'a>(_: &Series, cells: &'a [Cell]) -> Notes<'a> {
    let fails = cells.iter().find(|cell| cell.verdict == FAILS);
    let fails = fails.map(|cell| vec![("pages", cell.count("cached_outside").to_string())]);
    let once = |is_so: bool| if is_so { vec![Vec::new()] } else { Vec::new() };
    let absent = cells.iter().filter(|cell| cell.at("is_absent").is_some());
    let absent: Vec<&str> = absent.filter_map(|cell| cell.name.as_deref()).collect();
    let files = (!absent.is_empty()).then(|| vec![("files", absent.join(", "))]);
    vec![
        ("revert", revert(cells).into_iter().collect()),
        ("absent", files.into_iter().collect()),
        ("holds", once(fails.is_none())),
        ("fails", fails.into_iter().collect()),
    ]
}

/// Effect of the series on programs touched in order; `None` without any.
fn revert(cells: &[Cell]) -> Option<Values<'_>> {
    let is_in_order = |cell: &&Cell| cell.at("touched").is_some_and(|how| how == TOUCHES[0]);
    let programs: Vec<&Cell> = cells.iter().filter(is_in_order).collect();
    let majors = |cell: &Cell| {
        ["after", "before"].map(|variant| cell.count(&format!("major_faults/{variant}")))
    };
    let worse = programs.iter().filter(|cell| majors(cell)[0] > majors(cell)[1]).count();
    let [most, least] = programs.iter().map(|cell| majors(cell)).max()?;
    let range = |percents: Vec<f64>| {
        let percents = SampleStats::from_sorted(percents)?;
        let [from, to] = [percents.min, percents.max].map(|percent| signed(percent, 1));
        Some(if from == to { format!("{from} %") } else { format!("{from} to {to} %") })
    };
    let change = |cell: &&Cell| cell.number("elapsed_change_percent");
    let pages = |cell: &&Cell| {
        let [after, before] =
            ["after", "before"].map(|variant| cell.number(&format!("data_pages_read/{variant}")));
        percent(after?, before?)
    };
    Some(vec![
        ("programs", programs.len().to_string()),
        ("worse", worse.to_string()),
        ("most", most.to_string()),
        ("least", least.to_string()),
        ("change", range(programs.iter().filter_map(change).collect())?),
        ("pages", range(programs.iter().filter_map(pages).collect())?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_complete() {
        let five = |row: &FioRow| row.before_mib_s.len() == 5 && row.after_mib_s.len() == 5;
        assert!(PUBLISHED.rows.len() == 4 && PUBLISHED.rows.iter().all(five));
        let jobs = study(&PublishedOptions::default(), StudyLength::Short).unwrap().jobs();
        assert_eq!(jobs.len(), 2 * (4 + 10));
    }
}
