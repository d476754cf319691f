//! The vma-bound series: fio's rows, which cannot see it, and jobs that can.

mod fio;
mod programs;
mod shapes;

use filemap_job::Job;
use serde_json::{Value, json};

use super::data::PUBLISHED;
use super::{Findings, FioRuns, MeasuredHere, Ran, Study};
use filemap_report::Part;
use filemap_report::{Head, Table};
use programs::Program;
use shapes::{FIO, Pair, SEEING, Shape, VARIANTS};

/// The study of the series.
pub struct VmaBound {
    /// What ran of fio here, or why nothing did; `None` where that was not asked for.
    fio: Option<Result<FioRuns, String>>,
    /// Programs of this machine with their jobs.
    programs: Vec<(String, Vec<Job>)>,
}

impl VmaBound {
    /// The study with what this machine adds to it.
    pub fn new(here: Option<MeasuredHere>) -> Self {
        let (programs, fio) = here.map(|here| (here.programs, here.fio)).unzip();
        let jobs = |spec: &filemap_job::JobSpec| Some((spec.file.clone()?, programs::jobs(spec)));
        let programs = programs.iter().flatten().filter_map(jobs);
        VmaBound { fio, programs: programs.filter(|(_, jobs)| !jobs.is_empty()).collect() }
    }
}

impl Study for VmaBound {
    fn jobs(&self) -> Vec<Job> {
        let both = |shape: &Shape| VARIANTS.map(|variant| shape.job(variant));
        let shapes = FIO.iter().chain(&SEEING).flat_map(both);
        shapes.chain(self.programs.iter().flat_map(|(_, jobs)| jobs.clone())).collect()
    }

    fn findings(&self, ran: &Ran<'_>) -> Findings {
        let records = ran.records;
        let (of_shapes, mut left) = records.split_at((FIO.len() + SEEING.len()) * VARIANTS.len());
        let pairs: Vec<_> = FIO
            .iter()
            .chain(&SEEING)
            .zip(of_shapes.chunks(VARIANTS.len()))
            .map(|(shape, records)| Pair { shape, records })
            .collect();
        let mut programs = Vec::new();
        for (path, jobs) in &self.programs {
            let (records, rest) = left.split_at(jobs.len());
            programs.push(Program { path, records });
            left = rest;
        }
        // What is claimed is of faults; read(2) is not bounded by a mapping.
        let of_faults = pairs.iter().filter(|pair| pair.shape.faults());
        let outside: u64 = of_faults.map(|pair| pair.figures(1)[0]).sum();
        let outside = outside + programs.iter().map(Program::outside_after).sum::<u64>();
        let mut cells: Vec<_> = pairs.iter().flat_map(Pair::json).collect();
        cells.extend(programs.iter().flat_map(Program::json));
        cells.extend(PUBLISHED.vma_bound.rows.iter().map(fio::published_json));
        if let Some(Ok(runs)) = &self.fio {
            cells.extend(fio::measured_json(runs));
        }
        cells.push(claim_json(outside));
        let names = [
            "series",
            "name",
            "variant",
            "cached_outside",
            "data_pages",
            "major_faults",
            "touched_pages",
        ];
        let mut rows: Vec<_> = pairs.iter().flat_map(Pair::csv_rows).collect();
        rows.extend(programs.iter().flat_map(Program::csv_rows));
        Findings {
            parts: self.parts(&pairs, &programs, outside),
            rows: Table {
                title: String::new(),
                columns: names.into_iter().map(Head::left).collect(),
                rows,
            },
            cells,
            source: &PUBLISHED.vma_bound.source,
            failed: usize::from(outside > 0),
            origin: None,
        }
    }
}

impl VmaBound {
    fn parts(&self, pairs: &[Pair], programs: &[Program], outside: u64) -> Vec<Part> {
        let published = &PUBLISHED.vma_bound;
        let (of_fio, seeing) = pairs.split_at(FIO.len());
        let mut parts = published.source.parts();
        parts.extend([
            Part::Paragraph(format!("Claimed: {}.", published.claim)),
            Part::Table(fio::published_table()),
            Part::Paragraph(
                "These rows cannot see the change. fio's mmap engine advises its mapping \
                 SEQUENTIAL or RANDOM before it touches it, so that read-around, which is what \
                 leaves a mapping at its start, never runs, and a random access reads one page; \
                 psync reads with read(2), which the series leaves alone. The mapping of 1 GiB \
                 has one end, and at most one window reaches over it. What the rows differ by is \
                 their spread."
                    .to_string(),
            ),
            Part::Table(shapes::table("The same shapes in the model, 128 KiB readahead", of_fio)),
            Part::Paragraph(ends(of_fio)),
        ]);
        parts.extend(self.fio.iter().flat_map(fio::measured_parts));
        parts.extend([
            Part::Table(shapes::table(
                "Jobs that can see it: mappings of parts, and many VMAs",
                seeing,
            )),
            Part::Paragraph(
                "Small mappings gain: what was read outside of them is gone. Split scans lose: \
                 each VMA's readahead ends at its last page, so each begins with a major fault, \
                 where one mark after the other carried the scan before. Parts are mapped at 16 \
                 MiB of a file of 64 MiB."
                    .to_string(),
            ),
        ]);
        if !programs.is_empty() {
            parts.push(Part::Table(programs::table(programs)));
        }
        let verdict = match outside {
            0 => "holds: with the series no job of faults here caches a page outside".to_string(),
            pages => format!("FAILS: with the series {pages} pages are cached outside"),
        };
        let claim = format!("The claim that cached pages never exceed the mapping {verdict}.");
        parts.push(Part::Paragraph(claim));
        if self.fio.is_none() {
            let more = "With --full: fio itself and this machine's programs.";
            parts.push(Part::Paragraph(more.to_string()));
        }
        parts
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
        "verdict": if outside == 0 { "ok" } else { "fail" },
    })
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
