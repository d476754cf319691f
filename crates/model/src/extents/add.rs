//! Adding folios: the last eviction decides which list each one enters.

use filemap_core::cache::{WORD_PAGES, fits_in_leaf, word_mask, words};
use filemap_core::lru::workingset;
use filemap_core::units::{Order, PageCount, PageIndex};

use super::Extents;
use super::chunks::Chunks;
use super::lists::{FolioExtent, low_bits};
use super::shadows::ShadowRun;
use super::span::chunk_pages;
use super::span::{Span, WORD, by_chunk, first_span};

impl<const W: usize> Extents<W> {
    /// Adds folios of one order, whose pages are all absent, to the lists that their shadows
    /// select.
    #[inline(always)]
    pub(super) fn add_folios(&mut self, start: u64, end: u64, order: Order) {
        if self.paged_out.is_empty() {
            self.add_run(start, end, order)
        } else {
            self.add_paged_out(start, end, order)
        }
    }

    /// [`Extents::add_folios`] if some pages were paged out on demand.
    #[inline(never)]
    fn add_paged_out(&mut self, start: u64, end: u64, order: Order) {
        let mut next = start;
        while let Some(page) = self.paged_out.next(next, end) {
            let head = page / order.pages() * order.pages();
            self.add_run(next, head, order);
            self.insert_paged_out(head, order);
            next = head + order.pages();
        }
        self.add_run(next, end, order);
    }

    /// Adds a folio with pages that were paged out on demand. The most recent eviction of any of
    /// its pages decides.
    fn insert_paged_out(&mut self, head: u64, order: Order) {
        let end = head + order.pages();
        for (number, span) in by_chunk::<W>(head, end) {
            self.fill(number, span, order);
        }
        let (last, workingset) = self.paged_out.last(head, end).expect("some were");
        self.paged_out.take(head, end);
        let after = last + 1;
        if after < end && self.last_folio_eviction(after, end - after).is_some() {
            self.insert_by_shadow(head, order);
        } else {
            self.insert_active(head, order, workingset);
        }
    }

    #[inline(always)]
    fn add_run(&mut self, start: u64, end: u64, order: Order) {
        match order {
            Order(0) => self.add_of_order(start, end, Order(0)),
            _ => self.add_large(start, end, order),
        }
    }

    // Kept apart so that the base-page path is compiled for order 0.
    #[inline(never)]
    fn add_large(&mut self, start: u64, end: u64, order: Order) {
        self.add_of_order(start, end, order);
    }

    #[inline(always)]
    fn add_of_order(&mut self, start: u64, end: u64, order: Order) {
        let mut next = start;
        while next < end {
            let is_long =
                order == Order(0) && end - next >= Chunks::<W>::MIN_FULL_RUN * chunk_pages(W);
            let full = if is_long { self.unused_chunks(next, end) } else { 0 };
            if full > 0 {
                self.add_full(next / chunk_pages(W), full);
                next += full * chunk_pages(W);
                continue;
            }
            let stop = match order.pages() {
                pages if pages > chunk_pages(W) => next + pages,
                _ => end.min((next / chunk_pages(W) + 1) * chunk_pages(W)),
            };
            let mut recent = 0;
            for (number, span) in by_chunk::<W>(next, stop) {
                recent |= self.fill(number, span, order);
            }
            match recent {
                0 => self.inactive.push_pages(next, stop, order),
                _ => self.insert_pages_by_shadow(next, stop, order, recent),
            }
            next = stop;
        }
    }

    /// Number of unused chunks from page `next` on that can be filled as one run, or 0 if there are
    /// too few.
    #[inline(never)]
    fn unused_chunks(&self, next: u64, end: u64) -> u64 {
        if !next.is_multiple_of(chunk_pages(W)) || self.chunks.uses_slots() {
            return 0;
        }
        let numbers = next / chunk_pages(W)..end / chunk_pages(W);
        let unused = numbers.take_while(|&number| !self.chunks.has_slot(number)).count() as u64;
        if unused >= Chunks::<W>::MIN_FULL_RUN { unused } else { 0 }
    }

    /// Adds the pages of `span` to chunk `number`. Returns a bit for each word with a page whose
    /// eviction may be recent enough to make it active.
    #[inline(always)]
    fn fill(&mut self, number: u64, span: Span, order: Order) -> u64 {
        let chunk = self.chunks.get_or_allocate(number);
        let (were_empty, evicted) = (chunk.add(span, order), chunk.evicted);
        self.nodes += if fits_in_leaf(order) { were_empty } else { 0 };
        match self.known.sizes.active {
            PageCount(0) => 0,
            _ => self.shadows.words_since(&evicted, span, self.recent_since()),
        }
    }

    /// Adds all pages of `chunks` unused chunks from chunk `first` on.
    fn add_full(&mut self, first: u64, chunks: u64) {
        self.chunks.add_full(first, first + chunks);
        self.nodes += chunks * W as u64;
        self.inactive.push_pages(
            first * chunk_pages(W),
            (first + chunks) * chunk_pages(W),
            Order(0),
        );
    }

    /// Puts the added folios `from..end` of one chunk on their lists. Folios with a page in a word
    /// of `recent` are checked for a refault.
    #[inline(never)]
    fn insert_pages_by_shadow(&mut self, from: u64, end: u64, order: Order, mut recent: u64) {
        let unit = order.pages().max(WORD_PAGES);
        let first_word = from / chunk_pages(W) * W as u64;
        let mut next = from;
        while recent != 0 && next < end {
            let word = first_word + u64::from(recent.trailing_zeros());
            let unit_start = word * WORD_PAGES / unit * unit;
            let (first, stop) = (unit_start.max(next), (unit_start + unit).min(end));
            self.inactive.push_pages(next, first, order);
            if order == Order(0) && stop - first > 1 {
                self.insert_word_by_shadow(first, stop);
            } else {
                (first..stop)
                    .step_by(order.pages() as usize)
                    .for_each(|at| self.insert_by_shadow(at, order));
            }
            let done = (stop / WORD_PAGES - first_word).min(W as u64);
            recent &= !(low_bits(done as u32));
            next = stop;
        }
        self.inactive.push_pages(next, end, order);
    }

    /// Puts the added base pages `from..end` of a word on the lists that their shadows select.
    fn insert_word_by_shadow(&mut self, from: u64, end: u64) {
        let (number, span) = first_span::<W>(from, end);
        let (active, since) = (self.recent_distance(), self.recent_since());
        let chunk = self.chunks.get_mut(number).expect("pages are cached");
        self.shadows.runs_in_word(&chunk.evicted, span, since, &mut self.pieces);
        let (mut activated, mut of_workingset) = (0, 0);
        for piece in &self.pieces {
            let late = workingset::late(self.clock, piece.clock, PageCount(piece.pages), active);
            let recent = piece.pages - late.0;
            let offset = piece.offset as u64 + late.0;
            let mask = low_bits(recent as u32) << (offset % WORD_PAGES);
            if recent > 0 {
                activated |= mask;
                of_workingset |= if piece.workingset { mask } else { 0 };
                self.clock += recent;
            }
        }
        let first = from / WORD_PAGES * WORD_PAGES;
        if activated != 0 {
            chunk.change_flags(span.from / WORD, |flags| {
                flags.active |= activated;
                flags.workingset |= of_workingset;
            });
            let activated = self.active.push_mask(first, activated);
            self.known.refaults.count(PageCount(activated));
        }
        let mask = word_mask(from / WORD_PAGES, PageIndex(from), PageIndex(end));
        self.inactive.push_mask(first, mask & !activated);
    }

    /// Maximum refault distance at which an eviction is recent and still kept.
    fn recent_distance(&self) -> PageCount {
        self.known.sizes.active.min(PageCount(self.capacity))
    }

    /// Evictions before this clock are not recent.
    fn recent_since(&self) -> u64 {
        self.clock.saturating_sub(self.recent_distance().0)
    }

    /// Puts an added folio on the list that its shadow selects.
    fn insert_by_shadow(&mut self, head: u64, order: Order) {
        let extent = FolioExtent { start: head, pages: order.pages(), order };
        let shadow = match order {
            Order(0) => self.last_eviction(head, self.recent_since()),
            _ => self.last_folio_eviction(head, order.pages()),
        };
        let shadow = shadow.filter(|last| workingset::is_kept(self.clock, last.0, self.capacity));
        match shadow {
            Some((clock, workingset))
                if workingset::is_recent(self.clock, clock, self.known.sizes.active) =>
            {
                self.insert_active(head, order, workingset);
            }
            _ => self.inactive.push(extent),
        }
    }

    /// Puts a refaulted folio on the active list.
    fn insert_active(&mut self, head: u64, order: Order, workingset: bool) {
        let pages = order.pages();
        self.clock += pages;
        self.known.refaults.count(PageCount(pages));
        self.set_range(head, head + pages, |flags, mask| {
            flags.active |= mask;
            flags.workingset |= if workingset { mask } else { 0 };
        });
        self.active.push(FolioExtent { start: head, pages, order });
    }

    /// Clock and workingset flag of the last eviction of a page, if that was at or after `since`;
    /// an earlier one may be returned too.
    fn last_eviction(&self, page: u64, since: u64) -> Option<(u64, bool)> {
        let chunk = self.chunks.get(page / chunk_pages(W))?;
        self.shadows.last(&chunk.evicted, (page % chunk_pages(W)) as usize, since)
    }

    /// Clock and workingset flag of the last page of a folio whose eviction is still kept.
    fn last_folio_eviction(&mut self, head: u64, pages: u64) -> Option<(u64, bool)> {
        let since = self.clock.saturating_sub(self.capacity);
        let (first, end) = (PageIndex(head), PageIndex(head + pages));
        words(first, end).rev().find_map(|number| {
            let chunk = self.chunks.get(number / W as u64)?;
            if !self.shadows.any_since(&chunk.evicted, since) {
                return None;
            }
            let from = head.max(number * WORD_PAGES);
            let (_, span) = first_span::<W>(from, (head + pages).min((number + 1) * WORD_PAGES));
            self.shadows.runs_in_word(&chunk.evicted, span, since, &mut self.pieces);
            let clock = |piece: &ShadowRun| piece.clock + piece.pages - 1;
            let is_kept =
                |piece: &&ShadowRun| workingset::is_kept(self.clock, clock(piece), self.capacity);
            let last = self.pieces.iter().rev().find(is_kept)?;
            Some((clock(last), last.workingset))
        })
    }
}
