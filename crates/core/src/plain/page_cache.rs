//! The cache as engines see it.

use super::file::PlainFile;
use super::{PlainCache, State};
use crate::address::entries::{Layer, MappedFile};
use crate::cache::{FileCache, Folio, FolioRun};
use crate::decision::{EvictionRun, Log};
use crate::lru::invalidate;
use crate::page_cache::PageCache;
use crate::units::{FileId, PageCount, PageIndex};

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
            let State { order, locked, marked, active, .. } = state;
            let folio = Folio { head: head.1, order, locked, marked };
            if !invalidate::drops(folio, from, end, self.is_mapped(head, order)) {
                continue;
            }
            let pages = PageCount(order.pages());
            if active {
                self.active.retain(|&listed| listed != head);
                self.active_pages -= pages.0;
            } else {
                self.inactive.retain(|&listed| listed != head);
                self.inactive_pages -= pages.0;
            }
            self.remove(head, state);
            run.push(file, head.1, pages, log);
            dropped += pages;
        }
        run.flush(log);
        self.shadows.retain(|&(of, page), _| of != file || page < from || page >= end);
        dropped
    }

    fn nodes(&self) -> u64 {
        self.nodes.len() as u64
    }
}
