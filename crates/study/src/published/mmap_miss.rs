//! The mmap-miss series: two file sizes, five workloads, four variants.

use std::sync::LazyLock;

use filemap_core::units::PageCount;
use filemap_job::parts::{CACHE_PARTS, RAM_PARTS};
use filemap_job::{DEFAULT_SEED, Job, JobFlags, Record, SizeText, seeds};
use serde::Deserialize;
use serde_json::json;

use super::cell::{Cell, MODEL_ONLY, NEEDS_MORE_SEEDS};
use super::data::{Notes, Series, Values};
use super::study::{
    BeginProgress, PublishedOptions, SeriesFindings, Study, StudyLength, StudyResult,
};
use super::tolerance::{MACHINE_READS, MachineReads, Tolerance, is_inside};
use crate::error::Error;
use crate::spread::{ENOUGH_SEEDS, outcomes};
use crate::stats::{SampleStats, percent};

pub const NAME: &str = "mmap-miss";

/// Published figures.
pub static PUBLISHED: LazyLock<MmapMissData> = LazyLock::new(|| Series::figures(NAME));

const WORKLOADS: [&str; 5] = [RANDOM, "stride1021", "stride2053", "stride4099", "sequential"];

/// Workload whose accesses depend on a seed.
const RANDOM: &str = "random";

const VARIANTS: [&str; 4] = ["baseline", "p1", "p2", "p1+p2"];

/// Step of the page cache sensitivity in GiB, in both directions.
const CAPACITY_STEP_GIB: f64 = 0.1;

/// Key of the change of the random baseline of the largest file for such a step, in GiB.
const SLOPE: &str = "gib_for_a_step_of_page_cache";

const GIB: f64 = (1u64 << 30) as f64;

#[derive(Deserialize)]
pub struct MmapMissData {
    /// One table for each file size.
    pub case: Vec<MmapMissTable>,
}

/// Table of one file size.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MmapMissTable {
    file_gib: u64,
    /// RAM of the guest in GiB.
    ram_gib: u64,
    pub rows: Vec<MmapMissRow>,
    /// Rows that were published twice.
    rerun: Vec<MmapMissRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MmapMissRow {
    pub workload: String,
    variant: String,
    /// GiB read.
    pub gib: f64,
    /// Elapsed seconds.
    s: f64,
}

/// The study of the series.
struct MmapMiss {
    seeds: Vec<u64>,
}

/// The study, with `options.seeds` in each random cell.
pub fn study(options: &PublishedOptions, _: StudyLength) -> StudyResult {
    let count = options.seeds.unwrap_or(ENOUGH_SEEDS);
    Ok(Box::new(MmapMiss { seeds: seeds(DEFAULT_SEED, count).collect() }))
}

/// Number of published figures.
pub fn figures() -> usize {
    PUBLISHED.case.iter().map(|case| case.rows.len()).sum()
}

impl MmapMiss {
    /// Seeds of a workload.
    fn seeds_of(&self, workload: &str) -> &[u64] {
        if workload == RANDOM { &self.seeds } else { &self.seeds[..1] }
    }
}

/// Coordinates of a cell.
#[derive(Clone, Copy)]
struct CellCoordinates {
    case: &'static MmapMissTable,
    workload: &'static str,
    variant: &'static str,
}

fn matrix() -> impl Iterator<Item = CellCoordinates> {
    let rows = PUBLISHED.case.iter().flat_map(|case| WORKLOADS.map(|workload| (case, workload)));
    rows.flat_map(|(case, workload)| {
        VARIANTS.map(|variant| CellCoordinates { case, workload, variant })
    })
}

impl Study for MmapMiss {
    fn jobs(&self) -> Vec<Job> {
        let of_cell = |cell: CellCoordinates| {
            let job = cell.job();
            self.seeds_of(cell.workload).iter().map(move |&seed| job.with_seed(seed))
        };
        // Last: the first cell with one step less and one step more page cache.
        let first = matrix().next().expect("there are cells").job();
        let steps = [-CAPACITY_STEP_GIB, CAPACITY_STEP_GIB];
        matrix().flat_map(of_cell).chain(steps.map(|step| with_more_cache(&first, step))).collect()
    }

    fn find(&self, records: &[Record], _: &BeginProgress<'_>) -> Result<SeriesFindings, Error> {
        let mut left = records;
        let find = |cell: CellCoordinates| {
            let (own, rest) = left.split_at(self.seeds_of(cell.workload).len());
            left = rest;
            cell.cell(own)
        };
        let mut cells: Vec<Cell> = matrix().map(find).collect();
        let slope = (gib_read(&left[1]) - gib_read(&left[0])) / 2.0;
        cells[0].figures.insert(SLOPE.to_string(), slope.into());
        Ok((cells, None))
    }
}

impl CellCoordinates {
    /// The job: touches 1 % of the file's pages through one mapping, with a cold cache.
    fn job(&self) -> Job {
        let gib = |count: u64| Some(SizeText::from_bytes(count << 30));
        let spec = JobFlags {
            workload: Some(self.workload.replace("stride", "stride:")),
            with: Some(self.variant.to_string()),
            file_size: gib(self.case.file_gib),
            ram: gib(self.case.ram_gib),
            read_ahead_kb: Some(8192),
            ..JobFlags::default()
        };
        spec.validate(None).expect("published cells are jobs")
    }

    /// The row of the cell.
    fn find(self, rows: &[MmapMissRow]) -> Option<&MmapMissRow> {
        rows.iter().find(|row| row.workload == self.workload && row.variant == self.variant)
    }

    /// Tolerance of the model's figure. With known accesses the file's pages must equal the
    /// published figure less other reads of the machine; with random ones the published figure is
    /// one more sample.
    fn tolerance(&self) -> Tolerance {
        let large = self.case.file_gib == 20;
        match (self.workload, self.variant) {
            (RANDOM, "p1+p2") => Tolerance::Spread,
            (RANDOM, "baseline") if large => Tolerance::Percent(1.0),
            (RANDOM, _) => Tolerance::SpreadOrPercent(1.0),
            _ => Tolerance::Below(*MACHINE_READS),
        }
    }

    /// Makes the cell from `records`, one for each seed, at least one.
    fn cell(self, records: &[Record]) -> Cell {
        let CellCoordinates { case, workload, variant } = self;
        let gib = SampleStats::from_sorted(records.iter().map(gib_read).collect())
            .expect("there is a seed");
        let (is_random, tolerance) = (workload == RANDOM, self.tolerance());
        let row = self.find(&case.rows);
        let published = row.map(|row| row.gib);
        let inside = published.filter(|_| is_random).map(|published| is_inside(&gib, published));
        let run = &records[0].runs[0];
        let figures = json!({
            "gib": gib.median,
            "seeds": gib.samples.len(),
            "distribution": is_random.then_some(&gib),
            "published_inside": inside,
            "first_seed": { "counters": run.counters, "predicted_elapsed_ns": run.elapsed_ns },
        });
        let job = self.job();
        let touched = job.used_pages().expect("a published file has few enough pages to count");
        let below = published.filter(|_| !is_random).map(|gib_of| (gib_of - gib.median) * 1024.0);
        let cell = Cell {
            file_gib: Some(case.file_gib),
            ram_gib: Some(case.ram_gib),
            workload: Some(workload.to_string()),
            variant: Some(variant.to_string()),
            unit: Some("GiB read".to_string()),
            published,
            published_elapsed_s: Some(row.map(|row| row.s)),
            published_rerun: Some(self.find(&case.rerun).map(|row| row.gib)),
            touched_gib: Some((touched * job.page_size()) as f64 / GIB),
            error: published.and_then(|published| percent(gib.median, published)),
            error_unit: Some("%".to_string()),
            below_mib: Some(below),
            tolerance: Some(tolerance.to_string()),
            job: Some(records[0].job.clone()),
            ..Cell::new(NAME, figures)
        };
        let ok = published.and_then(|published| tolerance.holds(&gib, published));
        cell.with_judgement(ok, if row.is_some() { NEEDS_MORE_SEEDS } else { MODEL_ONLY })
    }
}

/// GiB read by the first run of `record`.
fn gib_read(record: &Record) -> f64 {
    record.runs[0].counters.bytes_read.map_or(f64::NAN, |bytes| bytes as f64 / GIB)
}

/// `job` with `gib` GiB more page cache.
fn with_more_cache(job: &Job, gib: f64) -> Job {
    let mut job = job.clone();
    let limit = job.machine.cache_limit.expect("published cells have RAM").0;
    let step = (gib.abs() * GIB) as u64 / job.page_size();
    let changed = if gib < 0.0 { limit - step } else { limit + step };
    job.machine.cache_limit = Some(PageCount(changed));
    job.machine.ram_bytes = None;
    job
}

pub fn notes<'a>(_: &Series, cells: &'a [Cell]) -> Notes<'a> {
    let modes = cells.iter().filter_map(modes).collect();
    vec![
        ("beside", vec![margin_values(cells)]),
        ("capacity", vec![cache_size_values(&cells[0])]),
        ("modes", modes),
    ]
}

/// Distance of the model's figures below the published ones, and the allowance.
fn margin_values(cells: &[Cell]) -> Values<'_> {
    let below: Vec<f64> = cells.iter().filter_map(|cell| cell.below_mib?).collect();
    let MachineReads { fixed_kib, kib_for_a_gib } = *MACHINE_READS;
    vec![
        ("least", format!("{:.1}", below.iter().copied().fold(f64::INFINITY, f64::min))),
        ("most", format!("{:.1}", below.iter().copied().fold(f64::NEG_INFINITY, f64::max))),
        ("fixed", format!("{fixed_kib:.0}")),
        ("growth", format!("{kib_for_a_gib:.0}")),
    ]
}

/// Sensitivity to the page cache size, from the slope in `first`.
fn cache_size_values(first: &Cell) -> Values<'_> {
    let ram = first.ram_gib.unwrap_or_default() as f64;
    let slope = first.number(SLOPE).map(|gib| format!("{gib:+.1}"));
    vec![
        ("capacity", format!("{:.2}", ram * CACHE_PARTS as f64 / RAM_PARTS as f64)),
        ("ram", ram.to_string()),
        ("file", first.file_gib.unwrap_or_default().to_string()),
        ("workload", first.workload.clone().unwrap_or_default()),
        ("variant", first.variant().to_string()),
        ("slope", slope.unwrap_or("an unknown number of".to_string())),
        ("step", format!("{CAPACITY_STEP_GIB:+}")),
    ]
}

/// Modes of a cell over seeds, if there are several.
fn modes(cell: &Cell) -> Option<Values<'_>> {
    let gib = cell.read::<SampleStats>("distribution").filter(|gib| gib.modes.len() > 1)?;
    let figure = |value: f64| format!("{value:.3} GiB");
    let range = |from: f64, to: f64| format!("{from:.3} to {to:.3}");
    let published = cell.published.map_or(String::new(), |published| {
        format!(" The published {published:.3} GiB is one draw.")
    });
    Some(vec![
        ("file", cell.file_gib.unwrap_or_default().to_string()),
        ("workload", RANDOM.to_string()),
        ("variant", cell.variant().to_string()),
        ("seeds", gib.samples.len().to_string()),
        ("outcomes", outcomes(&gib.modes, figure, range)),
        ("published", published),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(seeds: Option<u64>) -> Vec<Job> {
        let options = PublishedOptions { seeds, ..PublishedOptions::default() };
        study(&options, StudyLength::Short).unwrap().jobs()
    }

    #[test]
    fn data_is_complete() {
        let cases = &PUBLISHED.case;
        let sizes: Vec<_> = cases.iter().map(|case| (case.file_gib, case.rows.len())).collect();
        assert_eq!(sizes, [(20, 16), (4, 10)]);
        assert!(cases.iter().all(|case| case.rerun.len() == 5 && case.ram_gib == 8));
        let p2 =
            |at: usize| CellCoordinates { case: &cases[at], workload: "stride2053", variant: "p2" };
        assert_eq!(p2(0).find(&cases[0].rows).unwrap().gib, 15.722);
        assert!(p2(1).find(&cases[1].rows).is_none());
    }

    #[test]
    fn forty_cells_of_which_26_are_published() {
        let published = |cell: &CellCoordinates| cell.find(&cell.case.rows).is_some();
        assert_eq!((matrix().count(), matrix().filter(published).count()), (40, 26));
        assert_eq!(jobs(None).len(), 8 * 25 + 32 + 2);
    }

    #[test]
    fn jobs_are_those_that_were_published() {
        let jobs = jobs(Some(1));
        assert_eq!(jobs.len(), 42);
        let accesses = |at: usize| jobs[at].accesses().next().unwrap().accesses;
        assert_eq!(accesses(0), 52428, "1 % of 20 GiB");
        assert_eq!(accesses(20), 10485, "1 % of 4 GiB");
        assert_eq!(jobs[0].machine.cache_limit.unwrap().0, 1997537, "7.62 GiB");
        assert_eq!(jobs[41].machine.cache_limit.unwrap().0, 1997537 + 26214, "0.1 GiB more");
        assert_eq!(jobs[40].machine.cache_limit.unwrap().0, 1997537 - 26214, "0.1 GiB less");
    }
}
