//! MADV_COLD and MADV_PAGEOUT on extents.

use filemap_core::address::entries::Layer;
use filemap_core::cache::{Folio, WORD_PAGES, by_word, fits_in_leaf};
use filemap_core::decision::{EvictionRun, Log};
use filemap_core::units::{FileId, PageCount, PageIndex};

use super::Extents;
use super::evict::evict_span;
use super::file::first_page;
use super::invalidate::DroppedFolios;
use super::lists::FolioExtent;
use super::span::by_chunk;

impl<const W: usize> Extents<W> {
    /// The layers that map any of the pages `from..end`, each with the number of mapped pages.
    pub(super) fn mapped_layers(&mut self, from: u64, end: u64) -> Vec<(Layer, PageCount)> {
        let (from, end) = (PageIndex(from), PageIndex(end));
        let mut first = 0;
        let mut others: Vec<(Layer, PageCount)> = Vec::new();
        for (number, mask) in by_word(from, end) {
            if let Some(chunk) = self.chunks.get(number / W as u64) {
                let mapped = chunk.flags(number as usize % W).mapped & mask;
                first += u64::from(mapped.count_ones());
            }
            if self.aliases.is_empty() {
                continue;
            }
            for (layer, entries) in self.aliases.word_mut(number) {
                let pages = PageCount(u64::from((entries.mapped & mask).count_ones()));
                match others.iter_mut().find(|(other, _)| *other == layer) {
                    Some((_, all)) => *all += pages,
                    None => others.push((layer, pages)),
                }
            }
        }
        others.retain(|(_, pages)| *pages > PageCount(0));
        others.sort_unstable_by_key(|(layer, _)| *layer);
        if first > 0 {
            others.insert(0, (Layer::FIRST, PageCount(first)));
        }
        others
    }

    /// Implements [`filemap_core::page_cache::PageCache::split`].
    pub(super) fn split_folio(&mut self, file: FileId, folio: Folio, reversed: bool) {
        let first = first_page(file);
        let (head, end) = (first + folio.head.0, first + folio.end().0);
        // Stale entries elsewhere keep its order.
        if self.is_active(head) {
            self.inactive.remove(&[(head, end)], 0);
            self.active.split(head, end, reversed);
        } else {
            self.inactive.split(head, end, reversed);
        }
        self.stale.forget(head, end);
        self.clear_aliases(head, end);
        self.set_range(head, end, |flags, mask| {
            flags.mapped &= !mask;
            flags.young &= !mask;
        });
        self.set_range(head + 1, end, |flags, mask| flags.marked &= !mask);
        for (number, span) in by_chunk::<W>(head, end) {
            self.chunks.get_mut(number).expect("pages are cached").split(span);
        }
        self.nodes += if fits_in_leaf(folio.order) {
            0
        } else {
            by_word(PageIndex(head), PageIndex(end)).count() as u64
        };
    }

    /// Implements [`filemap_core::page_cache::PageCache::deactivate`].
    pub(super) fn deactivate_folios(&mut self, file: FileId, folios: &[Folio]) {
        let first = first_page(file);
        let (mut dropped, mut moved) = (DroppedFolios::default(), Vec::new());
        for folio in folios {
            let (head, end) = (first + folio.head.0, first + folio.end().0);
            let is_active = self.is_active(head);
            self.set_range(head, end, |flags, mask| {
                flags.referenced &= !mask;
                flags.active &= !mask;
                flags.workingset |= if is_active { mask } else { 0 };
            });
            if is_active {
                dropped.add(head, end, true);
                moved.push(FolioExtent { start: head, pages: end - head, order: folio.order });
            }
        }
        if !moved.is_empty() {
            self.unlist(&dropped);
            moved.into_iter().for_each(|extent| self.inactive.push(extent));
        }
    }

    /// Implements [`filemap_core::page_cache::PageCache::page_out`].
    pub(super) fn page_out_folios(
        &mut self,
        file: FileId,
        folios: &[Folio],
        of_machine: bool,
        log: &mut impl Log,
    ) {
        let first = first_page(file);
        let (mut dropped, mut run) = (DroppedFolios::default(), EvictionRun::default());
        for folio in folios {
            let (head, end) = (first + folio.head.0, first + folio.end().0);
            let is_active = self.is_active(head);
            if is_active {
                self.set_range(head, end, |flags, mask| flags.workingset |= mask);
            }
            dropped.add(head, end, is_active);
            self.page_out_folio(folio, (head, end), of_machine);
            run.push(file, folio.head, PageCount(folio.order.pages()), log);
        }
        run.flush(log);
        self.unlist(&dropped);
        if self.clock >= self.forgets_at {
            self.forget_old();
        }
    }

    /// Removes a folio, the pages `head..end`, from the cache. The lists are updated later.
    fn page_out_folio(&mut self, folio: &Folio, (head, end): (u64, u64), of_machine: bool) {
        self.clear_aliases(head, end);
        let clock = self.clock;
        if of_machine {
            self.clock += end - head;
        } else {
            let flags = self.page_flags(head);
            self.paged_out.add(head, end, flags.workingset >> (head % WORD_PAGES) & 1 == 1);
        }
        for (number, span) in by_chunk::<W>(head, end) {
            let chunk = self.chunks.get_mut(number).expect("pages are cached");
            if of_machine {
                let evicted = (span, folio.order, false);
                self.nodes -= evict_span(&mut self.shadows, chunk, evicted, clock);
            } else {
                self.shadows.forget_pages(&mut chunk.evicted, span, clock);
                let empty = chunk.remove(span);
                self.nodes -= if fits_in_leaf(folio.order) { empty } else { 0 };
            }
            if chunk.pages() == 0 {
                self.retired.push_back((self.clock, number));
            }
        }
    }
}
