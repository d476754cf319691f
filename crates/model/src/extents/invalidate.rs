//! Dropping cached pages (POSIX_FADV_DONTNEED).

use filemap_core::cache::{Folio, WORD_PAGES, fits_in_leaf, word_mask, words};
use filemap_core::decision::{EvictionRun, Log};
use filemap_core::lru::invalidate::is_dropped;
use filemap_core::units::{FileId, PageCount, PageIndex};

use super::Extents;
use super::chunk::Flags;
use super::file::first_page;
use super::span::chunk_pages;
use super::span::{Span, by_chunk};

impl<const W: usize> Extents<W> {
    /// Implements [`filemap_core::page_cache::PageCache::invalidate`].
    pub(super) fn invalidate_pages(
        &mut self,
        file: FileId,
        from: PageIndex,
        end: PageIndex,
        log: &mut impl Log,
    ) -> PageCount {
        let first = first_page(file);
        let mut run = EvictionRun::default();
        let mut dropped = DroppedFolios::default();
        let mut next = from;
        loop {
            let at = self.find(first + next.0, first + end.0, true);
            if at >= first + end.0 {
                break;
            }
            let index = PageIndex(at - first);
            let folio = self.folio(at, index).expect("the page is cached");
            next = folio.end();
            let is_mapped = self.is_mapped(first + folio.head.0, first + folio.end().0);
            if is_dropped(folio, from, end, is_mapped) {
                self.drop_folio(folio, first, &mut dropped);
                run.push(file, folio.head, PageCount(folio.order.pages()), log);
            }
        }
        run.flush(log);
        self.unlist(&dropped);
        self.paged_out.take(first + from.0, first + end.0);
        self.forget_shadows(first + from.0, first + end.0);
        PageCount(dropped.inactive + dropped.active)
    }

    /// Removes folios from their lists.
    pub(super) fn unlist(&mut self, dropped: &DroppedFolios) {
        self.inactive.remove(&dropped.runs, dropped.inactive);
        self.active.remove(&dropped.runs, dropped.active);
        for &(from, end) in &dropped.runs {
            self.stale.forget(from, end);
        }
    }

    /// Whether the folio at global page `head` is active.
    pub(super) fn is_active(&self, head: u64) -> bool {
        self.page_flags(head).active >> (head % WORD_PAGES) & 1 == 1
    }

    /// The flags of the word of a cached page.
    pub(super) fn page_flags(&self, page: u64) -> Flags {
        let chunk = self.chunks.get(page / chunk_pages(W)).expect("the page is cached");
        chunk.flags((page % chunk_pages(W) / WORD_PAGES) as usize)
    }

    /// Removes one folio from the cache. The lists are updated later.
    fn drop_folio(&mut self, folio: Folio, first: u64, dropped: &mut DroppedFolios) {
        let (head, end) = (first + folio.head.0, first + folio.end().0);
        dropped.add(head, end, self.is_active(head));
        self.clear_aliases(head, end);
        for (number, span) in by_chunk::<W>(head, end) {
            let chunk = self.chunks.get_mut(number).expect("the page is cached");
            let empty = chunk.remove(span);
            self.nodes -= if fits_in_leaf(folio.order) { empty } else { 0 };
        }
    }

    /// Whether any of the pages `from..end` is mapped in any layer.
    fn is_mapped(&mut self, from: u64, end: u64) -> bool {
        let (from, end) = (PageIndex(from), PageIndex(end));
        words(from, end).any(|number| {
            let chunk = self.chunks.get(number / W as u64).expect("the page is cached");
            let first = chunk.flags(number as usize % W).mapped;
            let entries = self.aliases.word_mut(number);
            let mapped = entries.fold(first, |of_all, (_, entries)| of_all | entries.mapped);
            mapped & word_mask(number, from, end) != 0
        })
    }

    /// Invalidates the shadows of the pages `from..end`.
    fn forget_shadows(&mut self, from: u64, end: u64) {
        let within =
            |number: &u64| from < (number + 1) * chunk_pages(W) && number * chunk_pages(W) < end;
        let numbers = self.chunks.iter().map(|(number, _)| number).filter(within);
        for number in numbers.collect::<Vec<u64>>() {
            let chunk_first = number * chunk_pages(W);
            let (from, end) = (from.max(chunk_first), end.min(chunk_first + chunk_pages(W)));
            let chunk = self.chunks.get_mut(number).expect("it was just there");
            let (from, end) = ((from - chunk_first) as usize, (end - chunk_first) as usize);
            self.shadows.forget_pages(&mut chunk.evicted, Span { from, end }, self.clock);
            if chunk.is_empty() {
                self.retired.push_back((self.clock, number));
            }
        }
    }
}

/// The folios dropped so far.
#[derive(Default)]
pub(super) struct DroppedFolios {
    /// Ranges of pages, ascending.
    runs: Vec<(u64, u64)>,
    inactive: u64,
    active: u64,
}

impl DroppedFolios {
    pub(super) fn add(&mut self, head: u64, end: u64, is_active: bool) {
        match self.runs.last_mut() {
            Some(last) if last.1 == head => last.1 = end,
            _ => self.runs.push((head, end)),
        }
        let pages = if is_active { &mut self.active } else { &mut self.inactive };
        *pages += end - head;
    }
}
