//! A comparison in a letter, with the range of each figure's runs: in as many tables as needed to
//! fit the width, or as a list if no table fits.

use std::ops::Range;

use super::{ComparisonTable, Figure, TableLine, Variant, folded, share_columns, write_columns};
use crate::column::Unit;
use crate::letter::MAX_WORD;
use crate::report::Part;
use crate::table::Table;
use crate::text::fits;
use crate::units::{bytes_range, time_range};

/// Maximum width of a heading's line. A variant with a longer name is numbered.
const MAX_HEADING: usize = 16;

/// Maximum width of a figure's name in a narrow table.
const MAX_NARROW_NAME: usize = 18;

/// The line below a figure of several runs.
const RANGE: &str = "    least..most";

/// How a factor begins.
const FACTOR: &str = "x ";

/// Formats the name of a figure for a table.
type NameFormat = fn(&str) -> String;

impl ComparisonTable {
    /// The legend of the variants, and their figures.
    pub(crate) fn letter(&self) -> Vec<Part> {
        let tables = self.groups().into_iter().flat_map(|own| self.group(own, FIGURE));
        self.legends().into_iter().chain(tables).collect()
    }

    /// The legend of the variants.
    pub fn legends(&self) -> Vec<Part> {
        let legends = (0..self.variants.len()).map(|at| self.legend(at)).collect();
        vec![Part::Paragraph("Variants:".to_string()), Part::List(legends)]
    }

    /// Tables for a letter of one figure, `title`, with a row for each job.
    pub fn job_tables(&self, title: &str) -> Vec<Part> {
        self.groups()
            .into_iter()
            .flat_map(|own| self.group(own, Rows { title, of: "job" }))
            .collect()
    }

    /// The heading of a variant's column.
    fn column(&self, at: usize) -> String {
        let name = folded(&self.variants[at].name);
        let is_wide = name.lines().any(|line| line.chars().count() > MAX_HEADING);
        if is_wide { format!("({})", at + 1) } else { name }
    }

    /// The legend of one variant.
    fn legend(&self, at: usize) -> String {
        let column = self.column(at);
        let is_number = column != folded(&self.variants[at].name);
        let number = if is_number { format!("{column} = ") } else { String::new() };
        // Long words are shortened, so that a list of settings needs blanks.
        let mut name = self.name(at);
        // A kernel release may contain these signs too, so only where needed.
        if name.len() > MAX_WORD {
            name = name.replace('+', " + ").replace(',', ", ");
        }
        format!("{number}{name}: {}", self.variants[at].about)
    }

    /// The variants that are compared with each other: of one group, or all if each group has one.
    fn groups(&self) -> Vec<Range<usize>> {
        let groups = self.variants.chunk_by(|one, next| one.group == next.group);
        let mut ends = 0;
        let places = groups.map(|own| {
            ends += own.len();
            ends - own.len()..ends
        });
        let places: Vec<Range<usize>> = places.collect();
        let is_alone = places.len() == self.variants.len();
        if is_alone { std::iter::once(0..self.variants.len()).collect() } else { places }
    }

    /// The tables of the variants at `places`.
    fn group(&self, places: Range<usize>, rows: Rows) -> Vec<Part> {
        let names: Vec<String> = (0..self.variants.len()).map(|at| self.column(at)).collect();
        let variants = &self.variants[places.clone()];
        let own = ComparisonTable { variants: variants.to_vec(), figures: Vec::new() };
        let headings = variants.iter().zip(&names[places.clone()]).enumerate();
        let heading = |(at, (variant, name)): (usize, (&Variant, &String))| match at {
            _ if own.has_groups() => format!("{}\n{name}", variant.group),
            0 if variants.len() == 2 => format!("before\n{name}"),
            1 if variants.len() == 2 => format!("after\n{name}"),
            _ => name.clone(),
        };
        let select = |figure: &Figure| Figure {
            samples: figure.samples[places.clone()].to_vec(),
            ..figure.clone()
        };
        let is_shown = |figure: &Figure| figure.is_any() || !rows.title.is_empty();
        let figures = self.figures.iter().map(select).filter(is_shown).collect();
        let names_group = self.has_groups() && !own.has_groups();
        let engine = names_group.then(|| format!("n the {}:", variants[0].group));
        let title = match (rows.title, engine) {
            ("", Some(engine)) => format!("O{engine}"),
            ("", None) => String::new(),
            (title, Some(engine)) => format!("{title}, o{engine}"),
            (title, None) => format!("{title}:"),
        };
        let headings = headings.map(heading).collect();
        let group = Group { title, of: rows.of, headings, figures };
        group.parts()
    }
}

/// The rows of a table.
#[derive(Clone, Copy)]
struct Rows<'a> {
    /// Title above all of them; may be empty.
    title: &'a str,
    /// What each row describes.
    of: &'static str,
}

/// A row for each figure.
const FIGURE: Rows = Rows { title: "", of: "figure" };

/// Variants that are compared with the first of them.
struct Group {
    title: String,
    /// What the rows describe.
    of: &'static str,
    headings: Vec<String>,
    figures: Vec<Figure>,
}

impl Group {
    /// As few tables as have room, each with the first variant.
    fn parts(&self) -> Vec<Part> {
        let others: Vec<usize> = (1..self.headings.len()).collect();
        let shares = share_columns(&others, |others| self.table(others).is_some());
        let part = |others: &Vec<usize>| match self.table(others) {
            Some(table) => Part::Table(table),
            None => Part::List(self.list(others)),
        };
        let mut parts: Vec<Part> = shares.iter().map(part).collect();
        // A list cannot show it.
        if !self.title.is_empty() && matches!(parts.first(), Some(Part::List(_))) {
            parts.insert(0, Part::Paragraph(self.title.clone()));
        }
        parts
    }

    /// A table that fits: with changes in columns, or else in lines of their own.
    fn table(&self, others: &[usize]) -> Option<Table> {
        let names: [NameFormat; 2] = [|name| name.to_string(), narrow];
        let layouts = [true, false]
            .into_iter()
            .flat_map(|has_change_columns| names.map(|name| (has_change_columns, name)));
        layouts
            .map(|(has_change_columns, name)| self.columns(others, has_change_columns, name))
            .find(fits)
    }

    fn columns(
        &self,
        others: &[usize],
        has_change_columns: bool,
        format_name: NameFormat,
    ) -> Table {
        let mut table = write_columns(self.of, &self.headings, others, has_change_columns);
        table.table.title.clone_from(&self.title);
        for figure in &self.figures {
            table.add_figure(figure, format_name(&figure.name));
            let range = |at: usize| figure.range(at).unwrap_or_default();
            if [0].iter().chain(others).any(|&at| figure.range(at).is_some()) {
                table.add(TableLine {
                    name: RANGE.to_string(),
                    value: &range,
                    change: &|_| String::new(),
                });
            }
            table.add_changes(figure);
        }
        table.table
    }

    fn list(&self, others: &[usize]) -> Vec<String> {
        let text = |at: usize, figure: &Figure| {
            let range = figure.range(at).map(|range| format!(" ({range})")).unwrap_or_default();
            format!("{}: {}{range}", self.headings[at].replace('\n', " "), figure.median(at))
        };
        let item = |figure: &Figure| {
            let mut texts = vec![text(0, figure)];
            for &other in others {
                texts.extend([text(other, figure), format!("change {}", figure.change(other))]);
            }
            format!("{} - {}", figure.name.trim_start(), texts.join("; "))
        };
        self.figures.iter().map(item).collect()
    }
}

impl Figure {
    /// Minimum and maximum as text; `None` if both print the same. The unit is omitted if it is the
    /// median's.
    fn range(&self, at: usize) -> Option<String> {
        let (sample, unit) = (self.samples[at]?, self.unit);
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
}

/// Wraps the name of a figure to a narrow column, keeping its indentation.
fn narrow(name: &str) -> String {
    let indent = &name[..name.len() - name.trim_start().len()];
    let mut lines = vec![indent.to_string()];
    for word in name.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.len() + 1 + word.len() > MAX_NARROW_NAME && line.trim() != "" {
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
