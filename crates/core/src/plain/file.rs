//! One file of the plain page cache.

use std::collections::BTreeSet;

use super::{FilePage, FolioState, PlainCache, folio_pages};
use crate::address::entries::{Layer, MappedFile, UnmappedPages, WordPages};
use crate::cache::{FileCache, Folio, WORD_PAGES};
use crate::lru::reclaim::{self, AccessEffect};
use crate::units::{FileId, Order, PageCount, PageIndex};

/// One file of a [`PlainCache`], with its entries in one layer.
#[derive(Debug)]
pub(super) struct PlainFile<'a> {
    pub cache: &'a mut PlainCache,
    pub file: FileId,
    pub layer: Layer,
}

impl PlainFile<'_> {
    fn find(&self, index: PageIndex) -> Option<(PageIndex, FolioState)> {
        self.cache.find((self.file, index))
    }

    fn entry(&self, index: PageIndex) -> (FilePage, Layer) {
        ((self.file, index), self.layer)
    }
}

impl FileCache for PlainFile<'_> {
    fn folio(&self, index: PageIndex) -> Option<Folio> {
        let (head, state) = self.find(index)?;
        Some(Folio { head, order: state.order, locked: state.locked, marked: state.marked })
    }

    fn next_absent(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        (from.0..end.0).map(PageIndex).find(|&page| self.find(page).is_none()).unwrap_or(end)
    }

    fn next_present(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        (from.0..end.0).map(PageIndex).find(|&page| self.find(page).is_some()).unwrap_or(end)
    }

    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex> {
        (floor.0..=last.0).rev().map(PageIndex).find(|&page| self.find(page).is_none())
    }

    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount {
        let folios = self.cache.folios.iter().filter(|((file, _), _)| *file == self.file);
        let pages = folios.flat_map(|(&(_, head), state)| folio_pages(head, state.order));
        PageCount(pages.filter(|&page| from <= page && page < end).count() as u64)
    }

    fn clear_mark(&mut self, index: PageIndex) {
        if let Some((head, _)) = self.find(index) {
            self.cache.state((self.file, head)).marked = false;
        }
    }

    fn set_referenced(&mut self, index: PageIndex) {
        if let Some((head, _)) = self.find(index) {
            self.cache.state((self.file, head)).referenced = true;
        }
    }

    fn mark_accessed(&mut self, index: PageIndex) {
        let Some((head, state)) = self.find(index) else {
            return;
        };
        let (head, cache) = ((self.file, head), &mut *self.cache);
        match reclaim::access_effect(state.referenced, state.active) {
            AccessEffect::Reference => cache.state(head).referenced = true,
            AccessEffect::Activate => {
                cache.unlist(head, state);
                cache.clock += state.order.pages();
                cache.push(head, FolioState { active: true, referenced: false, ..state });
            }
        }
    }
}

impl MappedFile for PlainFile<'_> {
    fn pages(&self, word: u64, mask: u64) -> WordPages {
        let mut pages = WordPages::default();
        for offset in (0..WORD_PAGES).filter(|offset| mask >> offset & 1 == 1) {
            let index = PageIndex(word * WORD_PAGES + offset);
            let entry = self.entry(index);
            pages.mapped |= u64::from(self.cache.mapped.contains(&entry)) << offset;
            pages.copied |= u64::from(self.cache.copied.contains(&entry)) << offset;
            let Some((_, state)) = self.find(index) else { continue };
            pages.present |= 1 << offset;
            pages.large |= u64::from(state.order > Order(0)) << offset;
            pages.locked |= u64::from(state.locked) << offset;
            pages.marked |= u64::from(state.marked) << offset;
            pages.workingset |= u64::from(state.workingset) << offset;
        }
        pages
    }

    fn map(&mut self, word: u64, mask: u64, young: u64) {
        self.cache.last_layer = self.cache.last_layer.max(self.layer);
        for offset in (0..WORD_PAGES).filter(|offset| mask >> offset & 1 == 1) {
            let entry = self.entry(PageIndex(word * WORD_PAGES + offset));
            self.cache.mapped.insert(entry);
            if young >> offset & 1 == 1 {
                self.cache.young.insert(entry);
            }
        }
    }

    fn touch(&mut self, index: PageIndex) -> bool {
        let entry = self.entry(index);
        if self.cache.mapped.contains(&entry) {
            self.cache.young.insert(entry);
            return true;
        }
        self.cache.copied.contains(&entry)
    }

    fn words_with_entries(&self, from: PageIndex, end: PageIndex) -> Vec<u64> {
        let entries = self.cache.mapped.iter().chain(&self.cache.copied);
        let pages = entries
            .filter(|((file, _), layer)| (*file, *layer) == (self.file, self.layer))
            .map(|((_, page), _)| *page)
            .filter(|&page| from <= page && page < end);
        let words: BTreeSet<u64> = pages.map(|page| page.0 / WORD_PAGES).collect();
        words.into_iter().collect()
    }

    fn unmap(&mut self, word: u64, mask: u64) -> UnmappedPages {
        let mut unmapped = UnmappedPages::default();
        for offset in (0..WORD_PAGES).filter(|offset| mask >> offset & 1 == 1) {
            let entry = self.entry(PageIndex(word * WORD_PAGES + offset));
            unmapped.mapped |= u64::from(self.cache.mapped.remove(&entry)) << offset;
            unmapped.accessed |= u64::from(self.cache.young.remove(&entry)) << offset;
            unmapped.copied |= u64::from(self.cache.copied.remove(&entry)) << offset;
        }
        unmapped
    }

    fn make_old(&mut self, word: u64, mask: u64) -> u64 {
        let mut young = 0;
        for offset in (0..WORD_PAGES).filter(|offset| mask >> offset & 1 == 1) {
            let entry = self.entry(PageIndex(word * WORD_PAGES + offset));
            young |= u64::from(self.cache.young.remove(&entry)) << offset;
        }
        young
    }

    fn copy(&mut self, index: PageIndex) -> bool {
        let entry = self.entry(index);
        self.cache.mapped.remove(&entry);
        self.cache.young.remove(&entry);
        self.cache.copied.insert(entry)
    }
}
