//! The vma-bound series: fio's rows, which cannot see it, and jobs that can.

use filemap_job::{Job, JobSpec, Record, SizeText};
use serde_json::{Value, json};

use super::data::{FioRow, PUBLISHED};
use super::{Findings, Study};
use crate::report::Part;
use crate::stats::{Sample, percent};
use crate::table::{Column, Table};

/// Without the series, and with it.
const VARIANTS: [&str; 2] = ["baseline", "vma-bound"];

/// Jobs of the shapes that fio was run in.
const FIO: [Shape; 4] = [
    fio("mmap read", "sequential", "sequential"),
    fio("mmap randread", "random", "random"),
    fio("psync read", "read-sequential", "normal"),
    fio("psync randread", "read-random", "normal"),
];

/// Jobs that meet the end of a mapping.
const SEEING: [Shape; 10] = [
    part("64 KiB, scan", "sequential", 64, 128),
    part("64 KiB, first page", "first", 64, 128),
    Shape { exec: true, ..part("64 KiB executable", "sequential", 64, 128) },
    part("64 KiB, first, 8M ra", "first", 64, 8192),
    part("4 MiB, first, 8M ra", "first", 4096, 8192),
    part("4 MiB, scan, 8M ra", "sequential", 4096, 8192),
    part("4 MiB, random, 8M ra", "random", 4096, 8192),
    split("split scan, 16 pages", 16),
    split("split scan, 64 pages", 64),
    split("split scan, 512 pages", 512),
];

/// The study of the series.
pub struct VmaBound;

/// A job that is run without the series and with it.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    workload: &'static str,
    advice: &'static str,
    exec: bool,
    accesses: u64,
    file_mib: u64,
    /// Where in the file the mapping begins and how long it is, in KiB; all of it for no length.
    mapping_kib: (u64, u64),
    split: Option<u64>,
    read_ahead_kb: u64,
}

const fn fio(name: &'static str, workload: &'static str, advice: &'static str) -> Shape {
    Shape {
        name,
        workload,
        advice,
        exec: false,
        accesses: 1 << 18,
        file_mib: 3072,
        mapping_kib: (1 << 20, 1 << 20),
        split: None,
        read_ahead_kb: 128,
    }
}

const fn part(name: &'static str, workload: &'static str, kib: u64, read_ahead_kb: u64) -> Shape {
    Shape {
        advice: "normal",
        accesses: kib / 4,
        file_mib: 64,
        mapping_kib: (16 << 10, kib),
        read_ahead_kb,
        ..fio(name, workload, "normal")
    }
}

const fn split(name: &'static str, pages: u64) -> Shape {
    Shape {
        accesses: 4096,
        file_mib: 1024,
        mapping_kib: (0, 0),
        split: Some(pages),
        ..part(name, "sequential", 0, 8192)
    }
}

impl Shape {
    fn job(&self, variant: &str) -> Job {
        let text = |text: &str| Some(text.to_string());
        let (offset, length) = self.mapping_kib;
        let kib = |kib: u64| (kib > 0).then(|| SizeText::of(kib << 10));
        let spec = JobSpec {
            with: text(variant),
            workload: text(self.workload),
            advice: text(self.advice),
            exec: self.exec.then_some(true),
            accesses: Some(self.accesses),
            file_size: Some(SizeText::of(self.file_mib << 20)),
            map_offset: kib(offset),
            map_len: kib(length),
            split: self.split,
            read_ahead_kb: Some(self.read_ahead_kb),
            ..JobSpec::default()
        };
        spec.validate(None).expect("the shapes of this study are jobs")
    }

    fn faults(&self) -> bool {
        !self.workload.starts_with("read-")
    }
}

/// A shape with what came out.
struct Pair<'a> {
    shape: &'a Shape,
    records: &'a [Record],
}

impl Pair<'_> {
    /// Pages cached outside the mapping, pages read, major faults.
    fn figures(&self, index: usize) -> [u64; 3] {
        let run = &self.records[index].runs[0];
        let outside = run.cached.before.unwrap_or(0) + run.cached.after.unwrap_or(0);
        let (pages, major) = (run.counters.data_pages_read, run.counters.major_faults);
        [outside, pages.unwrap_or(0), major.unwrap_or(0)]
    }

    fn row(&self) -> Vec<String> {
        let (before, after) = (self.figures(0), self.figures(1));
        let mut cells = vec![self.shape.name.to_string()];
        for (before, after) in before.iter().zip(after) {
            cells.extend([before.to_string(), after.to_string()]);
        }
        cells
    }

    fn csv_rows(&self) -> impl Iterator<Item = Vec<String>> {
        (0..VARIANTS.len()).map(|index| {
            let figures = self.figures(index).map(|figure| figure.to_string());
            let names = ["vma-bound", self.shape.name, VARIANTS[index]].map(str::to_string);
            [names, figures].concat()
        })
    }

    fn json(&self) -> Vec<Value> {
        let cell = |(index, variant): (usize, &&str)| {
            let record = &self.records[index];
            let run = &record.runs[0];
            json!({
                "series": "vma-bound",
                "name": self.shape.name,
                "variant": variant,
                "published": null,
                "figures": {
                    "cached_outside": self.figures(index)[0],
                    "cached": run.cached,
                    "counters": run.counters,
                },
                "error": null,
                "ok": null,
                "job": record.job,
            })
        };
        VARIANTS.iter().enumerate().map(cell).collect()
    }
}

impl Study for VmaBound {
    fn jobs(&self) -> Vec<Job> {
        let both = |shape: &Shape| VARIANTS.map(|variant| shape.job(variant));
        FIO.iter().chain(&SEEING).flat_map(both).collect()
    }

    fn findings(&self, records: &[Record]) -> Findings {
        let shapes = FIO.iter().chain(&SEEING);
        let pairs: Vec<_> = shapes
            .zip(records.chunks(VARIANTS.len()))
            .map(|(shape, records)| Pair { shape, records })
            .collect();
        let (fio, seeing) = pairs.split_at(FIO.len());
        // What is claimed is of faults; read(2) is not bounded by a mapping.
        let outside = pairs.iter().filter(|pair| pair.shape.faults());
        let outside: u64 = outside.map(|pair| pair.figures(1)[0]).sum();
        let mut cells: Vec<_> = pairs.iter().flat_map(Pair::json).collect();
        cells.extend(PUBLISHED.vma_bound.rows.iter().map(fio_json));
        cells.push(claim_json(outside));
        let names = ["series", "name", "variant", "cached_outside", "data_pages", "major_faults"];
        Findings {
            parts: parts(fio, seeing, outside),
            rows: Table {
                title: String::new(),
                columns: names.into_iter().map(Column::left).collect(),
                rows: pairs.iter().flat_map(Pair::csv_rows).collect(),
            },
            cells,
            failed: usize::from(outside > 0),
        }
    }
}

/// The published claim that can be checked: pages cached with the series never exceed the mapping.
fn claim_json(outside: u64) -> Value {
    json!({
        "series": "vma-bound",
        "name": "pages that faults cache outside the mapping",
        "variant": "vma-bound",
        "published": 0,
        "figures": { "cached_outside": outside },
        "error": outside,
        "error_unit": "pages",
        "ok": outside == 0,
    })
}

/// A published row; there is no figure of the model beside it.
fn fio_json(row: &FioRow) -> Value {
    let (before, after) = medians(row);
    json!({
        "series": "vma-bound",
        "name": format!("fio {} {}", row.ioengine, row.rw),
        "published": null,
        "figures": {
            "published_mib_s": { "before": row.before_mib_s, "after": row.after_mib_s },
            "published_median_mib_s": { "before": before, "after": after },
            "published_change_percent": percent(after, before),
        },
        "error": null,
        "ok": null,
    })
}

fn medians(row: &FioRow) -> (f64, f64) {
    let median = |runs: &[f64]| Sample::of(runs.to_vec()).expect("a row has runs").median;
    (median(&row.before_mib_s), median(&row.after_mib_s))
}

fn parts(fio: &[Pair], seeing: &[Pair], outside: u64) -> Vec<Part> {
    let published = &PUBLISHED.vma_bound;
    let verdict = match outside {
        0 => "holds: with the series no job of faults here caches a page outside".to_string(),
        pages => format!("FAILS: with the series {pages} pages are cached outside"),
    };
    vec![
        Part::Heading(published.title.clone()),
        Part::Paragraph(format!("Published: {}. Claimed: {}.", published.setup, published.claim)),
        Part::Table(fio_table()),
        Part::Paragraph(
            "These rows cannot see the change. fio's mmap engine advises its mapping SEQUENTIAL \
             or RANDOM before it touches it, so that read-around, which is what leaves a mapping \
             at its start, never runs, and a random access reads one page; psync reads with \
             read(2), which the series leaves alone. The mapping of 1 GiB has one end, and at \
             most one window reaches over it. What the rows differ by is their spread."
                .to_string(),
        ),
        Part::Table(table("The same shapes in the model, 128 KiB readahead", fio)),
        Part::Paragraph(ends(fio)),
        Part::Table(table("Jobs that can see it: mappings of parts, and many VMAs", seeing)),
        Part::Paragraph(
            "Small mappings gain: what was read outside of them is gone. Split scans lose: each \
             VMA's readahead ends at its last page, so each begins with a major fault, where one \
             mark after the other carried the scan before. Parts are mapped at 16 MiB of a file \
             of 64 MiB."
                .to_string(),
        ),
        Part::Paragraph(format!("The claim that cached pages never exceed the mapping {verdict}.")),
    ]
}

/// By how much the shapes of fio differ.
fn ends(fio: &[Pair]) -> String {
    let differing = fio.iter().filter(|pair| pair.figures(0) != pair.figures(1));
    let words: Vec<_> = differing
        .map(|pair| {
            let ([_, pages, major], [_, pages_after, major_after]) =
                (pair.figures(0), pair.figures(1));
            format!(
                "{}: {} pages of {pages} and {} major faults",
                pair.shape.name,
                pages.abs_diff(pages_after),
                major.abs_diff(major_after),
            )
        })
        .collect();
    match words.is_empty() {
        true => "No counter differs in any of the four.".to_string(),
        false => format!("All that differs is the end of the mapping: {}.", words.join("; ")),
    }
}

fn fio_table() -> Table {
    let row = |row: &FioRow| {
        let (before, after) = medians(row);
        let spread = |runs: &[f64]| Sample::of(runs.to_vec()).expect("a row has runs");
        let range = |sample: Sample| format!("{}-{}", sample.min, sample.max);
        vec![
            row.ioengine.clone(),
            row.rw.clone(),
            format!("{before}"),
            range(spread(&row.before_mib_s)),
            format!("{after}"),
            range(spread(&row.after_mib_s)),
            percent(after, before).map_or("-".to_string(), |change| format!("{change:+.1} %")),
        ]
    };
    Table {
        title: "Published: fio, MiB/s, median and range of five runs".to_string(),
        columns: vec![
            Column::left("engine"),
            Column::left("rw"),
            Column::right("before"),
            Column::right("range"),
            Column::right("after"),
            Column::right("range"),
            Column::right("change"),
        ],
        rows: PUBLISHED.vma_bound.rows.iter().map(row).collect(),
    }
}

fn table(title: &str, pairs: &[Pair]) -> Table {
    let mut columns = vec![Column::left("job")];
    for counter in ["outside", "pages read", "major"] {
        let counter = counter.replace(' ', "\n");
        columns.push(Column::right(format!("{counter}\nbefore")));
        columns.push(Column::right("\nafter"));
    }
    Table { title: title.to_string(), columns, rows: pairs.iter().map(Pair::row).collect() }
}
