//! Tables of figures for the variants of one job.

use std::collections::BTreeSet;

use filemap_job::{FileSummary, Spread};
use filemap_report::units::number;
use filemap_report::{Better, ComparisonTable, Figure, Sample, Table, Unit, Variant};

use super::Variants;
use super::emulated::is_emulated;
use crate::figures::{FIGURES, ROUNDS_A_SECOND};
use crate::measure::Measurement;
use crate::record::{MAX_ROWS, spreads, with_range};
use crate::setup;

/// Suffix of times measured under emulation, which say nothing about real hardware.
pub(super) const NOT_JUDGED: &str = " (e)";

/// A per-file figure: its name, and its spread over the runs of a record.
type OfFile = (&'static str, fn(&FileSummary) -> Option<Spread>);

pub(super) const OF_FILES: [OfFile; 3] = [
    ("pages read", |file| file.data_pages_read),
    ("major faults", |file| file.major_faults),
    ("pages cached at the end", |file| file.cached),
];

impl Variants<'_> {
    /// `figures` as a table with a column for each variant.
    fn compared(&self, figures: Vec<Figure>) -> ComparisonTable {
        let variant = |(cell, record): (&super::Cell, &filemap_job::Record)| Variant {
            name: cell.variant.clone(),
            group: cell.engine.clone(),
            about: setup::kernel(record, record.job.with.as_deref()),
        };
        let variants = self.cells.iter().zip(&self.records).map(variant).collect();
        ComparisonTable { variants, figures }
    }

    /// The headline figures.
    pub(super) fn figures(&self) -> ComparisonTable {
        let of_figure = |(at, figure): (usize, &'static crate::figures::Figure)| {
            let own = || {
                self.measures.iter().map(|measure| measure.iter().nth(at).and_then(|(_, own)| own))
            };
            let is_time = figure.unit == Unit::Nanoseconds || figure.key == ROUNDS_A_SECOND;
            let sample = |(own, record): (Option<&Measurement>, &filemap_job::Record)| {
                let &Measurement { median, min, max, .. } = own?;
                let mark = if is_time && is_emulated(record) { NOT_JUDGED } else { "" };
                Some(Sample { median, min, max, mark })
            };
            figure.is_shown(own()).then(|| Figure {
                name: figure.row_name(self.cells.iter().map(|cell| cell.engine.as_str())),
                unit: figure.unit,
                better: figure.better,
                rank: figure.rank(),
                samples: own().zip(&self.records).map(sample).collect(),
            })
        };
        self.compared(FIGURES.iter().enumerate().filter_map(of_figure).collect())
    }

    /// Every counter under its JSON name, split into tables that fit the width of a report.
    pub(super) fn counters(&self) -> Vec<Table> {
        let own: Vec<_> = self.records.iter().map(spreads).collect();
        let of_counter = |at: usize| plain(own[0][at].0, own.iter().map(|own| own[at].1));
        let figures = (0..own[0].len()).map(of_counter);
        let figures = figures.filter(|figure| figure.samples.iter().any(Option::is_some));
        self.compared(figures.collect()).plain_tables("", "counter", |figure, at| {
            figure.samples[at].map_or("-".to_string(), |own| number(own.median))
        })
    }

    /// One table for each per-file figure: a row for each file, a column for each variant.
    pub(super) fn by_file(&self) -> Vec<Table> {
        let names = self.files();
        let table = |(title, file): OfFile| {
            let of_file = |&(at, name): &(usize, &str)| {
                let own =
                    (0..self.cells.len()).map(|cell| self.file(cell, at, name).and_then(file));
                plain(name, own)
            };
            let mut figures: Vec<Figure> = names.iter().take(MAX_ROWS).map(of_file).collect();
            if names.len() > MAX_ROWS {
                let last = format!("and {} more (in JSON)", names.len() - MAX_ROWS);
                figures.push(plain(&last, self.cells.iter().map(|_| None)));
            }
            let title = format!("By file: {title}");
            self.compared(figures).plain_tables(&title, "file", |figure, at| {
                let own = figure.samples[at];
                own.map_or(String::new(), |own| with_range(own.median, [own.min, own.max]))
            })
        };
        if names.is_empty() { Vec::new() } else { OF_FILES.into_iter().flat_map(table).collect() }
    }

    /// The file `name` of a variant. Tries index `at` first, where most variants have it.
    pub(super) fn file(&self, cell: usize, at: usize, name: &str) -> Option<&FileSummary> {
        let files = &self.cells[cell].figures.files;
        let is_it = |file: &&FileSummary| file.name == name;
        files.get(at).filter(is_it).or_else(|| files.iter().find(is_it))
    }

    /// The distinct files of all variants, each with its index in the first variant that has it.
    fn files(&self) -> Vec<(usize, &str)> {
        let mut known = BTreeSet::new();
        let files = self.cells.iter().flat_map(|cell| cell.figures.files.iter().enumerate());
        let files = files.map(|(at, file)| (at, file.name.as_str()));
        files.filter(|(_, name)| known.insert(*name)).collect()
    }
}

/// A figure made of one count for each variant.
fn plain(name: &str, own: impl Iterator<Item = Option<Spread>>) -> Figure {
    let sample = |Spread { median, min, max, .. }| Sample {
        median,
        min: min as f64,
        max: max as f64,
        mark: "",
    };
    let samples = own.map(|spread| spread.map(sample)).collect();
    let (unit, better) = (Unit::Count, Better::Neither);
    Figure { name: name.to_string(), unit, better, rank: None, samples }
}
