//! A coarse map of the file: what came in, what was accessed, what left.

use filemap_core::units::PageIndex;
use filemap_job::Job;
use serde::Serialize;

use super::pages::Pages;

/// The part of the file that the mapping and the pages that came in lie in, in equal cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Map {
    /// Its first page.
    pub start: u64,
    /// Pages in it.
    pub pages: u64,
    /// Its cells: at most as many as pages.
    pub cells: Vec<Cell>,
}

/// Pages of one cell of a [`Map`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// In the cell.
    pub pages: u64,
    /// Of these, in the mapping.
    pub mapped: u64,
    /// Ever in the cache.
    pub came: u64,
    /// Of these, accessed while they were in.
    pub used: u64,
    /// Of those that came, no longer in at the end.
    pub left: u64,
}

impl Map {
    pub(super) fn new(pages: &Pages, job: &Job, cells: u64) -> Self {
        let mapping = (job.mapping.offset.0, (job.mapping.offset + job.mapping.pages).0);
        let first = pages.seen().next().map_or(mapping.0, |(index, ..)| index.0);
        let last = pages.last().map_or(0, |index| index.0);
        let start = mapping.0.min(first);
        let end = mapping.1.max(last + 1);
        let mut map = Map::empty(start, end, cells, mapping);
        for (index, used, present) in pages.seen() {
            let cell = map.at(index);
            cell.came += 1;
            cell.used += u64::from(used);
            cell.left += u64::from(!present);
        }
        map
    }

    fn empty(start: u64, end: u64, cells: u64, mapping: (u64, u64)) -> Self {
        let pages = end - start;
        let count = pages.min(cells);
        let bound = |cell: u64| start + scale(cell, pages, count);
        let cell = |number: u64| {
            let (from, to) = (bound(number), bound(number + 1));
            let mapped = to.min(mapping.1).saturating_sub(from.max(mapping.0));
            Cell { pages: to - from, mapped, ..Cell::default() }
        };
        Map { start, pages, cells: (0..count).map(cell).collect() }
    }

    fn at(&mut self, index: PageIndex) -> &mut Cell {
        let (pages, count) = (self.pages, self.cells.len() as u64);
        // The cell whose bounds, rounded down, the page lies between.
        let offset = u128::from(index.0 - self.start) + 1;
        let number = (offset * u128::from(count)).div_ceil(pages.into()) - 1;
        &mut self.cells[number as usize]
    }

    /// The same in at most `columns` cells.
    pub fn coarse(&self, columns: usize) -> Vec<Cell> {
        let count = self.cells.len();
        let columns = columns.min(count);
        let sum = |cells: &[Cell]| {
            cells.iter().fold(Cell::default(), |sum, cell| Cell {
                pages: sum.pages + cell.pages,
                mapped: sum.mapped + cell.mapped,
                came: sum.came + cell.came,
                used: sum.used + cell.used,
                left: sum.left + cell.left,
            })
        };
        (0..columns)
            .map(
                |column| sum(&self.cells[column * count / columns..(column + 1) * count / columns]),
            )
            .collect()
    }
}

/// `number * pages / count`, rounded down.
fn scale(number: u64, pages: u64, count: u64) -> u64 {
    (u128::from(number) * u128::from(pages) / u128::from(count)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_lies_in_the_cell_that_counts_it() {
        for (pages, cells) in [(10, 3), (7, 7), (512, 512), (1000, 512), (5, 512)] {
            let mut map = Map::empty(100, 100 + pages, cells, (100, 100 + pages));
            for index in 100..100 + pages {
                map.at(PageIndex(index)).came += 1;
            }
            assert!(map.cells.iter().all(|cell| cell.came == cell.pages), "{pages} {cells}");
            let coarse = map.coarse(4);
            assert_eq!(coarse.iter().map(|cell| cell.pages).sum::<u64>(), pages);
        }
    }
}
