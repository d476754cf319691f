//! Figures of several variants, all held against the first: each form lays them out as it has room.

mod letter;

use crate::bars::{Bar, Bars};
use crate::compared::{ComparedTable, Figure, Sample, Variant};
use crate::report::{Details, Part};
use crate::table::{Head, Table};
use crate::text::fits;
use crate::units::change;

/// Longest name that is written in one line.
const LONGEST_NAME: usize = 12;

/// The line with the changes of a figure.
const CHANGE: &str = "    change";

impl Figure {
    fn median(&self, variant: usize) -> String {
        let text = |own: &Sample| format!("{}{}", self.unit.text(own.median), own.mark);
        self.samples[variant].as_ref().map_or("-".to_string(), text)
    }

    /// How a variant differs from the first.
    fn change(&self, variant: usize) -> String {
        let judged = |at: usize| self.samples[at].filter(|own| own.mark.is_empty());
        let both = judged(0).zip(judged(variant));
        both.map_or("-".to_string(), |(first, own)| change(first.median, own.median))
    }

    fn is_any(&self) -> bool {
        self.samples.iter().flatten().any(|sample| sample.max > 0.0)
    }
}

/// A line of a table: its name, and what each variant has there with what stands beside it.
struct Line<'a> {
    name: String,
    of: &'a dyn Fn(usize) -> String,
    beside: &'a dyn Fn(usize) -> String,
}

impl ComparedTable {
    /// A table as wide as text is: changes stand beside their figures, or below them where that is
    /// too wide. Where that is too wide as well, variants are rows.
    pub fn table(&self) -> Table {
        let others: Vec<usize> = (1..self.variants.len()).collect();
        let tables = [true, false].map(|is_beside| self.columns(&others, is_beside));
        tables.into_iter().find(fits).unwrap_or_else(|| self.rows())
    }

    /// Tables of what `text` says of each figure, which is `of` what: without changes, and as many
    /// as it takes to keep to the width of text, each with the first variant.
    pub fn plain(&self, title: &str, of: &str, text: fn(&Figure, usize) -> String) -> Vec<Table> {
        let table = |others: &[usize]| {
            let shown = || std::iter::once(0).chain(others.iter().copied());
            let headings = shown().map(|at| Head::right(self.heading(at)));
            let row = |figure: &Figure| {
                let own = shown().map(|at| text(figure, at));
                [figure.name.clone()].into_iter().chain(own).collect()
            };
            Table {
                title: title.to_string(),
                columns: [Head::left(of)].into_iter().chain(headings).collect(),
                rows: self.figures.iter().map(row).collect(),
            }
        };
        let others: Vec<usize> = (1..self.variants.len()).collect();
        let shares = shares(&others, |others| fits(&table(others)));
        shares.iter().map(|others| table(others)).collect()
    }

    /// The figures that matter most as bars, and the others for whom wants to see them so.
    pub(crate) fn drawn(&self) -> Vec<Part> {
        let known = self.figures.iter().filter(|figure| figure.is_any());
        let (mut first, others): (Vec<&Figure>, Vec<&Figure>) =
            known.partition(|figure| figure.rank.is_some());
        first.sort_by_key(|figure| figure.rank);
        let bars = |figures: Vec<&Figure>| -> Vec<Part> {
            figures.into_iter().map(|figure| Part::Bars(self.bars(figure))).collect()
        };
        let mut parts = bars(first);
        if !others.is_empty() {
            let summary = "Other figures, drawn".to_string();
            parts.push(Part::Details(Details { summary, parts: bars(others) }));
        }
        parts
    }

    fn bars(&self, figure: &Figure) -> Bars {
        let bar = |at: usize| {
            let sample = figure.samples[at];
            let range = sample.filter(|sample| sample.min < sample.max);
            let text = |value: f64| figure.unit.text(value);
            let range = range.map(|own| format!("{} to {}", text(own.min), text(own.max)));
            let change = if at == 0 { String::new() } else { figure.change(at) };
            let change = if change == "-" { String::new() } else { change };
            Bar {
                name: self.name(at),
                value: sample.map(|sample| sample.median),
                class: if at == 0 { "u2" } else { "u4" },
                texts: vec![figure.median(at), change, range.unwrap_or_default()],
            }
        };
        let title = self.title(figure);
        let heads = ["variant", "median", "change", "range"];
        Bars::new(title, &heads, (0..self.variants.len()).map(bar).collect())
    }

    /// What stands above a figure that stands alone.
    pub fn title(&self, figure: &Figure) -> String {
        let name = self.whole_name(figure);
        let first = name.chars().next().map_or(0, char::len_utf8);
        name[..first].to_uppercase() + &name[first..]
    }

    /// The name of a figure where no other stands above it.
    pub fn whole_name(&self, figure: &Figure) -> String {
        let above = self.figures.iter().rev().skip_while(|of| of.name != figure.name);
        match above.skip(1).find(|of| !of.name.starts_with(' ')) {
            Some(whole) if figure.name.starts_with(' ') => {
                format!("{}: {}", whole.name, figure.name.trim())
            }
            _ => figure.name.clone(),
        }
    }

    fn has_groups(&self) -> bool {
        self.variants.iter().any(|variant| variant.group != self.variants[0].group)
    }

    /// What a variant is called in a line.
    pub fn name(&self, at: usize) -> String {
        let Variant { name, group, .. } = &self.variants[at];
        if self.has_groups() { format!("{name} on the {group}") } else { name.clone() }
    }

    /// What stands above the column of a variant.
    fn heading(&self, at: usize) -> String {
        let name = folded(&self.variants[at].name);
        if self.has_groups() { format!("{}\n{name}", self.variants[at].group) } else { name }
    }

    /// The first variant and `others` as columns, each change beside its figure or below it.
    fn columns(&self, others: &[usize], is_beside: bool) -> Table {
        let headings: Vec<String> = (0..self.variants.len()).map(|at| self.heading(at)).collect();
        let mut table = in_columns("figure", &headings, others, is_beside);
        for figure in &self.figures {
            table.add_figure(figure, figure.name.clone());
            table.add_changes(figure);
        }
        table.table
    }

    /// Variants as rows: as many of the figures that matter most as there is room for, with their
    /// changes if these fit too.
    fn rows(&self) -> Table {
        let mut table = Table {
            title: String::new(),
            columns: vec![Head::left("variant")],
            rows: (0..self.variants.len()).map(|at| vec![self.name(at)]).collect(),
        };
        let mut first: Vec<&Figure> =
            self.figures.iter().filter(|figure| figure.rank.is_some()).collect();
        first.sort_by_key(|figure| figure.rank);
        for (position, figure) in first.into_iter().enumerate() {
            let with = |changes: bool| {
                let mut wider = table.clone();
                wider.columns.push(Head::right(figure.name.trim().replace(' ', "\n")));
                wider.columns.extend(changes.then(|| Head::right("change")));
                for (at, row) in wider.rows.iter_mut().enumerate() {
                    row.push(figure.median(at));
                    let change = if at == 0 { String::new() } else { figure.change(at) };
                    row.extend(changes.then_some(change));
                }
                wider
            };
            // However long the names are, the first two figures are wanted.
            let all = with(true);
            table = match () {
                () if position < 2 || fits(&all) => all,
                () if fits(&with(false)) => with(false),
                () => break,
            };
        }
        table
    }
}

/// A table whose columns are variants.
struct Columns<'a> {
    table: Table,
    others: &'a [usize],
    is_beside: bool,
}

/// One without rows, which are of what `rows` says, of the first variant and `others`.
fn in_columns<'a>(
    rows: &str,
    headings: &[String],
    others: &'a [usize],
    is_beside: bool,
) -> Columns<'a> {
    let mut columns = vec![Head::left(rows), Head::right(&*headings[0])];
    for &other in others {
        columns.push(Head::right(&*headings[other]));
        columns.extend(is_beside.then(|| Head::right("change")));
    }
    Columns { table: Table { columns, ..Table::default() }, others, is_beside }
}

impl Columns<'_> {
    fn add(&mut self, line: Line) {
        let mut row = vec![line.name, (line.of)(0)];
        for &other in self.others {
            row.push((line.of)(other));
            row.extend(self.is_beside.then(|| (line.beside)(other)));
        }
        self.table.rows.push(row);
    }

    /// The medians of a figure, which is called `name` here: its last line has them.
    fn add_figure(&mut self, figure: &Figure, name: String) {
        let above = "\n".repeat(name.matches('\n').count());
        self.add(Line {
            name,
            of: &|at| above.clone() + &figure.median(at),
            beside: &|at| above.clone() + &figure.change(at),
        });
    }

    /// The changes of a figure, where they have a line of their own.
    fn add_changes(&mut self, figure: &Figure) {
        let changes = |at: &usize| !["=", "-"].contains(&figure.change(*at).as_str());
        if !self.is_beside && self.others.iter().any(changes) {
            let of = |at: usize| if at == 0 { String::new() } else { figure.change(at) };
            self.add(Line { name: CHANGE.to_string(), of: &of, beside: &|_| String::new() });
        }
    }
}

/// `others` in as few shares as fit, each as long as it can be.
fn shares(others: &[usize], fits: impl Fn(&[usize]) -> bool) -> Vec<Vec<usize>> {
    let mut shares = Vec::new();
    let mut rest = others.to_vec();
    loop {
        let fitting = (1..=rest.len()).rev().find(|&many| fits(&rest[..many]));
        let behind = rest.split_off(fitting.unwrap_or(1).min(rest.len()));
        shares.push(rest);
        if behind.is_empty() {
            return shares;
        }
        rest = behind;
    }
}

/// A name of several parts on several lines.
fn folded(name: &str) -> String {
    if name.len() <= LONGEST_NAME {
        return name.to_string();
    }
    name.replace('+', "+\n").replace('=', "=\n")
}
