//! A cell of a comparison: what was compared, and what it is called.

use filemap_job::{Job, Record};

/// A variant with its record.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The variant as it was asked for, such as `p1+p2`.
    pub variant: String,
    /// The job that was run, with the first of its seeds, where it is at hand.
    pub job: Option<Job>,
    /// What came out.
    pub record: Record,
}

/// What a cell is called in a sentence.
pub(crate) fn name(cell: &Cell, cells: &[Cell]) -> String {
    match has_several_engines(cells) {
        true => format!("{} on the {}", cell.variant, cell.record.engine),
        false => cell.variant.clone(),
    }
}

pub(super) fn has_several_engines(cells: &[Cell]) -> bool {
    cells.iter().any(|cell| cell.record.engine != cells[0].record.engine)
}
