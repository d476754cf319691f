//! Figures of several variants, compared with the first one, and their layout in each form.

mod letter;

use crate::bars::{Bar, BarTable};
use crate::column::{Better, Unit};
use crate::report::{Details, Part};
use crate::table::{Head, Table};
use crate::text::fits;
use crate::units::change;

/// Maximum length of a name in one line.
const MAX_NAME: usize = 12;

/// Changes that are not coloured, as a share.
const SMALL_CHANGE: f64 = 0.01;

/// The name of the line with a figure's changes.
const CHANGE: &str = "    change";

/// Figures of several variants, compared with the first one.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct ComparisonTable {
    /// The first is the base of all changes.
    pub variants: Vec<Variant>,
    pub figures: Vec<Figure>,
}

/// A column of figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Its name: parts joined by `+` and `=`.
    pub name: String,
    /// What ran it, if not all variants ran on the same.
    pub group: String,
    /// Its description in a letter.
    pub about: String,
}

/// One figure of every variant.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Figure {
    /// Its name; leading blanks make it a part of the figure above.
    pub name: String,
    pub unit: Unit,
    pub better: Better,
    /// Its rank among the most important figures, if it is one.
    pub rank: Option<usize>,
    /// By variant; `None` if unknown.
    pub samples: Vec<Option<Sample>>,
}

/// A figure over the runs of a variant.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Sample {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// A suffix; a sample with a mark is not compared.
    pub mark: &'static str,
}

impl Figure {
    fn median(&self, variant: usize) -> String {
        let text = |own: &Sample| format!("{}{}", self.unit.text(own.median), own.mark);
        self.samples[variant].as_ref().map_or("-".to_string(), text)
    }

    /// The change of a variant against the first.
    fn change(&self, variant: usize) -> String {
        let comparable = |at: usize| self.samples[at].filter(|own| own.mark.is_empty());
        let both = comparable(0).zip(comparable(variant));
        both.map_or("-".to_string(), |(first, own)| change(first.median, own.median))
    }

    /// Whether the median of a variant is better than the first one's, beyond what is shown as a
    /// change of less than 1 %; `None` if neither is better.
    fn is_better(&self, variant: usize) -> Option<bool> {
        let [first, own] = [0, variant].map(|at| self.samples[at]);
        let (first, own) =
            first.zip(own).filter(|(a, b)| a.mark.is_empty() && b.mark.is_empty())?;
        let is_change = (own.median - first.median).abs() > SMALL_CHANGE * first.median.abs();
        let is_less = own.median < first.median;
        match self.better {
            Better::Neither => None,
            better => is_change.then_some(is_less == (better == Better::Less)),
        }
    }

    fn has_range(&self) -> bool {
        self.samples.iter().flatten().any(|sample| sample.min < sample.max)
    }

    fn is_any(&self) -> bool {
        self.samples.iter().flatten().any(|sample| sample.max > 0.0)
    }
}

/// A line of a table: its name, and for each variant its value and its change.
struct TableLine<'a> {
    name: String,
    value: &'a dyn Fn(usize) -> String,
    change: &'a dyn Fn(usize) -> String,
}

impl ComparisonTable {
    /// A table that fits the width of text: with changes next to figures, else below them, else
    /// with variants as rows.
    pub fn table(&self) -> Table {
        let others: Vec<usize> = (1..self.variants.len()).collect();
        let tables =
            [true, false].map(|has_change_columns| self.columns(&others, has_change_columns));
        tables.into_iter().find(fits).unwrap_or_else(|| self.rows())
    }

    /// Tables of `text` for each figure, without changes: as many as needed to fit the width of
    /// text, each with the first variant. `of` is the heading of the figures' names.
    pub fn plain_tables(
        &self,
        title: &str,
        of: &str,
        text: fn(&Figure, usize) -> String,
    ) -> Vec<Table> {
        let table = |others: &[usize]| {
            let shown = || std::iter::once(0).chain(others.iter().copied());
            let headings = shown().map(|at| Head::number(self.heading(at)));
            let row = |figure: &Figure| {
                let own = shown().map(|at| text(figure, at));
                [figure.name.clone()].into_iter().chain(own).collect()
            };
            Table {
                title: title.to_string(),
                columns: [Head::text(of)].into_iter().chain(headings).collect(),
                rows: self.figures.iter().map(row).collect(),
            }
        };
        let others: Vec<usize> = (1..self.variants.len()).collect();
        let shares = share_columns(&others, |others| fits(&table(others)));
        shares.iter().map(|others| table(others)).collect()
    }

    /// The most important figures as bars, and the others in a section that opens on request.
    pub(crate) fn pictures(&self) -> Vec<Part> {
        let known = self.figures.iter().filter(|figure| figure.is_any());
        let (mut first, others): (Vec<&Figure>, Vec<&Figure>) =
            known.partition(|figure| figure.rank.is_some());
        first.sort_by_key(|figure| figure.rank);
        let bars = |figures: Vec<&Figure>| -> Vec<Part> {
            figures.into_iter().map(|figure| Part::Bars(self.bars(figure))).collect()
        };
        let mut parts = bars(first);
        if let Some(Part::Bars(first)) = parts.first_mut() {
            first.note = format!(
                "Blue is better than {}, orange is worse, and grey is the same within 1 % or \
                 neither.",
                self.name(0)
            );
        }
        if !others.is_empty() {
            let summary = "Other figures, drawn".to_string();
            parts.push(Part::Details(Details { summary, parts: bars(others) }));
        }
        parts
    }

    fn bars(&self, figure: &Figure) -> BarTable {
        let has_range = figure.has_range();
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
                class: match figure.is_better(at) {
                    None => "u2",
                    Some(true) => "u4",
                    Some(false) => "u1",
                },
                texts: if has_range {
                    vec![figure.median(at), change, range.unwrap_or_default()]
                } else {
                    vec![figure.median(at), change]
                },
            }
        };
        let title = self.title(figure);
        let heads: &[&str] = if has_range {
            &["variant", "median", "change", "range"]
        } else {
            // One run, or equal ones.
            &["variant", "value", "change"]
        };
        BarTable::new(title, heads, (0..self.variants.len()).map(bar).collect())
    }

    /// The title of a figure that is shown alone.
    pub fn title(&self, figure: &Figure) -> String {
        let name = self.full_name(figure);
        let first = name.chars().next().map_or(0, char::len_utf8);
        name[..first].to_uppercase() + &name[first..]
    }

    /// The name of a figure, with the figure that it is a part of.
    pub fn full_name(&self, figure: &Figure) -> String {
        let above = self.figures.iter().rev().skip_while(|other| other.name != figure.name);
        match above.skip(1).find(|other| !other.name.starts_with(' ')) {
            Some(whole) if figure.name.starts_with(' ') => {
                format!("{}: {}", whole.name, figure.name.trim())
            }
            _ => figure.name.clone(),
        }
    }

    fn has_groups(&self) -> bool {
        self.variants.iter().any(|variant| variant.group != self.variants[0].group)
    }

    /// The name of a variant in a line of text.
    pub fn name(&self, at: usize) -> String {
        let Variant { name, group, .. } = &self.variants[at];
        if self.has_groups() { format!("{name} on the {group}") } else { name.clone() }
    }

    /// The heading of a variant's column.
    fn heading(&self, at: usize) -> String {
        let name = folded(&self.variants[at].name);
        if self.has_groups() { format!("{}\n{name}", self.variants[at].group) } else { name }
    }

    /// The first variant and `others` as columns, with changes in columns or in lines of their own.
    fn columns(&self, others: &[usize], has_change_columns: bool) -> Table {
        let headings: Vec<String> = (0..self.variants.len()).map(|at| self.heading(at)).collect();
        let mut table = write_columns("figure", &headings, others, has_change_columns);
        for figure in &self.figures {
            table.add_figure(figure, figure.name.clone());
            table.add_changes(figure);
        }
        table.table
    }

    /// Variants as rows, with as many of the most important figures as fit, and their changes if
    /// these fit too.
    fn rows(&self) -> Table {
        let mut table = Table {
            title: String::new(),
            columns: vec![Head::text("variant")],
            rows: (0..self.variants.len()).map(|at| vec![self.name(at)]).collect(),
        };
        let mut first: Vec<&Figure> =
            self.figures.iter().filter(|figure| figure.rank.is_some()).collect();
        first.sort_by_key(|figure| figure.rank);
        for (position, figure) in first.into_iter().enumerate() {
            let with = |changes: bool| {
                let mut wider = table.clone();
                wider.columns.push(Head::number(figure.name.trim().replace(' ', "\n")));
                wider.columns.extend(changes.then(|| Head::number("change")));
                for (at, row) in wider.rows.iter_mut().enumerate() {
                    row.push(figure.median(at));
                    let change = if at == 0 { String::new() } else { figure.change(at) };
                    row.extend(changes.then_some(change));
                }
                wider
            };
            // The first two figures are shown in any case.
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
    has_change_columns: bool,
}

/// An empty table of the first variant and `others`, with `rows` as the heading of its rows.
fn write_columns<'a>(
    rows: &str,
    headings: &[String],
    others: &'a [usize],
    has_change_columns: bool,
) -> Columns<'a> {
    let mut columns = vec![Head::text(rows), Head::number(&*headings[0])];
    for &other in others {
        columns.push(Head::number(&*headings[other]));
        columns.extend(has_change_columns.then(|| Head::number("change")));
    }
    Columns { table: Table { columns, ..Table::default() }, others, has_change_columns }
}

impl Columns<'_> {
    fn add(&mut self, line: TableLine) {
        let mut row = vec![line.name, (line.value)(0)];
        for &other in self.others {
            row.push((line.value)(other));
            row.extend(self.has_change_columns.then(|| (line.change)(other)));
        }
        self.table.rows.push(row);
    }

    /// Adds the medians of a figure, in the last line of `name`.
    fn add_figure(&mut self, figure: &Figure, name: String) {
        let above = "\n".repeat(name.matches('\n').count());
        self.add(TableLine {
            name,
            value: &|at| above.clone() + &figure.median(at),
            change: &|at| above.clone() + &figure.change(at),
        });
    }

    /// Adds the changes of a figure, if they have a line of their own and there are any.
    fn add_changes(&mut self, figure: &Figure) {
        let changes = |at: &usize| !["=", "-"].contains(&figure.change(*at).as_str());
        if !self.has_change_columns && self.others.iter().any(changes) {
            let value = |at: usize| if at == 0 { String::new() } else { figure.change(at) };
            self.add(TableLine {
                name: CHANGE.to_string(),
                value: &value,
                change: &|_| String::new(),
            });
        }
    }
}

/// Splits `others` into as few shares as fit, each as long as possible.
fn share_columns(others: &[usize], fits: impl Fn(&[usize]) -> bool) -> Vec<Vec<usize>> {
    let mut shares = Vec::new();
    let mut rest = others.to_vec();
    loop {
        let fitting = (1..=rest.len()).rev().find(|&count| fits(&rest[..count]));
        let remaining = rest.split_off(fitting.unwrap_or(1).min(rest.len()));
        shares.push(rest);
        if remaining.is_empty() {
            return shares;
        }
        rest = remaining;
    }
}

/// A long name on several lines, one for each part.
fn folded(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_string();
    }
    name.replace('+', "+\n").replace('=', "=\n")
}
