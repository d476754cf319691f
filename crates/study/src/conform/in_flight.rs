//! Tracks pages whose mapping by a fault depends on timing.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use filemap_core::decision::Decision;
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_job::{ShownKind, ShownKinds};

/// Knowledge about pages while a log is followed.
///
/// A fault that reads a window waits for its own page only. Its fault-around then maps the pages
/// that have arrived by then. From then on, both a fault and no fault on any other page of the
/// window are correct.
///
/// On a kernel that does not show fault-around windows, this holds for all pages that an access
/// adds.
#[derive(Debug)]
pub(super) struct InFlightPages {
    /// Whether fault-around windows are shown.
    shows_around: bool,
    /// Folios in the cache: first page and order.
    folios: BTreeMap<u64, Order>,
    /// First pages of the folios that the current access added.
    added: BTreeSet<u64>,
    /// First pages of folios that may be mapped or not.
    unsure: BTreeSet<u64>,
}

/// Pages that fault-around of the default size can reach on either side of a fault.
const FAULT_AROUND_REACH: PageCount = PageCount(15);

impl InFlightPages {
    /// Initial state for logs restricted to `seen`.
    pub(super) fn new(seen: ShownKinds) -> Self {
        InFlightPages {
            shows_around: seen.has(ShownKind::MapPages),
            folios: BTreeMap::new(),
            added: BTreeSet::new(),
            unsure: BTreeSet::new(),
        }
    }

    /// Whether fault-around windows are shown.
    pub(super) fn shows_around(&self) -> bool {
        self.shows_around
    }

    /// Range that the fault-around of a fault on `index` may map.
    pub(super) fn around(&self, index: PageIndex) -> (PageIndex, PageIndex) {
        (PageIndex(index.0.saturating_sub(FAULT_AROUND_REACH.0)), index + FAULT_AROUND_REACH)
    }

    /// Follows a common line of both logs.
    pub(super) fn follow(&mut self, line: &Decision) {
        match *line {
            Decision::Faulted { .. } => {
                let added = mem::take(&mut self.added);
                if !self.shows_around {
                    self.unsure.extend(added);
                }
            }
            Decision::Added { start, order, folios, .. } => {
                for number in 0..folios {
                    let head = (start + PageCount(number << order.0)).0;
                    self.folios.insert(head, order);
                    self.added.insert(head);
                }
            }
            Decision::MapPages { from, last, .. } => {
                let arriving: Vec<u64> =
                    self.heads(from, last).filter(|head| self.added.contains(head)).collect();
                self.unsure.extend(arriving);
            }
            _ => {}
        }
    }

    /// Whether both a fault and no fault on `index` are correct.
    pub(super) fn is_unsure(&self, index: PageIndex) -> bool {
        self.heads(index, index).any(|head| {
            self.unsure.contains(&head) || !self.shows_around && self.added.contains(&head)
        })
    }

    /// Follows an excluded fault that mapped `from..=last` in one of the logs.
    pub(super) fn skip(&mut self, from: PageIndex, last: PageIndex) {
        let heads: Vec<u64> = self.heads(from, last).collect();
        self.unsure.extend(heads);
    }

    /// First pages of the folios with pages in `from..=last`.
    fn heads(&self, from: PageIndex, last: PageIndex) -> impl Iterator<Item = u64> {
        let before = self.folios.range(..from.0).next_back();
        let before = before.filter(|(head, order)| **head + order.pages() > from.0);
        let within = (from <= last).then(|| self.folios.range(from.0..=last.0));
        before.into_iter().chain(within.into_iter().flatten()).map(|(head, _)| *head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(start: u64, order: u8, folios: u64) -> Decision {
        Decision::Added { start: PageIndex(start), order: Order(order), folios, marked: None }
    }

    fn map(from: u64, last: u64) -> Decision {
        Decision::MapPages {
            from: PageIndex(from),
            last: PageIndex(last),
            mapped: PageCount(0),
            credit: 0,
        }
    }

    fn faulted(index: u64) -> Decision {
        Decision::Faulted { index: PageIndex(index) }
    }

    fn unsure(lines: &[Decision]) -> Vec<u64> {
        let mut state = InFlightPages::new(ShownKinds::ALL);
        lines.iter().for_each(|line| state.follow(line));
        (0..64).filter(|&page| state.is_unsure(PageIndex(page))).collect()
    }

    #[test]
    fn pages_added_by_access_are_unsure() {
        let lines = [faulted(5), added(0, 0, 8), map(4, 19)];
        assert_eq!(unsure(&lines), (4..8).collect::<Vec<_>>());
        let lines = [faulted(5), added(0, 2, 4), map(6, 9)];
        assert_eq!(unsure(&lines), (4..12).collect::<Vec<_>>(), "of whole folios");
    }

    #[test]
    fn pages_added_earlier_are_sure() {
        let lines = [faulted(5), added(0, 0, 8), faulted(6), map(4, 19)];
        assert!(unsure(&lines).is_empty());
    }

    #[test]
    fn all_that_an_access_adds_is_unsure_where_no_window_is_shown() {
        let seen = ShownKinds::from_fn(|kind| kind != ShownKind::MapPages);
        let mut state = InFlightPages::new(seen);
        [faulted(5), added(0, 0, 8), faulted(40)].iter().for_each(|line| state.follow(line));
        let pages = (0..64).filter(|&page| state.is_unsure(PageIndex(page)));
        assert_eq!(pages.collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_fault_on_one_side_leaves_its_window_unsure() {
        let mut state = InFlightPages::new(ShownKinds::ALL);
        state.follow(&added(0, 2, 4));
        state.skip(PageIndex(7), PageIndex(8));
        let pages = (0..20).filter(|&page| state.is_unsure(PageIndex(page)));
        assert_eq!(pages.collect::<Vec<_>>(), (4..12).collect::<Vec<_>>());
    }
}
