//! Carrying out reclaim on extents.

use std::collections::VecDeque;

use filemap_core::cache::{Shrunk, WORD_PAGES, in_leaf, word_mask, words};
use filemap_core::decision::{EvictionRun, Log};
use filemap_core::reclaim::{Referenced, Verdict, judge_folio, judge_pages};
use filemap_core::segments::Layer;
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_core::vma::Mapping;

use super::ExtentCache;
use super::chunk::{CHUNK_PAGES, CHUNK_WORDS, Shadow};
use super::lists::{Extent, bits, runs};

/// Chunks that became empty, with the clock then: forgotten once no eviction in them matters.
pub type Retired = VecDeque<(u64, u64)>;

/// The most pages that a step of reclaim may look at, and evict.
#[derive(Clone, Copy)]
struct Bound {
    looked: u64,
    evicted: u64,
}

impl ExtentCache {
    /// Judges folios from the inactive list's tail until `goal` pages are evicted, each folio that
    /// is on the list at the beginning at most once.
    pub(super) fn shrink_inactive(
        &mut self,
        goal: u64,
        mapping: &Mapping,
        log: &mut impl Log,
    ) -> Shrunk {
        let mut shrunk = Shrunk::default();
        let mut run = EvictionRun::default();
        let mut left = self.inactive.pages;
        while shrunk.evicted.0 < goal && left > 0 {
            let tail = self.inactive.tail().expect("pages are left on the list");
            let looked = if tail.order > Order(0) {
                self.shrink_folio(tail, mapping, &mut shrunk, &mut run, log)
            } else {
                let most = goal - shrunk.evicted.0;
                let unused = self.evict_unused(tail, left.min(most), mapping, &mut run, log);
                shrunk.evicted += PageCount(unused);
                match unused {
                    0 => {
                        let bound = Bound { looked: left, evicted: most };
                        self.shrink_word(tail, bound, mapping, &mut shrunk, &mut run, log)
                    }
                    _ => unused,
                }
            };
            left -= looked;
        }
        run.flush(log);
        self.clock += shrunk.activated.0;
        self.forget_old_chunks();
        shrunk
    }

    /// Evicts base pages from the tail as long as none has an accessed entry or needs a look of
    /// its own, at most `most` and to the end of a chunk: all that most windows need. Returns how
    /// many.
    fn evict_unused(
        &mut self,
        tail: Extent,
        most: u64,
        mapping: &Mapping,
        run: &mut EvictionRun,
        log: &mut impl Log,
    ) -> u64 {
        let number = tail.start / CHUNK_PAGES;
        let end = (tail.start + tail.pages.min(most)).min((number + 1) * CHUNK_PAGES);
        let locked = self.locked.any(tail.start, end);
        if !self.stale.is_empty() || !self.aliases.is_empty() || locked {
            return 0;
        }
        let believed = mapping.has_recency();
        let chunk = self.chunks.get_mut(number).expect("pages are cached");
        let mut next = tail.start;
        while next < end {
            let stop = end.min((next / WORD_PAGES + 1) * WORD_PAGES);
            let mask = bits((stop - next) as u32) << (next % WORD_PAGES);
            let word = &mut chunk.words[(next % CHUNK_PAGES / WORD_PAGES) as usize];
            if (believed && word.accessed(mask) != 0) || word.workingset & mask != 0 {
                break;
            }
            word.clear(mask);
            self.nodes -= u64::from(word.present == 0);
            next = stop;
        }
        let pages = next - tail.start;
        if pages > 0 {
            self.inactive.take(pages, pages);
            run.push(PageIndex(tail.start), PageCount(pages), log);
            let offset = (tail.start % CHUNK_PAGES) as u16;
            let clock = self.clock;
            let shadow =
                Shadow { offset, pages: pages as u16, clock, is_folio: false, workingset: false };
            self.clock += pages;
            self.left_cache(number, shadow);
        }
        pages
    }

    /// Notes that pages of chunk `number` left the cache.
    fn left_cache(&mut self, number: u64, shadow: Shadow) {
        let oldest = self.clock.saturating_sub(self.capacity);
        let chunk = self.chunks.get_mut(number).expect("pages were cached");
        chunk.present -= u32::from(shadow.pages);
        chunk.push_shadow(shadow, oldest);
        if chunk.present == 0 {
            self.retired.push_back((self.clock, number));
        }
    }

    /// Judges the base pages at the tail that lie in one word. Returns how many were on the list.
    fn shrink_word(
        &mut self,
        tail: Extent,
        bound: Bound,
        mapping: &Mapping,
        shrunk: &mut Shrunk,
        run: &mut EvictionRun,
        log: &mut impl Log,
    ) -> u64 {
        let number = tail.start / WORD_PAGES;
        let offset = tail.start % WORD_PAGES;
        let length = tail.pages.min(WORD_PAGES - offset).min(bound.looked);
        let mut mask = bits(length as u32) << offset;
        let first = number * WORD_PAGES;
        let locked = self.locked.mask(number);
        let chunk = self.chunks.get_mut(number / CHUNK_WORDS as u64).expect("pages are cached");
        let word = &mut chunk.words[number as usize % CHUNK_WORDS];
        let stale = self.stale.among(number, mask);
        let mut young = Accessed::default();
        if mapping.has_recency() {
            young.add(Layer::FIRST, number, word.accessed(mask), mapping);
            for (layer, entries) in self.aliases.of_word(number) {
                young.add(layer, number, entries.young & mask, mapping);
            }
        }
        let pages = mask & !stale & !locked;
        let referenced = word.referenced | young.again;
        let mut verdicts = judge_pages(pages, young.pages, referenced, young.executable);
        if u64::from(verdicts.evict.count_ones()) >= bound.evicted {
            mask &= up_to_bit(verdicts.evict, bound.evicted);
            verdicts.evict &= mask;
            verdicts.keep &= mask;
            verdicts.activate &= mask;
        }
        let stale = self.stale.take(number, mask);
        let locked = locked & mask & !stale;
        word.young &= !(verdicts.keep | verdicts.activate);
        for (_, entries) in self.aliases.of_word(number) {
            entries.young &= !(verdicts.keep | verdicts.activate);
        }
        word.referenced |= verdicts.keep | verdicts.activate;
        word.active |= verdicts.activate;
        let looked = u64::from((mask & !stale).count_ones());
        self.inactive.take(u64::from(mask.count_ones()), looked);
        self.inactive.push_mask(first, verdicts.keep | locked);
        self.active.push_mask(first, verdicts.activate);
        for (offset, pages) in runs(verdicts.evict) {
            self.evict(first + offset, pages, Order(0), run, log);
        }
        let evicted = u64::from(verdicts.evict.count_ones());
        shrunk.evicted += PageCount(evicted);
        shrunk.kept += PageCount(looked - evicted);
        shrunk.activated += PageCount(verdicts.activate.count_ones().into());
        looked
    }

    /// Judges the large folio at the tail. Returns how many of its pages were on the list.
    fn shrink_folio(
        &mut self,
        tail: Extent,
        mapping: &Mapping,
        shrunk: &mut Shrunk,
        run: &mut EvictionRun,
        log: &mut impl Log,
    ) -> u64 {
        let (head, pages) = (tail.start, tail.order.pages());
        let extent = Extent { start: head, pages, order: tail.order };
        if self.stale.take(head / WORD_PAGES, 1 << (head % WORD_PAGES)) != 0 {
            self.inactive.take(pages, 0);
            return 0;
        }
        self.inactive.take(pages, pages);
        if self.locked.any(head, head + 1) {
            self.inactive.push(extent);
            shrunk.kept += PageCount(pages);
            return pages;
        }
        let (young, referenced) = self.take_young(head, pages, mapping);
        let verdict = judge_folio(young.vmas, referenced, young.executable);
        if verdict == Verdict::Evict {
            self.evict(head, pages, tail.order, run, log);
            shrunk.evicted += PageCount(pages);
            return pages;
        }
        shrunk.kept += PageCount(pages);
        let activate = verdict == Verdict::Activate;
        self.set_range(head, head + pages, |word, mask| {
            word.referenced |= mask;
            word.active |= if activate { mask } else { 0 };
        });
        if activate {
            shrunk.activated += PageCount(pages);
            self.active.push(extent);
        } else {
            self.inactive.push(extent);
        }
        pages
    }

    /// Clears the accessed bits of a folio, where they are believed. Returns what they were, and
    /// whether the folio is referenced.
    fn take_young<'a>(
        &mut self,
        head: u64,
        pages: u64,
        mapping: &'a Mapping,
    ) -> (Referenced<'a>, bool) {
        let believed = mapping.has_recency();
        let mut young = Referenced::new(mapping);
        let mut referenced = false;
        let mut number = head / WORD_PAGES;
        self.set_range(head, head + pages, |word, mask| {
            referenced |= word.referenced & mask != 0;
            if believed {
                young.add(Layer::FIRST, number, word.accessed(mask));
                word.young &= !mask;
            }
            number += 1;
        });
        if believed && !self.aliases.is_empty() {
            self.take_young_aliases(head, pages, &mut young);
        }
        (young, referenced)
    }

    /// [`ExtentCache::take_young`] in all layers but the first.
    fn take_young_aliases(&mut self, head: u64, pages: u64, young: &mut Referenced<'_>) {
        let (from, end) = (PageIndex(head), PageIndex(head + pages));
        for layer in self.aliases.layers(from, end) {
            for number in words(from, end) {
                let mask = word_mask(number, from, end);
                let entries = self.aliases.get_or_make(number, layer);
                young.add(layer, number, entries.young & mask);
                entries.young &= !mask;
            }
        }
    }

    /// Evicts `pages` pages from `start`: base pages of one word, or one folio.
    fn evict(
        &mut self,
        start: u64,
        pages: u64,
        order: Order,
        run: &mut EvictionRun,
        log: &mut impl Log,
    ) {
        run.push(PageIndex(start), PageCount(pages), log);
        let is_folio = order > Order(0);
        let first_clock = self.clock;
        self.clock += pages;
        let mut next = start;
        while next < start + pages {
            let number = next / CHUNK_PAGES;
            let stop = (start + pages).min((number + 1) * CHUNK_PAGES);
            let (mut flags, mut nodes) = (0, 0);
            self.clear_aliases(next, stop);
            self.set_range(next, stop, |word, mask| {
                flags |= word.workingset & mask;
                word.clear(mask);
                nodes += u64::from(word.present == 0);
            });
            self.nodes -= if in_leaf(order) { nodes } else { 0 };
            // A folio's pages share a flag; base pages have each their own.
            let step = if is_folio || flags == 0 { stop - next } else { 1 };
            for page in (next..stop).step_by(step as usize) {
                let workingset = if is_folio { flags != 0 } else { flags >> (page % 64) & 1 == 1 };
                let clock = if is_folio { first_clock } else { first_clock + (page - start) };
                let offset = (page % CHUNK_PAGES) as u16;
                let shadow = Shadow { offset, pages: step as u16, clock, is_folio, workingset };
                self.left_cache(number, shadow);
            }
            next = stop;
        }
    }

    fn clear_aliases(&mut self, from: u64, end: u64) {
        if self.aliases.is_empty() {
            return;
        }
        let (from, end) = (PageIndex(from), PageIndex(end));
        for number in words(from, end) {
            self.aliases.clear(number, word_mask(number, from, end));
        }
    }

    /// Moves folios from the active list's tail until `pages` pages have moved.
    pub(super) fn age_active(&mut self, pages: u64, mapping: &Mapping) {
        let mut moved = 0;
        let mut left = self.active.pages;
        while moved < pages && left > 0 {
            let tail = self.active.tail().expect("pages are left on the list");
            let (head, length) = (tail.start, tail.order.pages());
            self.active.take(length, length);
            left -= length;
            let extent = Extent { start: head, pages: length, order: tail.order };
            let (young, _) = self.take_young(head, length, mapping);
            if young.executable {
                self.active.push(extent);
                self.clock += length;
                continue;
            }
            moved += length;
            self.set_range(head, head + length, |word, mask| {
                word.active &= !mask;
                word.workingset |= mask;
            });
            self.inactive.push(extent);
        }
    }

    fn forget_old_chunks(&mut self) {
        let oldest = self.clock.saturating_sub(self.capacity);
        while let Some(&(clock, number)) = self.retired.front()
            && clock < oldest
        {
            self.retired.pop_front();
            let unused = |chunk: &super::chunk::Chunk| {
                chunk.present == 0 && chunk.copied == 0 && !chunk.has_shadow_since(oldest)
            };
            if self.chunks.get(number).is_some_and(unused) {
                self.chunks.remove(number);
            }
        }
    }
}

/// The bits up to the one that is the `count`-th set in `mask`; `count` is at least 1 and at most
/// the number of set bits.
fn up_to_bit(mask: u64, count: u64) -> u64 {
    let mut rest = mask;
    for _ in 1..count {
        rest &= rest - 1;
    }
    let last = rest & rest.wrapping_neg();
    last | (last - 1)
}

/// Accessed entries of base pages in one word.
#[derive(Default)]
struct Accessed {
    pages: u64,
    /// Those with accessed entries in several layers.
    again: u64,
    /// Those with one in an executable VMA.
    executable: u64,
}

impl Accessed {
    fn add(&mut self, layer: Layer, word: u64, young: u64, mapping: &Mapping) {
        if young == 0 {
            return;
        }
        self.again |= self.pages & young;
        self.pages |= young;
        self.executable |= young & mapping.executable_mask_in(layer, word);
    }
}
