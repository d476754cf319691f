//! One cell of the matrix: what is run, what is published, what came out.

use filemap_core::units::PageCount;
use filemap_job::{Job, JobSpec, Record, SizeText};
use serde_json::{Value, json};

use crate::published::data::{Case, Row};
use crate::stats::{Sample, percent};

const GIB: f64 = (1u64 << 30) as f64;

/// Fewer seeds do not show how far a cell spreads: a draw outside of them says nothing.
const SEEDS_OF_A_SPREAD: usize = 20;

/// A cell.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The table that it belongs to.
    pub case: &'static Case,
    /// The workload by its published name.
    pub workload: &'static str,
    /// The variant.
    pub variant: &'static str,
}

/// A cell with the model's figures.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The cell.
    pub cell: Cell,
    /// GiB read, one figure for each seed.
    pub gib: Sample,
    /// The model's figure beside the published one: the median over the seeds.
    pub figure_gib: f64,
    /// By how many percent the figure is off the published one; `None` for cells of the model
    /// alone.
    pub error_percent: Option<f64>,
    /// Whether the figure holds; `None` for cells of the model alone, and where the seeds are
    /// too few to tell.
    pub ok: Option<bool>,
    /// The record of the first seed.
    pub first: Record,
}

/// When a figure holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// It is off by at most so many percent.
    Percent(f64),
    /// The published figure lies between the smallest and the largest of the seeds.
    Spread,
    /// One of both.
    SpreadOrPercent(f64),
}

impl Cell {
    /// The published row, if there is one.
    pub fn published(&self) -> Option<&'static Row> {
        self.case.row(self.workload, self.variant)
    }

    /// Whether the accesses depend on a seed.
    pub fn is_random(&self) -> bool {
        self.workload == "random"
    }

    /// When the model's figure holds against the published one. Where the accesses are known,
    /// the figure has to agree; where they are drawn, the published one is one more draw.
    pub fn tolerance(&self) -> Tolerance {
        let large = self.case.file_gib == 20;
        match (self.workload, self.variant) {
            ("random", "p1+p2") => Tolerance::Spread,
            ("random", "baseline") if large => Tolerance::Percent(1.0),
            ("random", _) => Tolerance::SpreadOrPercent(1.0),
            ("sequential", _) => Tolerance::Percent(if large { 1.0 } else { 3.0 }),
            _ => Tolerance::Percent(if large { 0.2 } else { 0.3 }),
        }
    }

    /// The job: 1 % of the file's pages, through one mapping, from a cold cache.
    ///
    /// # Panics
    /// When the published data makes no job, which a test excludes.
    pub fn job(&self) -> Job {
        let gib = |count: u64| Some(SizeText::of(count << 30));
        let spec = JobSpec {
            workload: Some(self.workload.replace("stride", "stride:")),
            with: Some(self.variant.to_string()),
            file_size: gib(self.case.file_gib),
            ram: gib(self.case.ram_gib),
            read_ahead_kb: Some(8192),
            ..JobSpec::default()
        };
        spec.validate(None).expect("published cells are jobs")
    }
}

impl Measured {
    /// The cell with `records`, one for each seed and at least one.
    pub fn new(cell: Cell, records: &[Record]) -> Self {
        let gib = Sample::of(records.iter().map(gib_read).collect());
        let gib = gib.expect("a cell runs with at least one seed");
        let figure_gib = gib.median;
        let published = cell.published().map(|row| row.gib);
        Measured {
            error_percent: published.and_then(|published| percent(figure_gib, published)),
            ok: published.and_then(|published| cell.tolerance().holds(&gib, figure_gib, published)),
            first: records[0].clone(),
            cell,
            gib,
            figure_gib,
        }
    }

    /// Whether the published draw lies between the smallest and the largest seed's figure;
    /// `None` where nothing is published or drawn.
    pub fn inside(&self) -> Option<bool> {
        let published = self.cell.published().filter(|_| self.cell.is_random())?;
        Some(self.gib.spans(rounded_to(&self.gib, published.gib)))
    }

    /// The cell for JSON.
    pub fn json(&self) -> Value {
        let run = &self.first.runs[0];
        let published = self.cell.published();
        json!({
            "series": "mmap-miss",
            "file_gib": self.cell.case.file_gib,
            "ram_gib": self.cell.case.ram_gib,
            "workload": self.cell.workload,
            "variant": self.cell.variant,
            "unit": "GiB read",
            "published": published.map(|row| row.gib),
            "published_elapsed_s": published.map(|row| row.s),
            "published_rerun": self.cell.rerun().map(|row| row.gib),
            "figures": {
                "gib": self.figure_gib,
                "seeds": self.gib.samples.len(),
                "distribution": self.cell.is_random().then_some(&self.gib),
                "published_inside": self.inside(),
                "first_seed": { "counters": run.counters, "predicted_elapsed_ns": run.elapsed_ns },
            },
            "error": self.error_percent,
            "error_unit": "%",
            "tolerance": self.cell.tolerance().to_string(),
            "ok": self.ok,
            "job": self.first.job,
        })
    }
}

impl Cell {
    fn rerun(&self) -> Option<&'static Row> {
        self.case.rerun(self.workload, self.variant)
    }
}

impl Tolerance {
    /// Whether `figure` of the seeds' `gib` holds; `None` where that needs more seeds.
    fn holds(self, gib: &Sample, figure: f64, published: f64) -> Option<bool> {
        let near = |most: f64| percent(figure, published).is_some_and(|off| off.abs() <= most);
        let inside = || {
            let spans = gib.spans(rounded_to(gib, published));
            (spans || gib.samples.len() >= SEEDS_OF_A_SPREAD).then_some(spans)
        };
        match self {
            Tolerance::Percent(most) => Some(near(most)),
            Tolerance::Spread => inside(),
            Tolerance::SpreadOrPercent(most) if near(most) => Some(true),
            Tolerance::SpreadOrPercent(_) => inside(),
        }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tolerance::Percent(most) => write!(f, "{most} %"),
            Tolerance::Spread => f.write_str("inside the seeds' spread"),
            Tolerance::SpreadOrPercent(most) => {
                write!(f, "inside the seeds' spread, or {most} %")
            }
        }
    }
}

/// GiB that the first run of `record` read.
pub fn gib_read(record: &Record) -> f64 {
    record.runs[0].counters.bytes_read.map_or(f64::NAN, |bytes| bytes as f64 / GIB)
}

/// `job` with `gib` GiB more page cache than its RAM leaves.
pub fn with_more_cache(job: &Job, gib: f64) -> Job {
    let mut job = job.clone();
    let limit = job.machine.cache_limit.expect("published cells have RAM").0;
    let step = (gib.abs() * GIB) as u64 / job.page_size();
    let changed = if gib < 0.0 { limit - step } else { limit + step };
    job.machine.cache_limit = Some(PageCount(changed));
    job.machine.ram_bytes = None;
    job
}

/// `published`, moved onto a bound of `gib` where three decimals tell no difference.
fn rounded_to(gib: &Sample, published: f64) -> f64 {
    const HALF_A_DIGIT: f64 = 0.0005;
    let bound = published.clamp(gib.min, gib.max);
    if (bound - published).abs() <= HALF_A_DIGIT { bound } else { published }
}
