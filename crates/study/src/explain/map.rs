//! A coarse map of a file: which pages were read, accessed and evicted.

use filemap_core::units::PageIndex;
use serde::{Deserialize, Serialize};

use super::history::{MAX_COUNT, MAX_INTERVALS};
use super::page_history::PageHistory;
use super::ranges::FileRanges;

/// The part of a file that is mapped or was read, in equal cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileMap {
    /// Its first page.
    pub start: u64,
    /// Pages in it.
    pub pages: u64,
    /// Its cells: at most as many as pages.
    pub cells: Vec<MapCell>,
}

/// Pages of one cell of a [`FileMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MapCell {
    /// Pages in the cell.
    pub pages: u64,
    /// Of these, mapped or read by the job.
    pub mapped: u64,
    /// Ever in the cache.
    pub came: u64,
    /// Of these, accessed while they were cached.
    pub used: u64,
    /// Pages that were cached and are no longer at the end.
    pub left: u64,
}

impl FileMap {
    pub(super) fn new(pages: &PageHistory, mapped: &FileRanges, cells: u64) -> Self {
        let (from, to) = mapped.bounds();
        let first = pages.ever_cached().next().map_or(from, |(index, ..)| index);
        let last = pages.ever_cached().next_back().map_or(PageIndex(0), |(index, ..)| index);
        let start = from.min(first).0;
        let end = to.0.max(last.0 + 1);
        let mut map = FileMap::empty(start, end, cells);
        for (from, to) in mapped.iter() {
            map.mark_mapped(from.0, to.0);
        }
        for (index, used, present) in pages.ever_cached() {
            let cell = map.at(index);
            cell.came += 1;
            cell.used += u64::from(used);
            cell.left += u64::from(!present);
        }
        map
    }

    /// Whether its numbers are consistent and can be drawn: a record may have been edited.
    pub(super) fn is_sound(&self) -> bool {
        let counts = |cell: &MapCell| [cell.pages, cell.mapped, cell.came, cell.used, cell.left];
        let mut all = self.cells.iter().flat_map(counts).chain([self.start, self.pages]);
        (1..=MAX_INTERVALS).contains(&self.cells.len())
            && self.cells.iter().all(|cell| cell.pages > 0)
            && all.all(|count| count <= MAX_COUNT)
    }

    fn empty(start: u64, end: u64, cells: u64) -> Self {
        let pages = end - start;
        let count = pages.min(cells);
        let bound = |cell: u64| scale(cell, pages, count);
        let cell = |number: u64| MapCell {
            pages: bound(number + 1) - bound(number),
            ..MapCell::default()
        };
        FileMap { start, pages, cells: (0..count).map(cell).collect() }
    }

    /// Pages `from..to` are mapped.
    fn mark_mapped(&mut self, from: u64, to: u64) {
        let mut start = self.start;
        for cell in &mut self.cells {
            let end = start + cell.pages;
            cell.mapped += end.min(to).saturating_sub(start.max(from));
            start = end;
        }
    }

    fn at(&mut self, index: PageIndex) -> &mut MapCell {
        let (pages, count) = (self.pages, self.cells.len() as u64);
        // The inverse of the cell bounds, which are rounded down.
        let offset = u128::from(index.0 - self.start) + 1;
        let number = (offset * u128::from(count)).div_ceil(pages.into()) - 1;
        &mut self.cells[number as usize]
    }

    /// Merges cells to at most `columns`.
    pub fn coarse(&self, columns: usize) -> Vec<MapCell> {
        let count = self.cells.len();
        let columns = columns.min(count);
        let sum = |cells: &[MapCell]| {
            cells.iter().fold(MapCell::default(), |sum, cell| MapCell {
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
            let mut map = FileMap::empty(100, 100 + pages, cells);
            for index in 100..100 + pages {
                map.at(PageIndex(index)).came += 1;
            }
            map.mark_mapped(90, 103);
            assert_eq!(map.cells.iter().map(|cell| cell.mapped).sum::<u64>(), 3);
            assert!(map.cells.iter().all(|cell| cell.came == cell.pages), "{pages} {cells}");
            let coarse = map.coarse(4);
            assert_eq!(coarse.iter().map(|cell| cell.pages).sum::<u64>(), pages);
        }
    }
}
