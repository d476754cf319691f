//! Dropping cached pages on demand.

use filemap_core::cache::{Folio, WORD_PAGES, in_leaf, word_mask, words};
use filemap_core::decision::{EvictionRun, Log};
use filemap_core::lru::invalidate::drops;
use filemap_core::units::{FileId, PageCount, PageIndex};

use super::Extents;
use super::chunk::Flags;
use super::file::first_page;
use super::span::pages_of;
use super::span::{Span, by_chunk};

impl<const W: usize> Extents<W> {
    /// Carries out [`filemap_core::page_cache::PageCache::invalidate`].
    pub(super) fn drop_pages(
        &mut self,
        file: FileId,
        from: PageIndex,
        end: PageIndex,
        log: &mut impl Log,
    ) -> PageCount {
        let first = first_page(file);
        let mut run = EvictionRun::default();
        let mut dropped = Dropped::default();
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
            if drops(folio, from, end, is_mapped) {
                self.drop_folio(folio, first, &mut dropped);
                run.push(file, folio.head, PageCount(folio.order.pages()), log);
            }
        }
        run.flush(log);
        self.unlist(&dropped);
        self.paged_out.take(first + from.0, first + end.0);
        self.forget_evictions(first + from.0, first + end.0);
        PageCount(dropped.inactive + dropped.active)
    }

    /// Takes folios from their lists.
    pub(super) fn unlist(&mut self, dropped: &Dropped) {
        self.inactive.remove(&dropped.runs, dropped.inactive);
        self.active.remove(&dropped.runs, dropped.active);
        for &(from, end) in &dropped.runs {
            self.stale.forget(from, end);
        }
    }

    /// Whether the folio whose first page is `head` of the row is active.
    pub(super) fn is_active(&self, head: u64) -> bool {
        self.flags_of(head).active >> (head % WORD_PAGES) & 1 == 1
    }

    /// The flags of the word that a cached page of the row lies in.
    pub(super) fn flags_of(&self, page: u64) -> Flags {
        let chunk = self.chunks.get(page / pages_of(W)).expect("the page is cached");
        chunk.flags((page % pages_of(W) / WORD_PAGES) as usize)
    }

    /// Takes one folio out of the cache; the lists are left for later.
    fn drop_folio(&mut self, folio: Folio, first: u64, dropped: &mut Dropped) {
        let (head, end) = (first + folio.head.0, first + folio.end().0);
        dropped.add(head, end, self.is_active(head));
        self.clear_aliases(head, end);
        for (number, span) in by_chunk::<W>(head, end) {
            let chunk = self.chunks.get_mut(number).expect("the page is cached");
            let empty = chunk.remove(span);
            self.nodes -= if in_leaf(folio.order) { empty } else { 0 };
        }
    }

    /// Whether a page of the row in `from..end` has an entry in any layer.
    fn is_mapped(&mut self, from: u64, end: u64) -> bool {
        let (from, end) = (PageIndex(from), PageIndex(end));
        words(from, end).any(|number| {
            let chunk = self.chunks.get(number / W as u64).expect("the page is cached");
            let first = chunk.flags(number as usize % W).mapped;
            let entries = self.aliases.of_word(number);
            let mapped = entries.fold(first, |of_all, (_, entries)| of_all | entries.mapped);
            mapped & word_mask(number, from, end) != 0
        })
    }

    /// What was noted of evictions of the pages `from..end` of the row does not count any more.
    fn forget_evictions(&mut self, from: u64, end: u64) {
        let within = |number: &u64| from < (number + 1) * pages_of(W) && number * pages_of(W) < end;
        let numbers = self.chunks.iter().map(|(number, _)| number).filter(within);
        for number in numbers.collect::<Vec<u64>>() {
            let chunk_first = number * pages_of(W);
            let (from, end) = (from.max(chunk_first), end.min(chunk_first + pages_of(W)));
            let chunk = self.chunks.get_mut(number).expect("it was just there");
            let (from, end) = ((from - chunk_first) as usize, (end - chunk_first) as usize);
            self.shadows.forget_pages(&mut chunk.evicted, Span { from, end }, self.clock);
            if chunk.is_empty() {
                self.retired.push_back((self.clock, number));
            }
        }
    }
}

/// What was dropped so far.
#[derive(Default)]
pub(super) struct Dropped {
    /// First pages, and the pages after the last ones, in ascending order.
    runs: Vec<(u64, u64)>,
    inactive: u64,
    active: u64,
}

impl Dropped {
    pub(super) fn add(&mut self, head: u64, end: u64, is_active: bool) {
        match self.runs.last_mut() {
            Some(last) if last.1 == head => last.1 = end,
            _ => self.runs.push((head, end)),
        }
        let pages = if is_active { &mut self.active } else { &mut self.inactive };
        *pages += end - head;
    }
}
