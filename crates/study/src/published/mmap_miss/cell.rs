//! One cell of the matrix: what is run, what is published, what came out.

use filemap_core::units::PageCount;
use filemap_job::{Job, JobSpec, Record, SizeText};
use serde_json::{Value, json};

use super::published_vs_model::{BESIDE, Beside};
use crate::published::data::{Case, Row};
use crate::stats::{Sample, percent};

/// How much more and less page cache the study tries, in GiB.
pub const CAPACITY_STEP_GIB: f64 = 0.1;

const GIB: f64 = (1u64 << 30) as f64;

/// GiB by which a figure of three decimals may have been rounded.
pub const HALF_A_DIGIT: f64 = 0.0005;

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
    /// GiB of the file that the accesses of the first seed touch at all, each page once.
    pub touched_gib: f64,
    /// The record of the first seed.
    pub first: Record,
}

/// When a figure holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// It is not above the published one, and below it by no more than a counter of the whole
    /// machine counts beside the file; both within the published one's rounding.
    Below(Beside),
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
    /// the pages of the file must be what is left of the published figure without what else the
    /// machine read; where they are drawn, the published one is one more draw.
    pub fn tolerance(&self) -> Tolerance {
        let large = self.case.file_gib == 20;
        match (self.workload, self.variant) {
            ("random", "p1+p2") => Tolerance::Spread,
            ("random", "baseline") if large => Tolerance::Percent(1.0),
            ("random", _) => Tolerance::SpreadOrPercent(1.0),
            _ => Tolerance::Below(*BESIDE),
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
            touched_gib: {
                let job = cell.job();
                let pages = job.used_pages();
                let pages = pages.expect("a published file has few enough pages to count");
                (pages * job.page_size()) as f64 / GIB
            },
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

    /// By how many MiB the figure is below the published one; of accesses that are known.
    pub fn below_mib(&self) -> Option<f64> {
        let published = self.cell.published().filter(|_| !self.cell.is_random())?;
        Some((published.gib - self.figure_gib) * 1024.0)
    }

    /// The verdict in a word or two.
    pub fn verdict(&self) -> &'static str {
        match self.ok {
            Some(true) => "ok",
            Some(false) => "fail",
            None if self.cell.published().is_some() => "needs more seeds",
            None => "model only",
        }
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
            "touched_gib": self.touched_gib,
            "error": self.error_percent,
            "error_unit": "%",
            "below_mib": self.below_mib(),
            "tolerance": self.cell.tolerance().to_string(),
            "ok": self.ok,
            "verdict": self.verdict(),
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
            Tolerance::Below(beside) => {
                let below = published - figure;
                Some((-HALF_A_DIGIT..=beside.bound_gib(figure) + HALF_A_DIGIT).contains(&below))
            }
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
            Tolerance::Below(Beside { fixed_kib, kib_for_a_gib }) => {
                write!(f, "0 to {fixed_kib:.0} KiB + {kib_for_a_gib:.0} KiB/GiB below")
            }
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
    let bound = published.clamp(gib.min, gib.max);
    if (bound - published).abs() <= HALF_A_DIGIT { bound } else { published }
}

/// With as many decimals as published.
pub fn gib_text(value: f64) -> String {
    format!("{value:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BESIDE_4_MIB: Beside = Beside { fixed_kib: 2048.0, kib_for_a_gib: 100.0 };

    fn holds(figure: f64, published: f64) -> Option<bool> {
        let gib = Sample::of(vec![figure]).unwrap();
        Tolerance::Below(BESIDE_4_MIB).holds(&gib, figure, published)
    }

    #[test]
    fn a_figure_above_the_published_one_fails() {
        assert_eq!(holds(4.0, 4.0), Some(true));
        assert_eq!(holds(4.0004, 4.0), Some(true), "within the rounding");
        assert_eq!(holds(4.0006, 4.0), Some(false));
        assert_eq!(holds(409.585, 409.584), Some(false), "by 0.0002 %");
    }

    #[test]
    fn a_figure_below_by_more_than_the_rest_of_the_machine_reads_fails() {
        // 2 MiB and 0.4 MiB of 4 GiB are 0.0023 GiB; half a digit more is rounding.
        assert_eq!(holds(4.0, 4.0028), Some(true));
        assert_eq!(holds(4.0, 4.003), Some(false));
        assert_eq!(holds(0.056, 0.0583), Some(true));
        assert_eq!(holds(0.056, 0.059), Some(false));
    }

    /// What is allowed comes from the measured runs, and tells a model that is wrong by one page
    /// an access: that is 0.2 GiB of the 20 GiB file.
    #[test]
    fn the_measured_allowance_is_small_beside_a_wrong_rule() {
        let published = crate::published::data::PUBLISHED.mmap_miss.case[0].rows.iter();
        for row in published.filter(|row| row.workload != "random") {
            let bound = BESIDE.bound_gib(row.gib) + HALF_A_DIGIT;
            assert!(bound < 0.1, "{}: {bound}", row.workload);
        }
    }
}
