//! Holes of a file: their pages are zero-filled without the device (`mpage_readahead` and
//! `iomap_readahead`, 6.12: blocks that are not mapped). Test: `tests/holes.rs`.

use std::ops::Range;

use filemap_core::cache::FolioRun;
use filemap_core::units::PageIndex;

/// The part of `run` at its beginning whose folios lie in one hole, or not in one, and whether they
/// do. `holes` are in order and do not overlap. A folio with a block outside of holes is read.
pub fn first_part(run: FolioRun, holes: &[Range<PageIndex>]) -> (FolioRun, bool) {
    let size = run.order.pages();
    let part = |folios: u64, is_hole: bool| (run.first(folios.min(run.folios)), is_hole);
    let mut next = holes.partition_point(|hole| hole.end <= run.start);
    while let Some(hole) = holes.get(next) {
        // The first folio at or after the start of the hole.
        let before = hole.start.0.saturating_sub(run.start.0).div_ceil(size);
        let first = run.start.0 + before * size;
        match hole.end.0.saturating_sub(first) / size {
            0 => next += 1,
            inside if before == 0 => return part(inside, true),
            _ => return part(before, false),
        }
        if before >= run.folios {
            break;
        }
    }
    part(run.folios, false)
}

/// The number of pages of `run` in `holes`.
pub fn pages_in_holes(run: &FolioRun, holes: &[Range<PageIndex>]) -> u64 {
    let end = run.start.0 + run.pages().0;
    let from = holes.partition_point(|hole| hole.end <= run.start);
    let overlaps = holes[from..].iter().take_while(|hole| hole.start.0 < end);
    overlaps.map(|hole| hole.end.0.min(end) - hole.start.0.max(run.start.0)).sum()
}

#[cfg(test)]
mod tests {
    use filemap_core::units::Order;

    use super::*;

    /// All runs of up to 16 pages over all sets of holes in 12 pages, against a look at each folio.
    #[test]
    fn parts_are_those_of_each_folio() {
        for mask in 0u32..1 << 12 {
            let is_hole = |page: u64| page < 12 && mask >> page & 1 == 1;
            let mut holes: Vec<Range<PageIndex>> = Vec::new();
            for page in (0..12).filter(|page| is_hole(*page)) {
                match holes.last_mut() {
                    Some(last) if last.end.0 == page => last.end.0 += 1,
                    _ => holes.push(PageIndex(page)..PageIndex(page + 1)),
                }
            }
            for (order, start) in
                (0..3).flat_map(|order| (0..4).map(move |at| (order, at << order)))
            {
                let folios = 16 >> order;
                let run =
                    FolioRun { start: PageIndex(start), order: Order(order), folios, marked: None };
                let size = 1 << order;
                let folio =
                    |number: u64| (0..size).all(|page| is_hole(start + number * size + page));
                let expected = (0..folios).take_while(|number| folio(*number) == folio(0)).count();
                let (part, in_hole) = first_part(run, &holes);
                assert_eq!((part.folios, in_hole), (expected as u64, folio(0)), "{mask:b} {run:?}");
                let pages = (start..start + folios * size).filter(|page| is_hole(*page)).count();
                assert_eq!(pages_in_holes(&run, &holes), pages as u64, "{mask:b} {run:?}");
            }
        }
    }
}
