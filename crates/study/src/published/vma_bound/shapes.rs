//! Jobs that are run without the series and with it.

use filemap_job::{Job, JobSpec, Record, SizeText};
use serde_json::{Value, json};

use filemap_report::{Head, Table};

/// Without the series, and with it.
pub(super) const VARIANTS: [&str; 2] = ["baseline", "vma-bound"];

/// Jobs of the shapes that fio was run in.
pub(super) const FIO: [Shape; 4] = [
    fio("mmap read", "sequential", "sequential"),
    fio("mmap randread", "random", "random"),
    fio("psync read", "read-sequential", "normal"),
    fio("psync randread", "read-random", "normal"),
];

/// Jobs that meet the end of a mapping.
pub(super) const SEEING: [Shape; 10] = [
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

/// A job that is run without the series and with it.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) name: &'static str,
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
    pub(super) fn job(&self, variant: &str) -> Job {
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

    pub(super) fn faults(&self) -> bool {
        !self.workload.starts_with("read-")
    }
}

/// Pages cached outside what is mapped, pages read, major faults.
pub(super) fn figures(record: &Record) -> [u64; 3] {
    let run = &record.runs[0];
    let cached = &run.cached;
    let outside = [cached.before, cached.between, cached.after].into_iter().flatten().sum();
    let (pages, major) = (run.counters.data_pages_read, run.counters.major_faults);
    [outside, pages.unwrap_or(0), major.unwrap_or(0)]
}

/// The cells of [`figures`] before and after, under [`figure_columns`].
pub(super) fn side_by_side(before: [u64; 3], after: [u64; 3]) -> impl Iterator<Item = String> {
    before.into_iter().zip(after).flat_map(|pair| [pair.0, pair.1].map(|figure| figure.to_string()))
}

/// Columns for [`side_by_side`], with these names for what they count.
pub(super) fn figure_columns(names: [&str; 3]) -> impl Iterator<Item = Head> {
    let both = |name| [Head::right(format!("{name}\nbefore")), Head::right("\nafter")];
    names.into_iter().flat_map(both)
}

/// A shape with what came out.
pub(super) struct Pair<'a> {
    pub(super) shape: &'a Shape,
    pub(super) records: &'a [Record],
}

impl Pair<'_> {
    /// [`figures`] of the variant with that number.
    pub(super) fn figures(&self, index: usize) -> [u64; 3] {
        figures(&self.records[index])
    }

    /// The same with the series and without.
    fn touched_pages(&self) -> u64 {
        let pages = self.shape.job(VARIANTS[0]).used_pages();
        pages.expect("a published file has few enough pages to count")
    }

    fn row(&self) -> Vec<String> {
        // Without its comma a long name leaves the table within the width of a page.
        let first = [self.shape.name.replacen("split scan, ", "split scan ", 1)];
        let touched = [self.touched_pages().to_string()];
        let rest = side_by_side(self.figures(0), self.figures(1));
        first.into_iter().chain(touched).chain(rest).collect()
    }

    pub(super) fn csv_rows(&self) -> impl Iterator<Item = Vec<String>> {
        (0..VARIANTS.len()).map(|index| {
            let figures = self.figures(index).map(|figure| figure.to_string());
            let names = ["vma-bound", self.shape.name, VARIANTS[index]].map(str::to_string);
            let touched = vec![self.touched_pages().to_string()];
            [names.to_vec(), figures.to_vec(), touched].concat()
        })
    }

    pub(super) fn json(&self) -> Vec<Value> {
        let cell = |(index, variant): (usize, &&str)| {
            let record = &self.records[index];
            let run = &record.runs[0];
            json!({
                "series": "vma-bound",
                "name": self.shape.name,
                "variant": variant,
                "published": null,
                "touched_pages": self.touched_pages(),
                "figures": {
                    "cached_outside": self.figures(index)[0],
                    "cached": run.cached,
                    "counters": run.counters,
                },
                "error": null,
                "ok": null,
                "verdict": "model only",
                "job": record.job,
            })
        };
        VARIANTS.iter().enumerate().map(cell).collect()
    }
}

pub(super) fn table(title: &str, pairs: &[Pair]) -> Table {
    let mut columns = vec![Head::left("job"), Head::right("pages\ntouched")];
    columns.extend(figure_columns(["outside", "pages\nread", "major"]));
    Table { title: title.to_string(), columns, rows: pairs.iter().map(Pair::row).collect() }
}
