//! The mmap-miss series: two file sizes, five workloads, four variants.

use filemap_core::units::PageCount;
use filemap_job::parts::{CACHE_PARTS, RAM_PARTS};
use filemap_job::{DEFAULT_SEED, Job, JobSpec, Record, SizeText, seeds};
use filemap_report::{Column, Part, Table, Value, digits, figures, raw, table, words};
use serde_json::json;

use super::cell::{Cell, MODEL_ONLY};
use super::data::{Case, PUBLISHED, Row};
use super::tolerance::{BESIDE, Beside, Tolerance, is_inside};
use super::{Begin, Found, Study};
use crate::error::Error;
use crate::spread::{outcomes, over_seeds};
use crate::stats::{Sample, percent};

pub const NAME: &str = "mmap-miss";

const WORKLOADS: [&str; 5] = [RANDOM, "stride1021", "stride2053", "stride4099", "sequential"];

/// The workload whose accesses depend on a seed.
const RANDOM: &str = "random";

const VARIANTS: [&str; 4] = ["baseline", "p1", "p2", "p1+p2"];

/// How much more and less page cache the study tries, in GiB.
const CAPACITY_STEP_GIB: f64 = 0.1;

/// Where by how many GiB the random baseline of the largest file changes with such a step is.
const SLOPE: &str = "gib_for_a_step_of_page_cache";

const GIB: f64 = (1u64 << 30) as f64;

/// The study of the series.
pub struct MmapMiss {
    seeds: Vec<u64>,
}

impl MmapMiss {
    /// The study with `count` seeds, 1 or more, for each random cell.
    pub fn new(count: u64) -> Self {
        MmapMiss { seeds: seeds(DEFAULT_SEED, count).collect() }
    }

    /// The seeds that a workload is run with.
    fn seeds_of(&self, workload: &str) -> &[u64] {
        if workload == RANDOM { &self.seeds } else { &self.seeds[..1] }
    }
}

/// What a cell is of.
#[derive(Clone, Copy)]
struct Of {
    case: &'static Case,
    workload: &'static str,
    variant: &'static str,
}

fn matrix() -> impl Iterator<Item = Of> {
    let cases = PUBLISHED.mmap_miss.case.iter();
    let rows = cases.flat_map(|case| WORKLOADS.map(|workload| (case, workload)));
    rows.flat_map(|(case, workload)| VARIANTS.map(|variant| Of { case, workload, variant }))
}

impl Study for MmapMiss {
    fn jobs(&self) -> Vec<Job> {
        let of_cell = |of: Of| {
            let job = of.job();
            self.seeds_of(of.workload).iter().map(move |&seed| job.with_seed(seed))
        };
        // At the end the first cell with a step less and a step more page cache.
        let first = matrix().next().expect("there are cells").job();
        let steps = [-CAPACITY_STEP_GIB, CAPACITY_STEP_GIB];
        matrix().flat_map(of_cell).chain(steps.map(|step| with_more_cache(&first, step))).collect()
    }

    fn found(&self, records: &[Record], _: &Begin<'_>) -> Result<Found, Error> {
        let mut left = records;
        let of = |of: Of| {
            let (own, rest) = left.split_at(self.seeds_of(of.workload).len());
            left = rest;
            of.cell(own)
        };
        let mut cells: Vec<Cell> = matrix().map(of).collect();
        let slope = (gib_read(&left[1]) - gib_read(&left[0])) / 2.0;
        cells[0].figures.insert(SLOPE.to_string(), slope.into());
        Ok(Found { series: NAME, cells, origin: None })
    }
}

impl Of {
    /// The job: 1 % of the file's pages, through one mapping, from a cold cache.
    fn job(&self) -> Job {
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

    /// When the model's figure holds. Where the accesses are known, the pages of the file must be
    /// what is left of the published figure without what else the machine read; where they are
    /// drawn, the published one is one more draw.
    fn tolerance(&self) -> Tolerance {
        let large = self.case.file_gib == 20;
        match (self.workload, self.variant) {
            (RANDOM, "p1+p2") => Tolerance::Spread,
            (RANDOM, "baseline") if large => Tolerance::Percent(1.0),
            (RANDOM, _) => Tolerance::SpreadOrPercent(1.0),
            _ => Tolerance::Below(*BESIDE),
        }
    }

    /// The cell with `records`, one for each seed and at least one.
    fn cell(&self, records: &[Record]) -> Cell {
        let Of { case, workload, variant } = *self;
        let gib = Sample::of(records.iter().map(gib_read).collect()).expect("there is a seed");
        let (is_random, tolerance) = (workload == RANDOM, self.tolerance());
        let row = Row::find(&case.rows, workload, variant);
        let published = row.map(|row| row.gib);
        let ok = published.and_then(|published| tolerance.holds(&gib, published));
        let run = &records[0].runs[0];
        let cell = Cell::new(
            NAME,
            json!({
                "gib": gib.median,
                "seeds": gib.samples.len(),
                "distribution": is_random.then_some(&gib),
                "published_inside":
                    published.filter(|_| is_random).map(|published| is_inside(&gib, published)),
                "first_seed": { "counters": run.counters, "predicted_elapsed_ns": run.elapsed_ns },
            }),
        );
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
            published_rerun: Some(Row::find(&case.rerun, workload, variant).map(|row| row.gib)),
            touched_gib: Some((touched * job.page_size()) as f64 / GIB),
            error: published.and_then(|published| percent(gib.median, published)),
            error_unit: Some("%".to_string()),
            below_mib: Some(below),
            tolerance: Some(tolerance.to_string()),
            job: Some(records[0].job.flags().into_owned()),
            ..cell
        };
        cell.judged(ok, if row.is_some() { "needs more seeds" } else { MODEL_ONLY })
    }
}

/// GiB that the first run of `record` read.
fn gib_read(record: &Record) -> f64 {
    record.runs[0].counters.bytes_read.map_or(f64::NAN, |bytes| bytes as f64 / GIB)
}

/// `job` with `gib` GiB more page cache than its RAM leaves.
fn with_more_cache(job: &Job, gib: f64) -> Job {
    let mut job = job.clone();
    let limit = job.machine.cache_limit.expect("published cells have RAM").0;
    let step = (gib.abs() * GIB) as u64 / job.page_size();
    let changed = if gib < 0.0 { limit - step } else { limit + step };
    job.machine.cache_limit = Some(PageCount(changed));
    job.machine.ram_bytes = None;
    job
}

impl Cell {
    fn is_random(&self) -> bool {
        self.workload.as_deref() == Some(RANDOM)
    }

    /// GiB over seeds; of known accesses there is one figure.
    fn gib(&self) -> Option<Sample> {
        self.sample("distribution").or_else(|| Sample::of(vec![self.number("gib")?]))
    }

    fn of_gib(&self, of: fn(Sample) -> f64) -> Option<f64> {
        self.gib().map(of)
    }
}

fn workload(cell: &Cell) -> Value {
    cell.workload.clone().into()
}

fn variant(cell: &Cell) -> Value {
    cell.variant.clone().into()
}

fn file(cell: &Cell) -> Value {
    cell.file_gib.map(|gib| format!("{gib} GiB")).into()
}

const CASE: [Column<Cell>; 7] = [
    words("workload", workload),
    words("variant", variant),
    figures("touched", |cell| digits(cell.touched_gib, 3)),
    figures("published", |cell| digits(cell.published, 3)),
    figures("model", |cell| digits(cell.number("gib"), 3)),
    figures("error", |cell| cell.error.map(signed_percent).into()),
    words("verdict", |cell| cell.said().into()),
];

const SPREAD: [Column<Cell>; 8] = [
    words("file", file),
    words("variant", variant),
    figures("published", |cell| digits(cell.published, 3)),
    figures("mean", |cell| digits(cell.of_gib(|gib| gib.mean), 3)),
    figures("sd", |cell| digits(cell.of_gib(|gib| gib.sd), 3)),
    figures("min", |cell| digits(cell.of_gib(|gib| gib.min), 3)),
    figures("max", |cell| digits(cell.of_gib(|gib| gib.max), 3)),
    words("inside", |cell| {
        let inside: Option<bool> = cell.read("published_inside");
        inside.map(|inside| if inside { "yes" } else { "no" }).into()
    }),
];

/// A row that was published twice: its file in GiB, both times.
type Twice = (u64, Option<&'static Row>, &'static Row);

const RERUN: [Column<Twice>; 6] = [
    words("file", |(gib, ..)| format!("{gib} GiB").into()),
    words("workload", |(_, _, again)| again.workload.clone().into()),
    words("variant", |(_, _, again)| again.variant.clone().into()),
    figures("first", |(_, first, _)| digits(first.map(|row| row.gib), 3)),
    figures("again", |(_, _, again)| digits(Some(again.gib), 3)),
    figures("difference", |(_, first, again)| {
        first.and_then(|first| percent(again.gib, first.gib)).map(signed_percent).into()
    }),
];

const ROWS: [Column<Cell>; 16] = [
    raw("series", |_| NAME.into()),
    raw("file_gib", |cell| cell.file_gib.into()),
    raw("ram_gib", |cell| cell.ram_gib.into()),
    raw("workload", workload),
    raw("variant", variant),
    raw("published_gib", |cell| cell.published.into()),
    raw("model_gib", |cell| cell.number("gib").into()),
    raw("error_percent", |cell| cell.error.into()),
    raw("ok", |cell| cell.ok.map(|ok| ok.to_string()).into()),
    raw("seeds", |cell| cell.number("seeds").into()),
    raw("mean_gib", |cell| cell.of_gib(|gib| gib.mean).into()),
    raw("sd_gib", |cell| cell.of_gib(|gib| gib.sd).into()),
    raw("min_gib", |cell| cell.of_gib(|gib| gib.min).into()),
    raw("max_gib", |cell| cell.of_gib(|gib| gib.max).into()),
    raw("touched_gib", |cell| cell.touched_gib.into()),
    raw("verdict", |cell| cell.verdict.clone().into()),
];

/// Every cell as one row.
pub fn rows(cells: &[Cell]) -> Table {
    filemap_report::csv(&ROWS, cells)
}

pub fn parts(cells: &[Cell]) -> Vec<Part> {
    let note = |name: &str, values: &[(&str, String)]| {
        Part::Paragraph(PUBLISHED.mmap_miss.about.note(name, values))
    };
    let mut parts = vec![note("columns", &columns(cells))];
    for of_case in cells.chunk_by(|one, other| one.file_gib == other.file_gib) {
        let [file, ram] = [of_case[0].file_gib, of_case[0].ram_gib].map(Option::unwrap_or_default);
        let title = format!("GiB touched and read, {file} GiB file, {ram} GiB RAM");
        parts.push(Part::Table(table(title, &CASE, of_case)));
    }
    let random: Vec<Cell> = cells.iter().filter(|cell| cell.is_random()).cloned().collect();
    let seeds = over_seeds(random.first().map_or(0, |cell| cell.count("seeds") as usize));
    parts.push(Part::Table(table(format!("Random cells {seeds}, GiB read"), &SPREAD, &random)));
    let cases = PUBLISHED.mmap_miss.case.iter();
    let twice = cases.flat_map(|case| {
        let first = |again: &Row| Row::find(&case.rows, &again.workload, &again.variant);
        case.rerun.iter().map(move |again| (case.file_gib, first(again), again))
    });
    let title = "Published twice by the authors: the spread of the method itself, GiB read";
    parts.push(Part::Table(table(title, &RERUN, &twice.collect::<Vec<Twice>>())));
    parts.push(note("beside", &beside(cells)));
    parts.push(note("capacity", &capacity(cells)));
    parts.extend(random.iter().filter_map(modes).map(|values| note("modes", &values)));
    parts.extend(["strides", "elapsed"].map(|name| note(name, &[])));
    parts
}

type Values = Vec<(&'static str, String)>;

fn columns(cells: &[Cell]) -> Values {
    let seeds = match cells.iter().map(|cell| cell.count("seeds")).max() {
        Some(1) => "that of one seed".to_string(),
        seeds => format!("the median of {} seeds", seeds.unwrap_or(0)),
    };
    let published = cells.iter().filter(|cell| cell.published.is_some()).count();
    let hold = cells.iter().filter(|cell| cell.ok == Some(true)).count();
    let undecided = cells.iter().filter(|cell| cell.published.is_some() && cell.ok.is_none());
    let undecided = match undecided.count() {
        0 => String::new(),
        some => format!(", {some} need more seeds to tell"),
    };
    vec![
        ("hold", hold.to_string()),
        ("published", published.to_string()),
        ("undecided", undecided),
        ("others", (cells.len() - published).to_string()),
        ("seeds", seeds),
    ]
}

/// By how much the model's figures lie below, and by how much they may.
fn beside(cells: &[Cell]) -> Values {
    let below: Vec<f64> = cells.iter().filter_map(|cell| cell.below_mib?).collect();
    let Beside { fixed_kib, kib_for_a_gib } = *BESIDE;
    vec![
        ("least", format!("{:.1}", below.iter().copied().fold(f64::INFINITY, f64::min))),
        ("most", format!("{:.1}", below.iter().copied().fold(f64::NEG_INFINITY, f64::max))),
        ("fixed", format!("{fixed_kib:.0}")),
        ("growth", format!("{kib_for_a_gib:.0}")),
    ]
}

fn capacity(cells: &[Cell]) -> Values {
    let first = &cells[0];
    let ram = first.ram_gib.unwrap_or_default() as f64;
    let capacity = ram * CACHE_PARTS as f64 / RAM_PARTS as f64;
    let slope =
        first.number(SLOPE).map_or("an unknown number of".to_string(), |gib| format!("{gib:+.1}"));
    vec![
        ("capacity", format!("{capacity:.2}")),
        ("ram", ram.to_string()),
        ("file", first.file_gib.unwrap_or_default().to_string()),
        ("workload", first.workload.clone().unwrap_or_default()),
        ("variant", first.variant().to_string()),
        ("slope", slope),
        ("step", format!("{CAPACITY_STEP_GIB:+}")),
    ]
}

/// How many seeds of a cell end where, if not all of them end near each other.
fn modes(cell: &Cell) -> Option<Values> {
    let gib = cell.gib().filter(|gib| gib.modes.len() > 1)?;
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

fn signed_percent(value: f64) -> String {
    match format!("{value:+.2} %") {
        zero if zero.ends_with("0.00 %") && value.abs() < 0.1 => "0.00 %".to_string(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::DEFAULT_SEEDS;
    use super::*;

    #[test]
    fn forty_cells_of_which_26_are_published() {
        let published = |of: &Of| Row::find(&of.case.rows, of.workload, of.variant).is_some();
        assert_eq!((matrix().count(), matrix().filter(published).count()), (40, 26));
        assert_eq!(MmapMiss::new(DEFAULT_SEEDS).jobs().len(), 8 * 25 + 32 + 2);
    }

    #[test]
    fn jobs_are_those_that_were_published() {
        let jobs = MmapMiss::new(1).jobs();
        assert_eq!(jobs.len(), 42);
        let accesses = |at: usize| jobs[at].accesses().next().unwrap().accesses;
        assert_eq!(accesses(0), 52428, "1 % of 20 GiB");
        assert_eq!(accesses(20), 10485, "1 % of 4 GiB");
        assert_eq!(jobs[0].machine.cache_limit.unwrap().0, 1997537, "7.62 GiB");
        assert_eq!(jobs[41].machine.cache_limit.unwrap().0, 1997537 + 26214, "0.1 GiB more");
        assert_eq!(jobs[40].machine.cache_limit.unwrap().0, 1997537 - 26214, "0.1 GiB less");
    }
}
