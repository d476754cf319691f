//! Adding folios: each goes to the list where its last eviction says.

use filemap_core::cache::{WORD_PAGES, in_leaf, word_mask, words};
use filemap_core::lru::workingset;
use filemap_core::units::{Order, PageCount, PageIndex};

use super::Extents;
use super::chunks::Chunks;
use super::lists::{Extent, bits};
use super::shadows::Piece;
use super::span::pages_of;
use super::span::{Span, WORD, by_chunk, first_span};

impl<const W: usize> Extents<W> {
    /// Adds folios of one order, all of their pages absent, to the lists where their last evictions
    /// say.
    #[inline(always)]
    pub(super) fn add_folios(&mut self, start: u64, end: u64, order: Order) {
        if self.paged_out.is_empty() {
            self.add_run(start, end, order)
        } else {
            self.add_paged_out(start, end, order)
        }
    }

    /// [`Extents::add_folios`] where pages were evicted on demand.
    #[inline(never)]
    fn add_paged_out(&mut self, start: u64, end: u64, order: Order) {
        let mut next = start;
        while let Some(page) = self.paged_out.next(next, end) {
            let head = page / order.pages() * order.pages();
            self.add_run(next, head, order);
            self.enter_paged_out(head, order);
            next = head + order.pages();
        }
        self.add_run(next, end, order);
    }

    /// Adds a folio of which pages were evicted on demand. The last of its pages that was evicted
    /// says what becomes of it.
    fn enter_paged_out(&mut self, head: u64, order: Order) {
        let end = head + order.pages();
        for (number, span) in by_chunk::<W>(head, end) {
            self.fill(number, span, order);
        }
        let (last, workingset) = self.paged_out.last(head, end).expect("some were");
        self.paged_out.take(head, end);
        let behind = last + 1;
        if behind < end && self.last_of_folio(behind, end - behind).is_some() {
            self.enter(head, order);
        } else {
            self.return_active(head, order, workingset);
        }
    }

    #[inline(always)]
    fn add_run(&mut self, start: u64, end: u64, order: Order) {
        match order {
            Order(0) => self.add_of_order(start, end, Order(0)),
            _ => self.add_large(start, end, order),
        }
    }

    // So that the other is made for base pages.
    #[inline(never)]
    fn add_large(&mut self, start: u64, end: u64, order: Order) {
        self.add_of_order(start, end, order);
    }

    #[inline(always)]
    fn add_of_order(&mut self, start: u64, end: u64, order: Order) {
        let mut next = start;
        while next < end {
            let is_long = order == Order(0) && end - next >= Chunks::<W>::LEAST_RUN * pages_of(W);
            let full = if is_long { self.unused_chunks(next, end) } else { 0 };
            if full > 0 {
                self.add_full(next / pages_of(W), full);
                next += full * pages_of(W);
                continue;
            }
            let stop = match order.pages() {
                pages if pages > pages_of(W) => next + pages,
                _ => end.min((next / pages_of(W) + 1) * pages_of(W)),
            };
            let mut recent = 0;
            for (number, span) in by_chunk::<W>(next, stop) {
                recent |= self.fill(number, span, order);
            }
            match recent {
                0 => self.inactive.push_pages(next, stop, order),
                _ => self.enter_pages(next, stop, order, recent),
            }
            next = stop;
        }
    }

    /// How many chunks that page `next` begins can be filled as one: enough of them, and there is
    /// nothing in any.
    #[inline(never)]
    fn unused_chunks(&self, next: u64, end: u64) -> u64 {
        if !next.is_multiple_of(pages_of(W)) || self.chunks.is_roomy() {
            return 0;
        }
        let numbers = next / pages_of(W)..end / pages_of(W);
        let unused = numbers.take_while(|&number| !self.chunks.has_slot(number)).count() as u64;
        if unused >= Chunks::<W>::LEAST_RUN { unused } else { 0 }
    }

    /// Adds the pages of `span` to chunk `number`. Returns the words of them, one bit each, in
    /// which a page may have been evicted so lately that it becomes active.
    #[inline(always)]
    fn fill(&mut self, number: u64, span: Span, order: Order) -> u64 {
        let chunk = self.chunks.get_or_make(number);
        let (were_empty, evicted) = (chunk.add(span, order), chunk.evicted);
        self.nodes += if in_leaf(order) { were_empty } else { 0 };
        match self.known.statistics.active {
            PageCount(0) => 0,
            _ => self.shadows.words_since(&evicted, span, self.recent_since()),
        }
    }

    /// Adds all pages of so many chunks that hold nothing, from chunk `first` on.
    fn add_full(&mut self, first: u64, chunks: u64) {
        self.chunks.add_full(first, first + chunks);
        self.nodes += chunks * W as u64;
        self.inactive.push_pages(first * pages_of(W), (first + chunks) * pages_of(W), Order(0));
    }

    /// Puts the folios `from..end` of one chunk, which were added, on their lists: those that have
    /// a page in a word of `recent` where their last evictions say.
    #[inline(never)]
    fn enter_pages(&mut self, from: u64, end: u64, order: Order, mut recent: u64) {
        let unit = order.pages().max(WORD_PAGES);
        let first_word = from / pages_of(W) * W as u64;
        let mut next = from;
        while recent != 0 && next < end {
            let word = first_word + u64::from(recent.trailing_zeros());
            let unit_start = word * WORD_PAGES / unit * unit;
            let (first, stop) = (unit_start.max(next), (unit_start + unit).min(end));
            self.inactive.push_pages(next, first, order);
            if order == Order(0) && stop - first > 1 {
                self.enter_word(first, stop);
            } else {
                (first..stop).step_by(order.pages() as usize).for_each(|at| self.enter(at, order));
            }
            let done = (stop / WORD_PAGES - first_word).min(W as u64);
            recent &= !(bits(done as u32));
            next = stop;
        }
        self.inactive.push_pages(next, end, order);
    }

    /// Puts the base pages `from..end` of a word, which were added, where their last evictions say.
    fn enter_word(&mut self, from: u64, end: u64) {
        let (number, span) = first_span::<W>(from, end);
        let (active, since) = (self.most_recent(), self.recent_since());
        let chunk = self.chunks.get_mut(number).expect("pages are cached");
        self.shadows.pieces(&chunk.evicted, span, since, &mut self.pieces);
        let (mut activated, mut of_workingset) = (0, 0);
        for piece in &self.pieces {
            let late = workingset::late(self.clock, piece.clock, PageCount(piece.pages), active);
            let recent = piece.pages - late.0;
            let offset = piece.offset as u64 + late.0;
            let mask = bits(recent as u32) << (offset % WORD_PAGES);
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

    /// At most so many clocks back an eviction is recent, and kept.
    fn most_recent(&self) -> PageCount {
        self.known.statistics.active.min(PageCount(self.capacity))
    }

    /// No eviction before this clock is recent.
    fn recent_since(&self) -> u64 {
        self.clock.saturating_sub(self.most_recent().0)
    }

    /// Puts a folio that was added on the list where its last eviction says.
    fn enter(&mut self, head: u64, order: Order) {
        let extent = Extent { start: head, pages: order.pages(), order };
        let shadow = match order {
            Order(0) => self.last_eviction(head, self.recent_since()),
            _ => self.last_of_folio(head, order.pages()),
        };
        let shadow = shadow.filter(|last| workingset::is_kept(self.clock, last.0, self.capacity));
        match shadow {
            Some((clock, workingset))
                if workingset::is_recent(self.clock, clock, self.known.statistics.active) =>
            {
                self.return_active(head, order, workingset);
            }
            _ => self.inactive.push(extent),
        }
    }

    /// Puts a folio that was added on the active list.
    fn return_active(&mut self, head: u64, order: Order, workingset: bool) {
        let pages = order.pages();
        self.clock += pages;
        self.known.refaults.count(PageCount(pages));
        self.set_range(head, head + pages, |flags, mask| {
            flags.active |= mask;
            flags.workingset |= if workingset { mask } else { 0 };
        });
        self.active.push(Extent { start: head, pages, order });
    }

    /// Clock and workingset flag of the last eviction of a page at or after the clock `since`, or
    /// of one before it.
    fn last_eviction(&self, page: u64, since: u64) -> Option<(u64, bool)> {
        let chunk = self.chunks.get(page / pages_of(W))?;
        self.shadows.last(&chunk.evicted, (page % pages_of(W)) as usize, since)
    }

    /// The same of the last page of a folio whose eviction still counts.
    fn last_of_folio(&mut self, head: u64, pages: u64) -> Option<(u64, bool)> {
        let since = self.clock.saturating_sub(self.capacity);
        let (first, end) = (PageIndex(head), PageIndex(head + pages));
        words(first, end).rev().find_map(|number| {
            let chunk = self.chunks.get(number / W as u64)?;
            if !self.shadows.any_since(&chunk.evicted, since) {
                return None;
            }
            let from = head.max(number * WORD_PAGES);
            let (_, span) = first_span::<W>(from, (head + pages).min((number + 1) * WORD_PAGES));
            self.shadows.pieces(&chunk.evicted, span, since, &mut self.pieces);
            let clock = |piece: &Piece| piece.clock + piece.pages - 1;
            let is_kept =
                |piece: &&Piece| workingset::is_kept(self.clock, clock(piece), self.capacity);
            let last = self.pieces.iter().rev().find(is_kept)?;
            Some((clock(last), last.workingset))
        })
    }
}
