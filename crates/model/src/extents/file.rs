//! A view of one file in the cache.

use std::ops::Range;

use filemap_core::address::entries::{Layer, MappedFile, UnmappedPages, WordPages};
use filemap_core::cache::{FileCache, Folio, WORD_PAGES, word_mask};
use filemap_core::lru::reclaim::{AccessEffect, access_effect, access_effects};
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use super::Extents;
use super::aliases::AliasEntries;
use super::chunk::{Chunk, Flags};
use super::lists::{FolioExtent, bit_runs, low_bits};
use super::span::{Span, WORD, by_chunk, chunk_pages};

/// Distance between the first pages of two files, as a power of two. The largest file has 2^48
/// pages, so searches past its end stop before the next file. There is room for 2^15 files.
const FILE_ORDER: u32 = 49;

/// The global page number of page 0 of `file`.
pub fn first_page(file: FileId) -> u64 {
    (file.number() as u64) << FILE_ORDER
}

/// The file of a global page number, and the page index in the file.
pub fn locate(page: u64) -> (FileId, PageIndex) {
    (FileId::new((page >> FILE_ORDER) as u32), PageIndex(page & ((1 << FILE_ORDER) - 1)))
}

/// A file with its page-table entries in one layer.
#[derive(Debug)]
pub struct ExtentFile<'a, const W: usize> {
    cache: &'a mut Extents<W>,
    /// Global page number of its page 0.
    first: PageCount,
    layer: Layer,
}

impl<'a, const W: usize> ExtentFile<'a, W> {
    /// The view of `file` and `layer` in `cache`.
    pub fn new(cache: &'a mut Extents<W>, file: FileId, layer: Layer) -> Self {
        ExtentFile { cache, first: PageCount(first_page(file)), layer }
    }

    /// The global number of `word` of the file.
    fn global_word(&self, word: u64) -> u64 {
        self.first.0 / WORD_PAGES + word
    }

    /// The end of the unlocked pages from `from` on that are in the mask returned by `select`,
    /// given a chunk and word: at most `end`.
    #[inline]
    fn matching_end(
        &self,
        from: PageIndex,
        end: PageIndex,
        select: impl Fn(&Chunk<W>, usize) -> u64,
    ) -> PageIndex {
        let (cache, first) = (&*self.cache, self.first.0);
        let end = cache.locked.next(first + from.0, first + end.0);
        for (number, span) in by_chunk::<W>(first + from.0, end) {
            let chunk = cache.chunks.get(number);
            for word in span.from / WORD..span.end.div_ceil(WORD) {
                let other = span.mask(word) & !chunk.map_or(0, |chunk| select(chunk, word));
                if other != 0 {
                    let offset = word * WORD + other.trailing_zeros() as usize;
                    return PageIndex(number * chunk_pages(W) + offset as u64 - first);
                }
            }
        }
        PageIndex(end - first)
    }
}

impl<const W: usize> FileCache for ExtentFile<'_, W> {
    #[inline]
    fn folio(&self, index: PageIndex) -> Option<Folio> {
        self.cache.folio(self.first.0 + index.0, index)
    }

    #[inline]
    fn next_absent(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        let first = self.first.0;
        PageIndex(self.cache.find(first + from.0, first + end.0, false) - first)
    }

    #[inline]
    fn next_present(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        let first = self.first.0;
        PageIndex(self.cache.find(first + from.0, first + end.0, true) - first)
    }

    #[inline]
    fn gap(&self, from: PageIndex, end: PageIndex) -> Range<PageIndex> {
        let first = self.first.0;
        let gap = self.cache.gap(first + from.0, first + end.0);
        PageIndex(gap.start - first)..PageIndex(gap.end - first)
    }

    fn plain_end(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        let cache = &*self.cache;
        let first = (from + self.first).0;
        // Checking all pages of a word is slow if folios are large.
        let chunk = cache.chunks.get(first / chunk_pages(W));
        let offset = (first % chunk_pages(W)) as usize;
        if chunk.is_none_or(|chunk| !chunk.has(offset) || chunk.order(offset) > Order(0)) {
            return from;
        }
        self.matching_end(from, end, |chunk, word| chunk.unmarked(word) & !chunk.large(word))
    }

    fn ready_end(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        self.matching_end(from, end, Chunk::unmarked)
    }

    #[inline]
    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex> {
        let absent = self.cache.previous_absent(last + self.first, floor + self.first)?;
        Some(absent - self.first)
    }

    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount {
        self.cache.cached(from + self.first, end + self.first)
    }

    fn clear_mark(&mut self, index: PageIndex) {
        if let Some(folio) = self.folio(index) {
            let (head, end) = ((folio.head + self.first).0, (folio.end() + self.first).0);
            self.cache.set_range(head, end, |flags, mask| flags.marked &= !mask);
        }
    }

    fn set_referenced(&mut self, index: PageIndex) {
        if let Some(folio) = self.folio(index) {
            let (head, end) = ((folio.head + self.first).0, (folio.end() + self.first).0);
            self.cache.set_range(head, end, |flags, mask| flags.referenced |= mask);
        }
    }

    fn mark_accessed_until(&mut self, from: PageIndex, end: PageIndex) -> PageIndex {
        let mut next = from;
        while next < end {
            let number = (next + self.first).0 / WORD_PAGES;
            let word = number as usize % W;
            let Some(chunk) = self.cache.chunks.get_mut(number / W as u64) else {
                return next;
            };
            let offset = ((next + self.first).0 % chunk_pages(W)) as usize;
            let span_end = (offset as u64 + (end - next).0).min(chunk_pages(W));
            let span = Span { from: offset, end: span_end as usize };
            // A further access changes nothing.
            let used_end = chunk.active_end(span);
            if used_end > offset {
                next += PageCount((used_end - offset) as u64);
                continue;
            }
            let plain = Span { end: chunk.plain_words_end(span), ..span };
            if plain.from < plain.end {
                chunk.reference_plain_words(plain);
                next += PageCount(plain.pages() as u64);
                continue;
            }
            if !chunk.has(offset) {
                return next;
            }
            let word_end = end.min(PageIndex((next.0 | (WORD_PAGES - 1)) + 1));
            let order = chunk.order(offset);
            let folio_end = |index: PageIndex| index.align_down(order) + PageCount(order.pages());
            if order.pages() >= WORD_PAGES || !chunk.has_uniform_order(word, order) {
                self.mark_accessed(next);
                next = folio_end(next);
                continue;
            }
            // The last folio may extend past the end.
            let (first, after) = (next.align_down(order), folio_end(word_end - PageCount(1)));
            let mask = word_mask(next.0 / WORD_PAGES, first, after);
            let absent = mask & !chunk.present(word);
            let ready = if absent == 0 { mask } else { mask & low_bits(absent.trailing_zeros()) };
            self.mark_word_accessed(number, ready, order);
            next = first + PageCount(ready.count_ones().into());
        }
        end
    }

    fn mark_pages_accessed(&mut self, word: u64, mask: u64) {
        let number = self.global_word(word);
        let Some(chunk) = self.cache.chunks.get(number / W as u64) else { return };
        let pages = mask & chunk.present(number as usize % W);
        if pages != 0 {
            self.mark_word_accessed(number, pages, Order(0));
        }
    }

    fn mark_accessed(&mut self, index: PageIndex) {
        let Some(folio) = self.folio(index) else {
            return;
        };
        let cache = &mut *self.cache;
        let (head, end) = ((folio.head + self.first).0, (folio.end() + self.first).0);
        let chunk = cache.chunks.get(head / chunk_pages(W)).expect("the page is cached");
        let flags = chunk.flags((head % chunk_pages(W) / WORD_PAGES) as usize);
        let bit = 1 << (head % WORD_PAGES);
        match access_effect(flags.referenced & bit != 0, flags.active & bit != 0) {
            AccessEffect::Reference => {
                cache.set_range(head, end, |flags, mask| flags.referenced |= mask)
            }
            AccessEffect::Activate => {
                cache.set_range(head, end, |flags, mask| {
                    flags.referenced &= !mask;
                    flags.active |= mask;
                });
                let pages = folio.order.pages();
                cache.clock += pages;
                cache.stale.add(head / WORD_PAGES, bit);
                cache.inactive.pages -= pages;
                cache.active.push(FolioExtent { start: head, pages, order: folio.order });
            }
        }
    }
}

impl<const W: usize> ExtentFile<'_, W> {
    // Operations on other layers are kept out of line, to keep the code small for files mapped
    // once.
    #[inline(never)]
    fn touch_alias(&mut self, page: PageIndex) -> bool {
        self.cache.aliases.touch(page, self.layer)
    }

    #[inline(never)]
    fn map_aliases(&mut self, number: u64, mask: u64, young: u64) {
        let entries = self.cache.aliases.entry(number, self.layer);
        entries.mapped |= mask;
        entries.young |= young;
    }

    /// The mapped and copied pages of global word `number`.
    #[inline(never)]
    fn aliases(&self, number: u64) -> (u64, u64) {
        let AliasEntries { mapped, copied, .. } = self.cache.aliases.get(number, self.layer);
        (mapped, copied)
    }

    /// Sets the accessed bit of a mapped page.
    #[inline(never)]
    fn make_young(&mut self, page: PageIndex) {
        let chunk = self.cache.chunks.get_mut(page.0 / chunk_pages(W)).expect("the page is mapped");
        let word = (page.0 % chunk_pages(W)) as usize / WORD;
        chunk.change_flags(word, |flags| flags.young |= 1 << (page.0 % WORD_PAGES));
    }

    /// [`FileCache::mark_accessed`] for pages of a global word: whole folios of one order, smaller
    /// than the word.
    fn mark_word_accessed(&mut self, number: u64, pages: u64, order: Order) {
        let cache = &mut *self.cache;
        let chunk = cache.chunks.get_mut(number / W as u64).expect("pages are cached");
        let used = chunk.change_flags(number as usize % W, |flags| {
            let used = access_effects(pages, flags.referenced, flags.active);
            flags.referenced = flags.referenced & !used.activate | used.reference;
            flags.active |= used.activate;
            used
        });
        if used.activate == 0 {
            return;
        }
        for (offset, pages) in bit_runs(used.activate) {
            cache.active.push(FolioExtent { start: number * WORD_PAGES + offset, pages, order });
            cache.clock += pages;
            cache.inactive.pages -= pages;
        }
        let heads = u64::MAX / low_bits(order.pages() as u32);
        cache.stale.add(number, used.activate & heads);
    }
}

impl<const W: usize> MappedFile for ExtentFile<'_, W> {
    // Inlined: most callers use only some of the masks.
    #[inline(always)]
    fn pages(&self, word: u64, _: u64) -> WordPages {
        let (cache, number) = (&*self.cache, self.global_word(word));
        let mut pages = WordPages::default();
        if let Some(chunk) = cache.chunks.get(number / W as u64) {
            let word = number as usize % W;
            pages.present = chunk.present(word);
            if pages.present != 0 {
                pages.large = chunk.large(word) & pages.present;
                pages.locked = cache.locked.mask(number);
            }
            if let Some(Flags { marked, workingset, mapped, copied, .. }) = chunk.known_flags(word)
            {
                pages = WordPages { marked, workingset, mapped, copied, ..pages };
            }
        }
        if self.layer != Layer::FIRST {
            (pages.mapped, pages.copied) = self.aliases(number);
        }
        pages
    }

    #[inline(always)]
    fn map(&mut self, word: u64, mask: u64, young: u64) {
        let number = self.global_word(word);
        if self.layer != Layer::FIRST {
            return self.map_aliases(number, mask, young);
        }
        let chunk = self.cache.chunks.get_mut(number / W as u64);
        let chunk = chunk.expect("pages are cached");
        chunk.change_flags(number as usize % W, |flags| {
            flags.mapped |= mask;
            flags.young |= young;
        });
    }

    #[inline(always)]
    fn touch(&mut self, index: PageIndex) -> bool {
        let index = index + self.first;
        if self.layer != Layer::FIRST {
            return self.touch_alias(index);
        }
        let Some(chunk) = self.cache.chunks.get(index.0 / chunk_pages(W)) else { return false };
        let (offset, bit) = ((index.0 % chunk_pages(W)) as usize, 1 << (index.0 % WORD_PAGES));
        let Some(Flags { mapped, young, copied, .. }) = chunk.known_flags(offset / WORD) else {
            return false;
        };
        if mapped & !young & bit != 0 {
            self.make_young(index);
        }
        (mapped | copied) & bit != 0
    }

    fn words_with_entries(&self, from: PageIndex, end: PageIndex) -> Vec<u64> {
        let row = (from + self.first, end + self.first);
        let words = match self.layer {
            Layer::FIRST => self.cache.chunks.words_with_entries(row.0, row.1),
            layer => self.cache.aliases.words(row.0, row.1, layer),
        };
        words.into_iter().map(|word| word - self.first.0 / WORD_PAGES).collect()
    }

    fn unmap(&mut self, word: u64, mask: u64) -> UnmappedPages {
        let number = self.global_word(word);
        if self.layer != Layer::FIRST {
            return self.cache.aliases.unmap(number, self.layer, mask);
        }
        let chunk_number = number / W as u64;
        let cache = &mut *self.cache;
        let Some(chunk) = cache.chunks.get_mut(chunk_number) else {
            return UnmappedPages::default();
        };
        let unmapped = chunk.unmap(number as usize % W, mask);
        if chunk.is_empty() {
            cache.retired.push_back((cache.clock, chunk_number));
        }
        unmapped
    }

    fn make_old(&mut self, word: u64, mask: u64) -> u64 {
        let number = self.global_word(word);
        if self.layer != Layer::FIRST {
            return self.cache.aliases.make_old(number, self.layer, mask);
        }
        let mut young = 0;
        if let Some(chunk) = self.cache.chunks.get_mut(number / W as u64) {
            chunk.change_known_flags(number as usize % W, |flags| {
                young = flags.accessed(mask);
                flags.young &= !mask;
            });
        }
        young
    }

    fn copy(&mut self, index: PageIndex) -> bool {
        let index = index + self.first;
        if self.layer != Layer::FIRST {
            return self.cache.aliases.copy(index, self.layer);
        }
        let chunk = self.cache.chunks.get_or_allocate(index.0 / chunk_pages(W));
        chunk.copy((index.0 % chunk_pages(W)) as usize)
    }
}
