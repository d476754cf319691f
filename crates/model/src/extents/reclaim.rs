//! Shrinking the inactive list.

use filemap_core::address::entries::Layer;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::cache::{WORD_PAGES, by_word, up_to_bit};
use filemap_core::decision::{EvictionRun, Log};
use filemap_core::lru::lists::{Scan, ShrinkStats};
use filemap_core::lru::reclaim::{FolioVerdict, PageVerdicts, judge_folio, judge_pages};
use filemap_core::units::{Order, PageCount, PageIndex};

use super::Extents;
use super::evict::evict_span;
use super::file::locate;
use super::lists::{FolioExtent, bit_runs, low_bits};
use super::span::chunk_pages;
use super::span::{Span, WORD, by_chunk, first_span};
use super::young::AccessedPages;

/// Limits of a reclaim step, in pages.
#[derive(Clone, Copy)]
struct ScanBudget {
    scanned: u64,
    evicted: u64,
}

/// A pass over the tail of the inactive list.
struct ScanPass<'a, L> {
    mappings: &'a ReverseMap,
    /// Results so far.
    shrunk: ShrinkStats,
    /// Evictions not yet logged.
    run: EvictionRun,
    log: &'a mut L,
}

impl<const W: usize> Extents<W> {
    /// Scans the inactive list from the tail as far as `scan` says, each folio at most once.
    /// Counting unmapped pages is a compile-time choice, since most reclaim does not and runs
    /// millions of times.
    // Out of line: inlining costs registers in the callers.
    #[inline(never)]
    pub(super) fn shrink_inactive<const COUNTS_UNMAPPED: bool>(
        &mut self,
        scan: Scan,
        mappings: &ReverseMap,
        log: &mut impl Log,
    ) -> ShrinkStats {
        let goal = scan.goal.0;
        let (shrunk, run) = (ShrinkStats::default(), EvictionRun::default());
        let mut pass = ScanPass { mappings, shrunk, run, log };
        let mut left = self.inactive.pages.min(scan.max_scan.0);
        while pass.shrunk.evicted.0 < goal && left > 0 {
            let tail = self.inactive.tail().expect("pages are left on the list");
            let ready = self.locked.next(tail.start, tail.start + tail.pages) - tail.start;
            let locked = if ready == 0 { self.pass_locked_run(tail, left) } else { 0 };
            let looked = if locked > 0 {
                pass.shrunk.kept += PageCount(locked);
                pass.shrunk.locked += PageCount(locked);
                locked
            } else {
                let most = left.min(goal - pass.shrunk.evicted.0);
                let (looked, rest) = match tail.order {
                    Order(0) => {
                        let tail = FolioExtent { order: Order(0), ..tail };
                        self.shrink_extent::<COUNTS_UNMAPPED>(tail, most, ready, &mut pass)
                    }
                    _ => self.shrink_large::<COUNTS_UNMAPPED>(tail, most, ready, &mut pass),
                };
                let bound = ScanBudget {
                    scanned: left - looked.min(left),
                    evicted: goal.saturating_sub(pass.shrunk.evicted.0),
                };
                let more = match rest {
                    None => 0,
                    Some(rest) if rest.order == Order(0) => {
                        self.shrink_word::<COUNTS_UNMAPPED>(rest, bound, &mut pass)
                    }
                    Some(_) if looked > 0 => 0,
                    Some(folio) => self.shrink_folio::<COUNTS_UNMAPPED>(folio, &mut pass),
                };
                looked + more
            };
            // The last folio may exceed the remaining budget.
            left = left.saturating_sub(looked);
        }
        pass.run.flush(pass.log);
        self.clock += pass.shrunk.activated.0;
        if self.clock >= self.forgets_at {
            self.forget_old();
        }
        pass.shrunk
    }

    /// Rotates folios at the tail whose first page is locked, at most `most` pages rounded up to
    /// whole folios. Returns the number of pages: 0 if the first folio is a stale entry.
    #[inline(never)]
    fn pass_locked_run(&mut self, tail: FolioExtent, most: u64) -> u64 {
        let run_end = self.locked.run_end(tail.start).min(tail.start + most);
        let locked = tail.order.round_up(run_end - tail.start).min(tail.pages);
        let pages = self.stale.next(tail.start, tail.start + locked) - tail.start;
        self.inactive.rotate(pages);
        pages
    }

    /// The fast path for folios at the tail, at most `most` pages rounded up to whole folios, up to
    /// the first folio that needs a closer look. The first `ready` pages are not locked. Returns
    /// the number of pages done, and the rest of the extent from that folio on.
    #[inline(always)]
    fn shrink_extent<const COUNTS_UNMAPPED: bool>(
        &mut self,
        tail: FolioExtent,
        most: u64,
        ready: u64,
        pass: &mut ScanPass<'_, impl Log>,
    ) -> (u64, Option<FolioExtent>) {
        let FolioExtent { start, pages, order } = tail;
        let (file, index) = locate(start);
        let mappings = pass.mappings.file(file);
        let word_in_file = |page: u64| locate(page).1.0 / WORD_PAGES;
        let most_end = start + order.round_up(most).min(pages);
        let end = most_end.min(start + order.round_down(ready));
        let end = self.aliases.next(start, self.stale.next(start, end));
        let mut next = start;
        while next < end {
            let (number, span) = first_span::<W>(next, end);
            let chunk = self.chunks.get_mut(number).expect("pages are cached");
            let first_word = word_in_file(number * chunk_pages(W));
            let recency = |word| mappings.recency_mask(Layer::FIRST, first_word + word as u64);
            let unused = chunk.untouched_prefix(span, recency);
            let span = Span { end: order.round_down(unused.end as u64) as usize, ..span };
            if span.from < span.end {
                let unmapped = if COUNTS_UNMAPPED { chunk.mapped(span) } else { 0 };
                pass.shrunk.unmapped += PageCount(unmapped);
                let folios = (span, order, unused.is_plain);
                self.nodes -= evict_span(&mut self.shadows, chunk, folios, self.clock);
                let evicted = PageCount(span.pages() as u64);
                pass.run.push(file, index + PageCount(next - start), evicted, pass.log);
                pass.shrunk.evicted += evicted;
                self.clock += evicted.0;
                next += evicted.0;
                if chunk.pages() == 0 {
                    self.retired.push_back((self.clock, number));
                }
            }
            match unused.next_young {
                0 if span.from < span.end => {}
                young if young != 0 && order == Order(0) => {
                    let referenced = chunk.flags(unused.end / WORD).referenced;
                    let executable = mappings.executable_mask(Layer::FIRST, word_in_file(next));
                    let verdicts = judge_pages(young, young, referenced, executable);
                    self.keep_on_lists(next / WORD_PAGES, verdicts, (young, 0), pass);
                    next += u64::from((young >> (next % WORD_PAGES)).trailing_ones());
                }
                // An accessed large folio, or one larger than a chunk.
                _ => break,
            }
        }
        if next > start {
            self.inactive.take(next - start, next - start);
        }
        let rest = FolioExtent { start: next, pages: start + pages - next, order };
        (next - start, (next < most_end).then_some(rest))
    }

    /// [`Extents::shrink_extent`] for large folios, so that the other call sites are compiled for
    /// order 0.
    #[inline(never)]
    fn shrink_large<const COUNTS_UNMAPPED: bool>(
        &mut self,
        tail: FolioExtent,
        most: u64,
        ready: u64,
        pass: &mut ScanPass<'_, impl Log>,
    ) -> (u64, Option<FolioExtent>) {
        self.shrink_extent::<COUNTS_UNMAPPED>(tail, most, ready, pass)
    }

    /// Keeps the pages of a word that are not evicted on the lists, and clears their accessed bits
    /// in the first layer where `recency`. Pages that are `locked` are rotated unchanged.
    fn keep_on_lists(
        &mut self,
        number: u64,
        PageVerdicts { keep, activate, .. }: PageVerdicts,
        (recency, locked): (u64, u64),
        pass: &mut ScanPass<'_, impl Log>,
    ) {
        let (first, stays) = (number * WORD_PAGES, keep | activate);
        if stays != 0 {
            let chunk = self.chunks.get_mut(number / W as u64).expect("pages are cached");
            chunk.change_flags(number as usize % W, |flags| {
                flags.young &= !(stays & recency);
                flags.referenced |= stays;
                flags.active |= activate;
            });
        }
        pass.shrunk.kept += PageCount(self.inactive.push_mask(first, keep | locked));
        if locked != 0 {
            pass.shrunk.locked += PageCount(locked.count_ones().into());
        }
        if activate != 0 {
            let activated = PageCount(self.active.push_mask(first, activate));
            pass.shrunk.kept += activated;
            pass.shrunk.activated += activated;
        }
    }

    /// Judges the base pages at the tail that lie in one word. Returns how many of them were not
    /// stale.
    fn shrink_word<const COUNTS_UNMAPPED: bool>(
        &mut self,
        tail: FolioExtent,
        bound: ScanBudget,
        pass: &mut ScanPass<'_, impl Log>,
    ) -> u64 {
        let number = tail.start / WORD_PAGES;
        let offset = tail.start % WORD_PAGES;
        let length = tail.pages.min(WORD_PAGES - offset).min(bound.scanned);
        let mut mask = low_bits(length as u32) << offset;
        let first = number * WORD_PAGES;
        let (file, index) = locate(first);
        let (mappings, word) = (pass.mappings.file(file), index.0 / WORD_PAGES);
        let locked = self.locked.mask(number);
        let chunk = self.chunks.get_mut(number / W as u64).expect("pages are cached");
        let word_in_chunk = number as usize % W;
        let flags = chunk.flags(word_in_chunk);
        let stale = self.stale.stale_in(number, mask);
        let accessed = (flags.accessed(mask), mask);
        let young = AccessedPages::in_word(accessed, number, word, &mut self.aliases, mappings);
        // Pages after the last noteworthy one are evicted together with their successors in the
        // list.
        let notable = (young.pages | flags.workingset | stale | locked) & mask;
        if notable != 0 {
            mask &= u64::MAX >> notable.leading_zeros();
        }
        let pages = mask & !stale & !locked;
        let referenced = flags.referenced | young.shared;
        let mut verdicts = judge_pages(pages, young.pages, referenced, young.executable);
        // Avoids popcount, as most masks are empty.
        if verdicts.evict != 0 && u64::from(verdicts.evict.count_ones()) >= bound.evicted {
            mask &= up_to_bit(verdicts.evict, bound.evicted);
            verdicts.evict &= mask;
            verdicts.keep &= mask;
            verdicts.activate &= mask;
        }
        let (stale, gone) = match stale {
            0 => (0, 0),
            _ => {
                let stale = self.stale.take(number, mask);
                (stale, u64::from(stale.count_ones()))
            }
        };
        let locked = locked & mask & !stale;
        let taken = WORD_PAGES - u64::from(mask.leading_zeros()) - offset;
        self.inactive.take(taken, taken - gone);
        self.aliases.forget_accesses(number, word, verdicts.keep | verdicts.activate, mappings);
        self.keep_on_lists(
            number,
            verdicts,
            (mappings.recency_mask(Layer::FIRST, word), locked),
            pass,
        );
        if COUNTS_UNMAPPED {
            pass.shrunk.unmapped += PageCount(self.mapped(number, verdicts.evict));
        }
        for (offset, pages) in bit_runs(verdicts.evict) {
            self.evict(first + offset, pages, Order(0), pass);
        }
        taken - gone
    }

    /// Judges the large folio at the tail. Returns its pages, or 0 if the entry was stale.
    fn shrink_folio<const COUNTS_UNMAPPED: bool>(
        &mut self,
        tail: FolioExtent,
        pass: &mut ScanPass<'_, impl Log>,
    ) -> u64 {
        let (head, pages) = (tail.start, tail.order.pages());
        let extent = FolioExtent { start: head, pages, order: tail.order };
        if self.stale.take(head / WORD_PAGES, 1 << (head % WORD_PAGES)) != 0 {
            self.inactive.take(pages, 0);
            return 0;
        }
        self.inactive.take(pages, pages);
        let (file, _) = locate(head);
        let (young, referenced) = self.take_young(head, pages, pass.mappings.file(file));
        let verdict = judge_folio(young.vmas, referenced, young.executable);
        if verdict == FolioVerdict::Evict {
            if COUNTS_UNMAPPED {
                let (from, end) = (PageIndex(head), PageIndex(head + pages));
                let unmapped = by_word(from, end).map(|(word, mask)| self.mapped(word, mask));
                pass.shrunk.unmapped += PageCount(unmapped.sum());
            }
            self.evict(head, pages, tail.order, pass);
            return pages;
        }
        pass.shrunk.kept += PageCount(pages);
        let activate = verdict == FolioVerdict::Activate;
        self.set_range(head, head + pages, |flags, mask| {
            flags.referenced |= mask;
            flags.active |= if activate { mask } else { 0 };
        });
        if activate {
            pass.shrunk.activated += PageCount(pages);
            self.active.push(extent);
        } else {
            self.inactive.push(extent);
        }
        pages
    }

    /// Number of mapped pages of `mask` in a word.
    fn mapped(&mut self, number: u64, mask: u64) -> u64 {
        let chunk = self.chunks.get_mut(number / W as u64).expect("pages are cached");
        let mut mapped = chunk.flags(number as usize % W).mapped;
        if !self.aliases.is_empty() {
            mapped |=
                self.aliases.word_mut(number).fold(0, |all, (_, entries)| all | entries.mapped);
        }
        u64::from((mapped & mask).count_ones())
    }

    /// Evicts `pages` pages from `start`: base pages of one word, or one folio.
    fn evict(&mut self, start: u64, pages: u64, order: Order, pass: &mut ScanPass<'_, impl Log>) {
        let (file, index) = locate(start);
        pass.run.push(file, index, PageCount(pages), pass.log);
        pass.shrunk.evicted += PageCount(pages);
        let first_clock = self.clock;
        self.clock += pages;
        for (number, span) in by_chunk::<W>(start, start + pages) {
            let first = number * chunk_pages(W);
            self.clear_aliases(first + span.from as u64, first + span.end as u64);
            let chunk = self.chunks.get_mut(number).expect("pages are cached");
            let evicted = (span, order, false);
            self.nodes -= evict_span(&mut self.shadows, chunk, evicted, first_clock);
            if chunk.pages() == 0 {
                self.retired.push_back((self.clock, number));
            }
        }
    }
}
