//! What the columns of a letter's tables are called.

use super::super::cell::{Cell, name};
use super::super::tables::folded;
use crate::setup;

/// Widest line of a heading. A variant whose name has a wider one has a number in its place.
const WIDEST_NAME: usize = 16;

/// The name of each cell where it is a column.
pub(super) struct Columns {
    names: Vec<String>,
    /// Of each cell, whether its name stands for another.
    are_numbers: Vec<bool>,
}

impl Columns {
    /// Those of `cells`. Their engines have tables of their own.
    pub(super) fn of(cells: &[Cell]) -> Self {
        let folded: Vec<String> = cells.iter().map(|cell| folded(&cell.variant)).collect();
        let is_wide = |name: &String| name.lines().any(|line| line.chars().count() > WIDEST_NAME);
        let are_numbers: Vec<bool> = folded.iter().map(is_wide).collect();
        let names = folded.into_iter().zip(&are_numbers).enumerate();
        let names = names.map(|(at, (name, is_number))| match is_number {
            true => format!("({})", at + 1),
            false => name,
        });
        Columns { names: names.collect(), are_numbers }
    }

    /// What stands above the column of the cell at `at`.
    pub(super) fn heading(&self, at: usize) -> &str {
        &self.names[at]
    }

    /// What each of `cells` is.
    pub(super) fn legend(&self, cells: &[Cell]) -> Vec<String> {
        let line = |(at, cell): (usize, &Cell)| {
            let number = match self.are_numbers[at] {
                true => format!("{} = ", self.names[at]),
                false => String::new(),
            };
            // A word is shortened where it is too long, and a list of settings has no blanks.
            let name = name(cell, cells).replace('+', " + ").replace(',', ", ");
            let flags = cell.record.job.flags();
            format!("{number}{name}: {}", setup::kernel(&cell.record, flags.with.as_deref()))
        };
        cells.iter().enumerate().map(line).collect()
    }
}
