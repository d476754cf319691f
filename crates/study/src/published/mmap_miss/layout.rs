//! The tables of the series.

use super::cell::{Measured, gib_text};
use super::notes;
use crate::published::data::{Case, PUBLISHED};
use crate::spread::over_seeds;
use crate::stats::percent;
use filemap_report::Part;
use filemap_report::{Head, Table};

/// The report on all cells. `slope` is by how many GiB the random baseline of the largest file
/// changes with a step of page cache.
pub fn parts(cells: &[Measured], slope: f64) -> Vec<Part> {
    let published = &PUBLISHED.mmap_miss;
    let mut parts = published.source.parts();
    parts.push(Part::Paragraph(notes::columns(cells)));
    for case in &published.case {
        let of_case = cells.iter().filter(|cell| cell.cell.case.file_gib == case.file_gib);
        parts.push(Part::Table(case_table(case, of_case)));
    }
    parts.push(Part::Table(spread_table(cells)));
    parts.push(Part::Table(rerun_table()));
    parts.extend(notes::notes(cells, slope).into_iter().map(Part::Paragraph));
    parts
}

/// Every cell as one row.
pub fn rows(cells: &[Measured]) -> Table {
    let names = [
        "series",
        "file_gib",
        "ram_gib",
        "workload",
        "variant",
        "published_gib",
        "model_gib",
        "error_percent",
        "ok",
        "seeds",
        "mean_gib",
        "sd_gib",
        "min_gib",
        "max_gib",
        "touched_gib",
        "verdict",
    ];
    let row = |cell: &Measured| {
        let published = cell.cell.published();
        let text = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        vec![
            "mmap-miss".to_string(),
            cell.cell.case.file_gib.to_string(),
            cell.cell.case.ram_gib.to_string(),
            cell.cell.workload.to_string(),
            cell.cell.variant.to_string(),
            text(published.map(|row| row.gib)),
            cell.figure_gib.to_string(),
            text(cell.error_percent),
            cell.ok.map_or(String::new(), |ok| ok.to_string()),
            cell.gib.samples.len().to_string(),
            cell.gib.mean.to_string(),
            cell.gib.sd.to_string(),
            cell.gib.min.to_string(),
            cell.gib.max.to_string(),
            cell.touched_gib.to_string(),
            cell.verdict().to_string(),
        ]
    };
    let columns = names.into_iter().map(Head::left).collect();
    Table { title: String::new(), columns, rows: cells.iter().map(row).collect() }
}

fn case_table<'a>(case: &Case, cells: impl Iterator<Item = &'a Measured>) -> Table {
    let row = |cell: &Measured| {
        vec![
            cell.cell.workload.to_string(),
            cell.cell.variant.to_string(),
            gib_text(cell.touched_gib),
            cell.cell.published().map_or("-".to_string(), |row| gib_text(row.gib)),
            gib_text(cell.figure_gib),
            cell.error_percent.map_or("-".to_string(), signed_percent),
            match cell.ok {
                Some(false) => format!("FAIL: not {}", cell.cell.tolerance()),
                _ => cell.verdict().to_string(),
            },
        ]
    };
    Table {
        title: format!(
            "GiB touched and read, {} GiB file, {} GiB RAM",
            case.file_gib, case.ram_gib
        ),
        columns: vec![
            Head::left("workload"),
            Head::left("variant"),
            Head::right("touched"),
            Head::right("published"),
            Head::right("model"),
            Head::right("error"),
            Head::left("verdict"),
        ],
        rows: cells.map(row).collect(),
    }
}

fn spread_table(cells: &[Measured]) -> Table {
    let random: Vec<_> = cells.iter().filter(|cell| cell.cell.is_random()).collect();
    let row = |cell: &&Measured| {
        vec![
            format!("{} GiB", cell.cell.case.file_gib),
            cell.cell.variant.to_string(),
            cell.cell.published().map_or("-".to_string(), |row| gib_text(row.gib)),
            gib_text(cell.gib.mean),
            gib_text(cell.gib.sd),
            gib_text(cell.gib.min),
            gib_text(cell.gib.max),
            match cell.inside() {
                Some(true) => "yes",
                Some(false) => "no",
                None => "-",
            }
            .to_string(),
        ]
    };
    let seeds = over_seeds(random.first().map_or(0, |cell| cell.gib.samples.len()));
    Table {
        title: format!("Random cells {seeds}, GiB read"),
        columns: vec![
            Head::left("file"),
            Head::left("variant"),
            Head::right("published"),
            Head::right("mean"),
            Head::right("sd"),
            Head::right("min"),
            Head::right("max"),
            Head::left("inside"),
        ],
        rows: random.iter().map(row).collect(),
    }
}

/// The rows that were published twice: the spread of the method itself.
fn rerun_table() -> Table {
    let mut rows = Vec::new();
    for case in &PUBLISHED.mmap_miss.case {
        for again in &case.rerun {
            let first = case.row(&again.workload, &again.variant);
            let off = first.and_then(|first| percent(again.gib, first.gib));
            rows.push(vec![
                format!("{} GiB", case.file_gib),
                again.workload.clone(),
                again.variant.clone(),
                first.map_or("-".to_string(), |first| gib_text(first.gib)),
                gib_text(again.gib),
                off.map_or("-".to_string(), signed_percent),
            ]);
        }
    }
    Table {
        title: "Published twice by the authors: the spread of the method itself, GiB read".into(),
        columns: vec![
            Head::left("file"),
            Head::left("workload"),
            Head::left("variant"),
            Head::right("first"),
            Head::right("again"),
            Head::right("difference"),
        ],
        rows,
    }
}

fn signed_percent(value: f64) -> String {
    match format!("{value:+.2} %") {
        zero if zero.ends_with("0.00 %") && value.abs() < 0.1 => "0.00 %".to_string(),
        other => other,
    }
}
