//! The tables of a letter: one for each engine, or as many as it takes to keep to the width.

use std::ops::Range;

use filemap_job::EngineKind;

use super::super::cell::{Cell, has_several_engines};
use super::columns::Columns;
use super::machine::is_emulated;
use crate::figures::{self, FIGURES, Figure, ROUNDS_A_SECOND, Unit};
use crate::stats::Sample;
use filemap_report::units::{bytes_range, change, time_range};
use filemap_report::{Head, Table};
use filemap_report::{Part, TEXT_COLUMNS};

/// Widest line of a figure's name where a table has no room for the whole in one line.
const NARROW_NAME: usize = 18;

/// What stands behind a time that is not judged.
const NOT_JUDGED: &str = " (e)";

/// The line below a figure of several runs.
const RANGE: &str = "least..most";

/// How a factor begins.
const FACTOR: &str = "x ";

/// The tables of `cells`.
pub(super) fn tables(cells: &[Cell], columns: &Columns) -> Vec<Part> {
    groups(cells).into_iter().flat_map(|places| Group::of(cells, places, columns).parts()).collect()
}

/// The cells that are compared with each other: those of an engine, or all where each engine has
/// one only.
fn groups(cells: &[Cell]) -> Vec<Range<usize>> {
    let engine = |at: usize| &cells[at].record.engine;
    let begins = (1..cells.len()).filter(|&at| engine(at) != engine(at - 1));
    let mut begins: Vec<usize> = [0].into_iter().chain(begins).collect();
    if begins.len() == cells.len() {
        return std::iter::once(0..cells.len()).collect();
    }
    begins.push(cells.len());
    begins.windows(2).map(|ends| ends[0]..ends[1]).collect()
}

/// Cells that are compared with the first of them.
struct Group<'a> {
    title: String,
    cells: &'a [Cell],
    headings: Vec<String>,
    /// The figures of each cell, in the order of [`FIGURES`].
    samples: Vec<Vec<Option<Sample>>>,
}

impl<'a> Group<'a> {
    fn of(all: &'a [Cell], places: Range<usize>, columns: &Columns) -> Self {
        let cells = &all[places.clone()];
        let has_engines = has_several_engines(cells);
        let is_pair = cells.len() == 2 && !has_engines;
        let heading = |at: usize| {
            let own = columns.heading(at);
            match (has_engines, is_pair, at == places.start) {
                (true, ..) => format!("{}\n{own}", all[at].record.engine),
                (false, true, true) => format!("before\n{own}"),
                (false, true, false) => format!("after\n{own}"),
                (false, false, _) => own.to_string(),
            }
        };
        let title = match (has_several_engines(all), has_engines) {
            (true, false) if cells[0].record.engine == EngineKind::Model.name() => "On the model:",
            (true, false) => "On the kernel:",
            _ => "",
        };
        let samples = |cell: &Cell| figures::samples(&cell.record, cell.job.as_ref());
        Group {
            title: title.to_string(),
            cells,
            headings: places.clone().map(heading).collect(),
            samples: cells.iter().map(samples).collect(),
        }
    }

    /// As few tables as have room, each with the first cell.
    fn parts(&self) -> Vec<Part> {
        if self.cells.len() == 1 {
            return vec![self.part(&[])];
        }
        let mut parts = Vec::new();
        let mut rest: Vec<usize> = (1..self.cells.len()).collect();
        while !rest.is_empty() {
            let fitting = (1..=rest.len()).rev().find(|&many| self.table(&rest[..many]).is_some());
            let others = rest.split_off(fitting.unwrap_or(1));
            parts.push(self.part(&rest));
            rest = others;
        }
        parts
    }

    /// The first cell beside `others`, as a table or, where none has room, as a list.
    fn part(&self, others: &[usize]) -> Part {
        match self.table(others) {
            Some(table) => Part::Table(table),
            None => Part::List(self.list(others)),
        }
    }

    /// A table that has room: with each change beside its figure, or else below it.
    fn table(&self, others: &[usize]) -> Option<Table> {
        let names: [fn(&str) -> String; 2] = [|name| name.to_string(), narrow];
        let beside = names.into_iter().map(|named| self.beside(others, named));
        let below = names.into_iter().map(|named| self.below(others, named));
        beside.chain(below).find(fits)
    }

    /// Each change beside its figure, which is called as `named` says.
    fn beside(&self, others: &[usize], named: fn(&str) -> String) -> Table {
        let mut columns = vec![Head::left("figure"), Head::right(&*self.headings[0])];
        for &other in others {
            columns.extend([Head::right(&*self.headings[other]), Head::right("change")]);
        }
        let row = |(at, figure, name): (usize, &Figure, String)| {
            let mut row = Row::new(named(&name), 2 * others.len() + 1);
            let medians = others.iter().flat_map(|&other| {
                [self.median(other, at, figure), self.change(other, at, figure)]
            });
            row.add("", [self.median(0, at, figure)].into_iter().chain(medians));
            let ranges = others.iter().flat_map(|&other| [self.range(other, at, figure), None]);
            let ranges = [self.range(0, at, figure)].into_iter().chain(ranges);
            row.add_some(RANGE, ranges.collect());
            row.cells
        };
        Table { title: self.title.clone(), columns, rows: self.shown().map(row).collect() }
    }

    /// Each change below its figure, which is called as `named` says.
    fn below(&self, others: &[usize], named: fn(&str) -> String) -> Table {
        let all: Vec<usize> = [0].iter().chain(others).copied().collect();
        let headings = all.iter().map(|&cell| Head::right(&*self.headings[cell]));
        let row = |(at, figure, name): (usize, &Figure, String)| {
            let mut row = Row::new(named(&name), all.len());
            row.add("", all.iter().map(|&cell| self.median(cell, at, figure)));
            row.add_some(RANGE, all.iter().map(|&cell| self.range(cell, at, figure)).collect());
            let changes = others.iter().map(|&other| self.change(other, at, figure));
            let changes: Vec<String> = changes.collect();
            if changes.iter().any(|change| change != "=" && change != "-") {
                row.add("change", [String::new()].into_iter().chain(changes));
            }
            row.cells
        };
        let columns = [Head::left("figure")].into_iter().chain(headings).collect();
        Table { title: self.title.clone(), columns, rows: self.shown().map(row).collect() }
    }

    fn list(&self, others: &[usize]) -> Vec<String> {
        let of = |cell: usize, at: usize, figure: &Figure| {
            let range = self.range(cell, at, figure);
            let range = range.map_or_else(String::new, |range| format!(" ({range})"));
            let heading = self.headings[cell].replace('\n', " ");
            format!("{heading}: {}{range}", self.median(cell, at, figure))
        };
        let item = |(at, figure, name): (usize, &Figure, String)| {
            let mut said = vec![of(0, at, figure)];
            for &other in others {
                said.push(of(other, at, figure));
                said.push(format!("change {}", self.change(other, at, figure)));
            }
            format!("{} - {}", name.trim_start(), said.join("; "))
        };
        self.shown().map(item).collect()
    }

    /// The figures that have a row: the place of each, and what it is called.
    fn shown(&self) -> impl Iterator<Item = (usize, &'static Figure, String)> + '_ {
        FIGURES.iter().enumerate().filter_map(|(at, figure)| {
            let own = || self.samples.iter().map(|samples| &samples[at]);
            let is_any = own().flatten().any(|sample| sample.max > 0.0);
            if !is_any || !figures::is_shown(figure, own()) {
                return None;
            }
            let engines = self.cells.iter().map(|cell| cell.record.engine.as_str());
            Some((at, figure, figures::row_name(figure, engines)))
        })
    }

    fn median(&self, cell: usize, at: usize, figure: &Figure) -> String {
        let Some(sample) = &self.samples[cell][at] else { return "-".to_string() };
        let mark = if self.is_judged(cell, figure) { "" } else { NOT_JUDGED };
        format!("{}{mark}", figure.unit.text(sample.median))
    }

    /// The least and the most, where they differ.
    fn range(&self, cell: usize, at: usize, figure: &Figure) -> Option<String> {
        range(figure.unit, self.samples[cell][at].as_ref()?)
    }

    fn change(&self, cell: usize, at: usize, figure: &Figure) -> String {
        let own = |cell: usize| {
            let sample = self.samples[cell][at].as_ref().filter(|_| self.is_judged(cell, figure));
            sample.map(|sample| sample.median)
        };
        own(0).zip(own(cell)).map_or("-".to_string(), |(before, after)| change(before, after))
    }

    /// Whether a figure of a cell says anything of a machine.
    fn is_judged(&self, cell: usize, figure: &Figure) -> bool {
        let is_time = figure.unit == Unit::Nanoseconds || figure.name == ROUNDS_A_SECOND;
        !(is_time && is_emulated(&self.cells[cell].record))
    }
}

/// A row of lines: what they are, and a line of each cell.
struct Row {
    cells: Vec<String>,
}

impl Row {
    /// Of a figure of this name and so many cells.
    fn new(name: String, cells: usize) -> Self {
        let above = "\n".repeat(name.matches('\n').count());
        // What follows stands in the last line of the name.
        Row { cells: [name].into_iter().chain(std::iter::repeat_n(above, cells)).collect() }
    }

    fn add(&mut self, label: &str, values: impl IntoIterator<Item = String>) {
        let is_first = label.is_empty();
        if !is_first {
            self.cells[0] += &format!("\n    {label}");
        }
        for (cell, value) in self.cells[1..].iter_mut().zip(values) {
            if !is_first {
                cell.push('\n');
            }
            cell.push_str(&value);
        }
    }

    /// Adds a line where any cell has something there.
    fn add_some(&mut self, label: &str, values: Vec<Option<String>>) {
        if values.iter().any(Option::is_some) {
            self.add(label, values.into_iter().map(Option::unwrap_or_default));
        }
    }
}

/// The least and the most of a figure, where they differ as they are written. The unit is left out
/// where it is that of the median.
fn range(unit: Unit, sample: &Sample) -> Option<String> {
    let (min, max) = (sample.min, sample.max);
    if unit.text(min) == unit.text(max) {
        return None;
    }
    let text = match unit {
        Unit::Bytes => bytes_range(min, max).replace(" to ", ".."),
        Unit::Nanoseconds => time_range(min, max).replace(" to ", ".."),
        Unit::Factor => format!("{}..{}", unit.text(min), &unit.text(max)[FACTOR.len()..]),
        unit => format!("{}..{}", unit.text(min), unit.text(max)),
    };
    let median = unit.text(sample.median);
    let name =
        median.rsplit(' ').next().filter(|_| matches!(unit, Unit::Bytes | Unit::Nanoseconds));
    let without = name.and_then(|name| text.strip_suffix(name)).map(str::trim_end);
    let is_alone = |text: &&str| !text.contains(' ');
    Some(without.filter(is_alone).map_or(text.clone(), String::from))
}

/// A figure's name in lines that are narrow; what is indented stays so.
fn narrow(name: &str) -> String {
    let indent = &name[..name.len() - name.trim_start().len()];
    let mut lines = vec![indent.to_string()];
    for word in name.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.len() + 1 + word.len() > NARROW_NAME && line.trim() != "" {
            lines.push(format!("{indent}  {word}"));
        } else {
            if line.trim() != "" {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

fn fits(table: &Table) -> bool {
    table.text().lines().all(|line| line.chars().count() <= TEXT_COLUMNS)
}
