//! Holes of a file: their pages are zero-filled without the device (`mpage_readahead` and
//! `iomap_readahead`, 6.12: blocks that are not mapped). Test: `tests/holes.rs`.

use std::ops::Range;

use filemap_core::cache::FolioRun;
use filemap_core::units::{PageCount, PageIndex};

/// Folios that are read in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolePart {
    /// No page lies in a hole.
    Data,
    /// All pages lie in holes.
    Hole,
    /// A single folio with this number of pages in holes. It is read as a whole.
    Mixed(PageCount),
}

/// The part of `run` at its beginning whose folios are read in the same way. `holes` are in order
/// and do not overlap.
pub fn first_part(run: FolioRun, holes: &[Range<PageIndex>]) -> (FolioRun, HolePart) {
    let size = run.order.pages();
    let next = holes.partition_point(|hole| hole.end <= run.start);
    let Some(hole) = holes.get(next) else { return (run, HolePart::Data) };
    // Whole folios before the hole.
    let before = hole.start.0.saturating_sub(run.start.0) / size;
    if before > 0 {
        return (run.first(before.min(run.folios)), HolePart::Data);
    }
    let inside = if hole.start <= run.start { (hole.end.0 - run.start.0) / size } else { 0 };
    if inside > 0 {
        return (run.first(inside.min(run.folios)), HolePart::Hole);
    }
    let folio = run.first(1);
    match pages_in_holes(&folio, &holes[next..]) {
        pages if pages == size => (folio, HolePart::Hole),
        pages => (folio, HolePart::Mixed(PageCount(pages))),
    }
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

    /// All runs of 16 pages over all sets of holes in 12 pages, against a look at each folio.
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
                let of_folio = |number: u64| {
                    let from = start + number * size;
                    match (from..from + size).filter(|page| is_hole(*page)).count() as u64 {
                        0 => HolePart::Data,
                        all if all == size => HolePart::Hole,
                        some => HolePart::Mixed(PageCount(some)),
                    }
                };
                let (mut rest, mut number) = (run, 0);
                while rest.folios > 0 {
                    let (part, how) = first_part(rest, &holes);
                    assert!(part.folios == 1 || !matches!(how, HolePart::Mixed(_)));
                    for _ in 0..part.folios {
                        assert_eq!(of_folio(number), how, "{mask:b} {run:?} {number}");
                        number += 1;
                    }
                    rest = rest.after_first(part.folios);
                }
                assert_eq!(number, folios);
                let pages = (start..start + folios * size).filter(|page| is_hole(*page)).count();
                assert_eq!(pages_in_holes(&run, &holes), pages as u64, "{mask:b} {run:?}");
            }
        }
    }
}
