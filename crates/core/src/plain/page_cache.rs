//! The [`PageCache`] implementation.

use super::file::PlainFile;
use super::{FolioState, PageShadow, PlainCache, folio_pages};
use crate::address::entries::{Layer, MappedFile};
use crate::cache::{FileCache, Folio, FolioRun, WORD_PAGES};
use crate::decision::{EvictionRun, Log};
use crate::lru::invalidate;
use crate::page_cache::PageCache;
use crate::units::{FileId, Order, PageCount, PageIndex};

impl PageCache for PlainCache {
    fn file(&mut self, file: FileId) -> impl FileCache {
        PlainFile { cache: self, file, layer: Layer::FIRST }
    }

    fn mapped(&mut self, file: FileId, layer: Layer) -> impl MappedFile {
        PlainFile { cache: self, file, layer }
    }

    fn add(&mut self, file: FileId, run: FolioRun) {
        for folio in 0..run.folios {
            let head = run.start + PageCount(folio << run.order.0);
            self.add_folio((file, head), run.order, run.marked == Some(head));
        }
    }

    fn lock(&mut self, file: FileId, start: PageIndex, pages: PageCount) {
        for (_, state) in self.folios.range_mut((file, start)..(file, start + pages)) {
            state.locked = true;
        }
    }

    fn unlock(&mut self, file: FileId, start: PageIndex, pages: PageCount) {
        for (_, state) in self.folios.range_mut((file, start)..(file, start + pages)) {
            state.locked = false;
        }
    }

    fn invalidate(
        &mut self,
        file: FileId,
        from: PageIndex,
        end: PageIndex,
        log: &mut impl Log,
    ) -> PageCount {
        let mut dropped = PageCount(0);
        let mut run = EvictionRun::default();
        let within: Vec<_> =
            self.folios.range((file, from)..(file, end)).map(|(&at, &state)| (at, state)).collect();
        for (head, state) in within {
            let FolioState { order, locked, marked, .. } = state;
            let folio = Folio { head: head.1, order, locked, marked };
            if !invalidate::is_dropped(folio, from, end, self.is_mapped(head, order)) {
                continue;
            }
            let pages = PageCount(order.pages());
            self.unlist(head, state);
            self.remove(head, state);
            run.push(file, head.1, pages, log);
            dropped += pages;
        }
        run.flush(log);
        self.shadows
            .retain(|&(shadow_file, page), _| shadow_file != file || page < from || page >= end);
        dropped
    }

    fn mapped_in(
        &mut self,
        file: FileId,
        from: PageIndex,
        end: PageIndex,
    ) -> Vec<(Layer, PageCount)> {
        let pages = |layer: Layer| {
            let mut pages = (from.0..end.0).map(|page| ((file, PageIndex(page)), layer));
            PageCount(pages.by_ref().filter(|entry| self.mapped.contains(entry)).count() as u64)
        };
        let counted = self.layers().map(|layer| (layer, pages(layer)));
        counted.filter(|(_, pages)| *pages > PageCount(0)).collect()
    }

    fn split(&mut self, file: FileId, folio: Folio, reversed: bool) {
        let state = self.folios[&(file, folio.head)];
        self.remove((file, folio.head), state);
        let mut pages: Vec<PageIndex> = folio_pages(folio.head, folio.order).collect();
        for &page in &pages {
            *self.nodes.entry((file, page.0 / WORD_PAGES)).or_default() += 1;
            let marked = state.marked && page == folio.head;
            self.folios.insert((file, page), FolioState { order: Order(0), marked, ..state });
        }
        if reversed {
            pages[1..].reverse();
        }
        let list = if state.active { &mut self.active } else { &mut self.inactive };
        let at = list.iter().position(|&head| head == (file, folio.head)).expect("it is listed");
        list.remove(at);
        for (after, page) in pages.into_iter().enumerate() {
            list.insert(at + after, (file, page));
        }
    }

    fn deactivate(&mut self, file: FileId, folios: &[Folio]) {
        for folio in folios {
            let head = (file, folio.head);
            self.state(head).referenced = false;
            let state = self.folios[&head];
            if state.active {
                self.unlist(head, state);
                self.push(head, FolioState { active: false, workingset: true, ..state });
            }
        }
    }

    fn page_out(&mut self, file: FileId, folios: &[Folio], of_machine: bool, log: &mut impl Log) {
        let mut run = EvictionRun::default();
        for folio in folios {
            let (head, pages) = ((file, folio.head), PageCount(folio.order.pages()));
            let state = self.folios[&head];
            self.unlist(head, state);
            let workingset = state.workingset || state.active;
            if of_machine {
                self.evict(head, FolioState { workingset, ..state });
            } else {
                self.remove(head, state);
                let shadow = PageShadow { clock: self.clock, workingset, returns: true };
                for page in folio_pages(folio.head, folio.order) {
                    self.shadows.insert((file, page), shadow);
                }
            }
            run.push(file, folio.head, pages, log);
        }
        run.flush(log);
    }

    fn nodes(&self) -> u64 {
        self.nodes.len() as u64
    }
}
