//! The vma-bound series: fio's rows, which cannot see it, and jobs that can.

use filemap_job::{Job, JobSpec, PhaseSpec, Record};
use filemap_report::{Column, Part, Table, Value, csv, figures, raw, table, words};
use serde_json::json;

use super::cell::{Cell, FAILS, MODEL_ONLY, NOT_COMPARED};
use super::data::{FioRow, PUBLISHED, Shape};
use super::{Begin, Found, Study};
use crate::error::Error;
use crate::stats::{Sample, percent};

pub const NAME: &str = "vma-bound";

/// Without the series, and with it.
const VARIANTS: [&str; 2] = ["baseline", NAME];

/// How the pages of a program's segments are touched: in order, and a tenth of them at random.
const TOUCHES: [&str; 2] = ["in order", "10 %"];

/// Readahead of the jobs with programs, in KiB.
const READ_AHEAD_KB: u64 = 128;

/// What is counted of a job.
const COUNTED: [&str; 3] = ["cached_outside", "data_pages_read", "major_faults"];

/// The study of the series.
pub struct VmaBound {
    /// Programs of this machine with their jobs.
    programs: Vec<(String, Vec<Job>)>,
}

impl VmaBound {
    /// The study with `programs` of this machine: jobs of the workload `elf`, with the headers of
    /// their file.
    pub fn new(programs: &[JobSpec]) -> Self {
        let jobs = |spec: &JobSpec| Some((spec.file.clone()?, program_jobs(spec)));
        let programs = programs.iter().filter_map(jobs);
        VmaBound { programs: programs.filter(|(_, jobs)| !jobs.is_empty()).collect() }
    }
}

fn shapes() -> impl Iterator<Item = &'static Shape> {
    PUBLISHED.vma_bound.fio.iter().chain(&PUBLISHED.vma_bound.seeing)
}

impl Shape {
    fn job(&self, variant: &str) -> Job {
        let spec = JobSpec { with: Some(variant.to_string()), ..self.job.clone() };
        spec.validate(None).expect("the shapes of this study are jobs")
    }

    /// What is claimed is of faults; read(2) is not bounded by a mapping.
    fn faults(&self) -> bool {
        self.job.workload.as_ref().is_some_and(|workload| !workload.starts_with("read-"))
    }
}

/// The jobs of a program, for each way to touch it without the series and with it.
fn program_jobs(program: &JobSpec) -> Vec<Job> {
    let phase = |workload: &str, accesses: Option<u64>, fraction: Option<f64>| PhaseSpec {
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

/// Pages cached outside what is mapped, pages read, major faults.
fn counted(record: &Record) -> [u64; 3] {
    let run = &record.runs[0];
    let cached = &run.cached;
    let outside = [cached.before, cached.between, cached.after].into_iter().flatten().sum();
    let (pages, major) = (run.counters.data_pages_read, run.counters.major_faults);
    [outside, pages.unwrap_or(0), major.unwrap_or(0)]
}

impl Study for VmaBound {
    fn jobs(&self) -> Vec<Job> {
        let shapes = shapes().flat_map(|shape| VARIANTS.map(|variant| shape.job(variant)));
        shapes.chain(self.programs.iter().flat_map(|(_, jobs)| jobs.clone())).collect()
    }

    fn found(&self, records: &[Record], _: &Begin<'_>) -> Result<Found, Error> {
        let mut outside = 0;
        let mut cells = Vec::new();
        let mut records = records.iter();
        for shape in shapes() {
            for (variant, record) in VARIANTS.into_iter().zip(records.by_ref()) {
                let figure = counted(record)[0];
                outside += if variant == NAME && shape.faults() { figure } else { 0 };
                cells.push(shape_cell(shape, variant, record));
            }
        }
        let (records, _) = records.as_slice().as_chunks::<2>();
        let touches = self.programs.iter().flat_map(|(path, _)| TOUCHES.map(|touch| (path, touch)));
        for ((path, touch), [before, after]) in touches.zip(records) {
            let [before, after] = [before, after].map(counted);
            outside += after[0];
            let both = |of: usize| json!({ "before": before[of], "after": after[of] });
            let figures = COUNTED.into_iter().enumerate().map(|(of, name)| (name.into(), both(of)));
            let figures = serde_json::Value::Object(figures.collect());
            cells.push(Cell { name: Some(format!("{path} {touch}")), ..Cell::new(NAME, figures) });
        }
        cells.extend(PUBLISHED.vma_bound.rows.iter().map(fio_cell));
        // The published claim that can be checked.
        let claim = Cell {
            name: Some("pages that faults cache outside the mapping".to_string()),
            variant: Some(NAME.to_string()),
            published: Some(0.0),
            error: Some(outside as f64),
            error_unit: Some("pages".to_string()),
            ..Cell::new(NAME, json!({ "cached_outside": outside }))
        };
        cells.push(claim.judged(Some(outside == 0), NOT_COMPARED));
        Ok(Found { series: NAME, cells, origin: None })
    }
}

fn shape_cell(shape: &Shape, variant: &str, record: &Record) -> Cell {
    let run = &record.runs[0];
    let touched = shape.job(VARIANTS[0]).used_pages();
    let figures = json!({
        "cached_outside": counted(record)[0],
        "cached": run.cached,
        "counters": run.counters,
    });
    Cell {
        name: Some(shape.name.clone()),
        variant: Some(variant.to_string()),
        touched_pages: touched,
        job: Some(record.job.flags().into_owned()),
        ..Cell::new(NAME, figures)
    }
}

/// A published row; there is no figure of the model beside it.
fn fio_cell(row: &FioRow) -> Cell {
    let (before, after) = (median(&row.before_mib_s), median(&row.after_mib_s));
    let figures = json!({
        "published_mib_s": { "before": row.before_mib_s, "after": row.after_mib_s },
        "published_median_mib_s": { "before": before, "after": after },
        "published_change_percent": percent(after, before),
    });
    let name = Some(format!("fio {} {}", row.ioengine, row.rw));
    Cell { name, ..Cell::new(NAME, figures) }.judged(None, NOT_COMPARED)
}

fn median(runs: &[f64]) -> f64 {
    Sample::of(runs.to_vec()).map_or(f64::NAN, |sample| sample.median)
}

fn range(runs: &[f64]) -> Value {
    Sample::of(runs.to_vec()).map(|sample| format!("{}-{}", sample.min, sample.max)).into()
}

const PUBLISHED_ROWS: [Column<FioRow>; 7] = [
    words("engine", |row| row.ioengine.clone().into()),
    words("rw", |row| row.rw.clone().into()),
    figures("before", |row| median(&row.before_mib_s).to_string().into()),
    figures("range", |row| range(&row.before_mib_s)),
    figures("after", |row| median(&row.after_mib_s).to_string().into()),
    figures("range", |row| range(&row.after_mib_s)),
    figures("change", |row| {
        let change = percent(median(&row.after_mib_s), median(&row.before_mib_s));
        change.map(|change| format!("{change:+.1} %")).into()
    }),
];

/// A job without the series and with it.
struct Pair {
    name: String,
    touched: String,
    before: [u64; 3],
    after: [u64; 3],
}

impl Pair {
    /// The shapes of `cells` that are named in `shapes`.
    fn shapes(cells: &[Cell], shapes: &[Shape]) -> Vec<Pair> {
        let is_own = |cell: &&Cell| shapes.iter().any(|shape| shape.name == cell.name());
        let own: Vec<&Cell> = cells.iter().filter(is_own).collect();
        let (pairs, _) = own.as_chunks::<2>();
        let counts = |cell: &Cell| {
            ["cached_outside", "counters/data_pages_read", "counters/major_faults"]
                .map(|path| cell.count(path))
        };
        let of = |[before, after]: &[&Cell; 2]| Pair {
            name: before.name().to_string(),
            touched: before.touched_pages.unwrap_or_default().to_string(),
            before: counts(before),
            after: counts(after),
        };
        pairs.iter().map(of).collect()
    }

    /// The programs of `cells`, each way to touch them by itself.
    fn programs(cells: &[Cell]) -> Vec<Pair> {
        let of = |cell: &Cell| {
            let (path, touch) = TOUCHES
                .iter()
                .find_map(|touch| Some((cell.name().strip_suffix(touch)?.trim_end(), *touch)))?;
            let counts = |which: &str| COUNTED.map(|of| cell.count(&format!("{of}/{which}")));
            cell.at("cached_outside/after")?;
            Some(Pair {
                name: path.rsplit('/').next().unwrap_or(path).to_string(),
                touched: touch.to_string(),
                before: counts("before"),
                after: counts("after"),
            })
        };
        cells.iter().filter_map(of).collect()
    }
}

fn count(of: u64) -> Value {
    of.to_string().into()
}

const SHAPES: [Column<Pair>; 8] = [
    // Without its comma a long name leaves the table within the width of a page.
    words("job", |pair| pair.name.replacen("split scan, ", "split scan ", 1).into()),
    figures("pages\ntouched", |pair| pair.touched.clone().into()),
    figures("outside\nbefore", |pair| count(pair.before[0])),
    figures("\nafter", |pair| count(pair.after[0])),
    figures("pages\nread\nbefore", |pair| count(pair.before[1])),
    figures("\nafter", |pair| count(pair.after[1])),
    figures("major\nbefore", |pair| count(pair.before[2])),
    figures("\nafter", |pair| count(pair.after[2])),
];

const PROGRAMS: [Column<Pair>; 9] = [
    words("file", |pair| pair.name.clone().into()),
    words("touched", |pair| pair.touched.clone().into()),
    figures("outside\nbefore", |pair| count(pair.before[0])),
    figures("\nafter", |pair| count(pair.after[0])),
    figures("read\nbefore", |pair| count(pair.before[1])),
    figures("\nafter", |pair| count(pair.after[1])),
    figures("major\nbefore", |pair| count(pair.before[2])),
    figures("\nafter", |pair| count(pair.after[2])),
    figures("read\nchange", |pair| {
        let change = percent(pair.after[1] as f64, pair.before[1] as f64);
        change.map(|change| format!("{change:+.0} %")).into()
    }),
];

pub fn parts(cells: &[Cell]) -> Vec<Part> {
    let published = &PUBLISHED.vma_bound;
    let note =
        |name: &str, values: &[(&str, String)]| Part::Paragraph(published.about.note(name, values));
    let fio = Pair::shapes(cells, &published.fio);
    let title = "Published: fio, MiB/s, median and range of five runs";
    let mut parts = vec![
        Part::Paragraph(format!("Claimed: {}.", published.claim)),
        Part::Table(table(title, &PUBLISHED_ROWS, &published.rows)),
        note("rows", &[]),
        Part::Table(table("The same shapes in the model, 128 KiB readahead", &SHAPES, &fio)),
        Part::Paragraph(ends(&fio)),
    ];
    let title = "Jobs that can see it: mappings of parts, and many VMAs";
    let seeing = Pair::shapes(cells, &published.seeing);
    parts.extend([Part::Table(table(title, &SHAPES, &seeing)), note("seeing", &[])]);
    let programs = Pair::programs(cells);
    if !programs.is_empty() {
        let title = "Programs and libraries of this machine in the model, 128 KiB readahead";
        parts.push(Part::Table(table(title, &PROGRAMS, &programs)));
    }
    let fails = cells.iter().find(|cell| cell.verdict == FAILS);
    parts.push(match fails {
        Some(cell) => note("fails", &[("pages", cell.count("cached_outside").to_string())]),
        None => note("holds", &[]),
    });
    if programs.is_empty() {
        parts.push(note("more", &[]));
    }
    parts
}

/// By how much the shapes of fio differ.
fn ends(fio: &[Pair]) -> String {
    let differing = fio.iter().filter(|pair| pair.before != pair.after);
    let words = differing.map(|Pair { name, before, after, .. }| {
        let (pages, major) = (before[1].abs_diff(after[1]), before[2].abs_diff(after[2]));
        format!("{name}: {pages} pages of {} and {major} major faults", before[1])
    });
    match words.collect::<Vec<_>>() {
        words if words.is_empty() => "No counter differs in any of the four.".to_string(),
        words => format!("All that differs is the end of the mapping: {}.", words.join("; ")),
    }
}

/// One row for each job that counts, and variant.
pub fn rows(cells: &[Cell]) -> Table {
    let columns: [Column<(&Cell, &str)>; 7] = [
        raw("series", |_| NAME.into()),
        raw("name", |(cell, _)| cell.name().into()),
        raw("variant", |(cell, which)| match *which {
            "before" => VARIANTS[0].into(),
            "after" => NAME.into(),
            _ => cell.variant().into(),
        }),
        raw("cached_outside", |of| of_variant(of, "cached_outside")),
        raw("data_pages", |of| of_variant(of, "data_pages_read")),
        raw("major_faults", |of| of_variant(of, "major_faults")),
        raw("touched_pages", |(cell, _)| cell.touched_pages.into()),
    ];
    let model = cells.iter().filter(|cell| cell.verdict == MODEL_ONLY);
    let rows = model.flat_map(|cell| match cell.variant {
        Some(_) => vec![(cell, "")],
        None => vec![(cell, "before"), (cell, "after")],
    });
    csv(&columns, &rows.collect::<Vec<_>>())
}

/// What a cell counted; of a program `which` of its variants.
fn of_variant((cell, which): &(&Cell, &str), name: &str) -> Value {
    let own = [name.to_string(), format!("counters/{name}"), format!("{name}/{which}")];
    own.iter().find_map(|path| cell.number(path)).into()
}
