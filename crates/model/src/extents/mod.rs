//! The page cache as extents and bitmaps: a window costs by its words, not by its pages.

mod aliases;
mod chunk;
mod chunks;
mod lists;
mod locked;
mod reclaim;

use filemap_core::cache::{
    Folio, FolioRun, PageCache, PageWord, Shrunk, WORD_PAGES, in_leaf, word_mask,
};
use filemap_core::decision::Log;
use filemap_core::reclaim::{Used, used};
use filemap_core::segments::Layer;
use filemap_core::statistics::Statistics;
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_core::vma::Mapping;
use filemap_core::workingset;

use self::aliases::{Aliases, Entries};
use self::chunk::{CHUNK_PAGES, CHUNK_WORDS};
use self::chunks::Chunks;
use self::lists::{Extent, List, Stale};
use self::locked::Locked;
use self::reclaim::Retired;

/// The page cache of the model.
///
/// Pages are bits in chunks of 2048; the reclaim lists are extents of folios of one order. Memory
/// grows with what is cached and what was evicted lately.
#[derive(Debug)]
pub struct ExtentCache {
    chunks: Chunks,
    /// The layer whose entries are spoken of. Those of the first are in the chunks.
    layer: Layer,
    aliases: Aliases,
    inactive: List,
    active: List,
    stale: Stale,
    locked: Locked,
    /// Words of which a page is cached in a folio smaller than a word.
    nodes: u64,
    /// Evictions and activations so far, in pages.
    clock: u64,
    statistics: Statistics,
    /// No list is ever longer, so older evictions cannot matter.
    capacity: u64,
    retired: Retired,
}

impl ExtentCache {
    /// An empty cache that never holds more than `capacity` pages.
    pub fn new(capacity: Option<PageCount>) -> ExtentCache {
        ExtentCache {
            chunks: Chunks::default(),
            layer: Layer::FIRST,
            aliases: Aliases::default(),
            inactive: List::default(),
            active: List::default(),
            stale: Stale::default(),
            locked: Locked::default(),
            nodes: 0,
            clock: 0,
            statistics: Statistics::default(),
            capacity: capacity.map_or(u64::MAX, |pages| pages.0),
            retired: Retired::default(),
        }
    }

    /// The entries of the layer selected, where they are not in the chunks.
    fn entries(&self, word: u64) -> Option<Entries> {
        (self.layer != Layer::FIRST).then(|| self.aliases.get(word, self.layer))
    }

    /// Adds base pages, all of them absent.
    fn add_base_pages(&mut self, start: u64, end: u64, marked: Option<u64>) {
        let mut next = start;
        while next < end {
            let number = next / CHUNK_PAGES;
            let stop = end.min((number + 1) * CHUNK_PAGES);
            let chunk = self.chunks.get_or_make(number);
            chunk.present += (stop - next) as u32;
            let first = (next % CHUNK_PAGES / WORD_PAGES) as usize;
            let last = ((stop - 1) % CHUNK_PAGES / WORD_PAGES) as usize;
            let (from_first, to_last) = (u64::MAX << (next % WORD_PAGES), bits_to(stop - 1));
            let mut nodes = 0;
            for (word, number) in chunk.words[first..=last].iter_mut().zip(first..) {
                let from = if number == first { from_first } else { u64::MAX };
                let to = if number == last { to_last } else { u64::MAX };
                nodes += u64::from(word.present == 0);
                word.present |= from & to;
            }
            self.nodes += nodes;
            chunk.set_order((next % CHUNK_PAGES) as usize, (stop - next) as usize, Order(0));
            next = stop;
        }
        if let Some(marked) = marked {
            self.set_word(marked, |word, bit| word.marked |= bit);
        }
        let mut next = start;
        while next < end {
            let stop = end.min((next / CHUNK_PAGES + 1) * CHUNK_PAGES);
            self.enter_base_pages(next, stop);
            next = stop;
        }
    }

    /// Puts base pages of one chunk on the list where their last evictions say.
    fn enter_base_pages(&mut self, start: u64, end: u64) {
        let active = self.statistics.active.0;
        let recent = self.clock.saturating_sub(active);
        let chunk = self.chunks.get(start / CHUNK_PAGES).expect("the pages were added");
        if active == 0 || !chunk.has_shadow_since(recent) {
            self.inactive.push(Extent { start, pages: end - start, order: Order(0) });
            return;
        }
        for page in start..end {
            self.enter(page, Order(0));
        }
    }

    fn add_folio(&mut self, head: u64, order: Order, marked: bool) {
        let end = head + order.pages();
        let mut next = head;
        while next < end {
            let number = next / CHUNK_PAGES;
            let stop = end.min((number + 1) * CHUNK_PAGES);
            let chunk = self.chunks.get_or_make(number);
            chunk.present += (stop - next) as u32;
            chunk.set_order((next % CHUNK_PAGES) as usize, (stop - next) as usize, order);
            next = stop;
        }
        let mut nodes = 0;
        self.set_range(head, end, |word, mask| {
            nodes += u64::from(word.present == 0);
            word.present |= mask;
            word.marked |= if marked { mask } else { 0 };
        });
        self.nodes += if in_leaf(order) { nodes } else { 0 };
        self.enter(head, order);
    }

    /// Puts a folio that was added on the list where its last eviction says.
    fn enter(&mut self, head: u64, order: Order) {
        let extent = Extent { start: head, pages: order.pages(), order };
        let shadow = (head..head + order.pages()).rev().find_map(|page| {
            let chunk = self.chunks.get(page / CHUNK_PAGES)?;
            let shadow = chunk.shadow((page % CHUNK_PAGES) as u16)?;
            workingset::is_kept(self.clock, shadow.0, self.capacity).then_some(shadow)
        });
        match shadow {
            Some((clock, workingset))
                if workingset::is_recent(self.clock, clock, self.statistics.active) =>
            {
                self.clock += order.pages();
                self.set_range(head, head + order.pages(), |word, mask| {
                    word.active |= mask;
                    word.workingset |= if workingset { mask } else { 0 };
                });
                self.active.push(extent);
            }
            _ => self.inactive.push(extent),
        }
    }

    /// Changes the words of cached pages `from..end`; gets each word and the mask of the pages.
    fn set_range(&mut self, from: u64, end: u64, mut change: impl FnMut(&mut chunk::Word, u64)) {
        for number in from / WORD_PAGES..end.div_ceil(WORD_PAGES) {
            let mask = word_mask(number, PageIndex(from), PageIndex(end));
            let chunk = self.chunks.get_mut(number / CHUNK_WORDS as u64).expect("pages are cached");
            change(&mut chunk.words[number as usize % CHUNK_WORDS], mask);
        }
    }

    fn set_word(&mut self, page: u64, change: impl FnOnce(&mut chunk::Word, u64)) {
        if let Some(chunk) = self.chunks.get_mut(page / CHUNK_PAGES) {
            let word = &mut chunk.words[(page % CHUNK_PAGES / WORD_PAGES) as usize];
            change(word, 1 << (page % WORD_PAGES));
        }
    }

    /// The first page in `from..end` whose presence is `present`, or `end`.
    fn find(&self, from: u64, end: u64, present: bool) -> u64 {
        let mut next = from;
        while next < end {
            let number = next / CHUNK_PAGES;
            let stop = end.min((number + 1) * CHUNK_PAGES);
            let cached = self.chunks.get(number).filter(|chunk| chunk.present > 0);
            let Some(chunk) = cached else {
                if !present {
                    return next;
                }
                next = stop;
                continue;
            };
            while next < stop {
                let bits = chunk.words[(next % CHUNK_PAGES / WORD_PAGES) as usize].present;
                let wanted = (if present { bits } else { !bits }) >> (next % WORD_PAGES);
                if wanted != 0 {
                    return (next + u64::from(wanted.trailing_zeros())).min(end);
                }
                next = (next / WORD_PAGES + 1) * WORD_PAGES;
            }
            next = next.min(stop);
        }
        end
    }
}

impl PageCache for ExtentCache {
    fn select(&mut self, layer: Layer) {
        self.layer = layer;
    }

    fn word(&self, number: u64) -> PageWord {
        let entries = self.entries(number);
        let Some(chunk) = self.chunks.get(number / CHUNK_WORDS as u64) else {
            return PageWord { copied: entries.map_or(0, |e| e.copied), ..PageWord::default() };
        };
        let offset = number as usize % CHUNK_WORDS;
        let word = &chunk.words[offset];
        PageWord {
            present: word.present,
            locked: self.locked.mask(number) & word.present,
            marked: word.marked,
            workingset: word.workingset,
            mapped: entries.map_or(word.mapped, |entries| entries.mapped),
            copied: entries.map_or(word.copied, |entries| entries.copied),
            large: chunk.large(offset),
        }
    }

    fn folio(&self, index: PageIndex) -> Option<Folio> {
        let chunk = self.chunks.get(index.0 / CHUNK_PAGES)?;
        let offset = (index.0 % CHUNK_PAGES) as usize;
        let word = &chunk.words[offset / WORD_PAGES as usize];
        let bit = 1 << (index.0 % WORD_PAGES);
        if word.present & bit == 0 {
            return None;
        }
        let order = chunk.order(offset);
        let locked = self.locked.any(index.0, index.0 + 1);
        Some(Folio { head: index.align_down(order), order, locked, marked: word.marked & bit != 0 })
    }

    fn next_absent(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        PageIndex(self.find(from.0, end.0, false))
    }

    fn next_present(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        PageIndex(self.find(from.0, end.0, true))
    }

    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex> {
        let mut word = last.0 / WORD_PAGES;
        let mut mask = word_mask(word, floor, last + PageCount(1));
        loop {
            let absent = !self.word(word).present & mask;
            if absent != 0 {
                return Some(PageIndex(word * WORD_PAGES + u64::from(absent.ilog2())));
            }
            if word <= floor.0 / WORD_PAGES {
                return None;
            }
            word -= 1;
            mask = word_mask(word, floor, last);
        }
    }

    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount {
        let pages = self.chunks.iter().map(|(number, chunk)| {
            let first = number * CHUNK_WORDS as u64;
            let words = (first..).zip(&chunk.words);
            let cached = words.map(|(word, bits)| bits.present & word_mask(word, from, end));
            cached.map(|pages| u64::from(pages.count_ones())).sum::<u64>()
        });
        PageCount(pages.sum())
    }

    fn add(&mut self, run: FolioRun) {
        let (start, end) = (run.start.0, run.end().0);
        self.locked.insert(start, end);
        if run.order == Order(0) {
            self.add_base_pages(start, end, run.marked.map(|marked| marked.0));
            return;
        }
        for folio in 0..run.folios {
            let head = start + (folio << run.order.0);
            self.add_folio(head, run.order, run.marked == Some(PageIndex(head)));
        }
    }

    fn unlock(&mut self, start: PageIndex, _: PageCount) {
        self.locked.remove_first(start.0);
    }

    fn clear_mark(&mut self, index: PageIndex) {
        if let Some(folio) = self.folio(index) {
            self.set_range(folio.head.0, folio.end().0, |word, mask| word.marked &= !mask);
        }
    }

    fn map(&mut self, number: u64, mask: u64, young: u64) {
        if self.layer != Layer::FIRST {
            let entries = self.aliases.get_or_make(number, self.layer);
            entries.mapped |= mask;
            entries.young |= young & mask;
            return;
        }
        let chunk = self.chunks.get_mut(number / CHUNK_WORDS as u64).expect("pages are cached");
        let word = &mut chunk.words[number as usize % CHUNK_WORDS];
        word.mapped |= mask;
        word.young |= young & mask;
    }

    fn touch(&mut self, index: PageIndex) -> bool {
        if self.layer != Layer::FIRST {
            return self.aliases.touch(index, self.layer);
        }
        let Some(chunk) = self.chunks.get_mut(index.0 / CHUNK_PAGES) else {
            return false;
        };
        let word = &mut chunk.words[(index.0 % CHUNK_PAGES / WORD_PAGES) as usize];
        let bit = 1 << (index.0 % WORD_PAGES);
        word.young |= word.mapped & bit;
        (word.mapped | word.copied) & bit != 0
    }

    fn copy(&mut self, index: PageIndex) {
        if self.layer != Layer::FIRST {
            return self.aliases.copy(index, self.layer);
        }
        let chunk = self.chunks.get_or_make(index.0 / CHUNK_PAGES);
        chunk.copied += 1;
        self.set_word(index.0, |word, bit| {
            word.mapped &= !bit;
            word.young &= !bit;
            word.copied |= bit;
        });
    }

    fn mark_accessed(&mut self, index: PageIndex) {
        let Some(folio) = self.folio(index) else {
            return;
        };
        let (head, end) = (folio.head.0, folio.end().0);
        let word = self.chunks.get(head / CHUNK_PAGES).expect("the page is cached").words
            [(head % CHUNK_PAGES / WORD_PAGES) as usize];
        let bit = 1 << (head % WORD_PAGES);
        match used(word.referenced & bit != 0, word.active & bit != 0) {
            Used::Reference => self.set_range(head, end, |word, mask| word.referenced |= mask),
            Used::Activate => {
                self.set_range(head, end, |word, mask| {
                    word.referenced &= !mask;
                    word.active |= mask;
                });
                let pages = folio.order.pages();
                self.clock += pages;
                self.stale.add(head);
                self.inactive.pages -= pages;
                self.active.push(Extent { start: head, pages, order: folio.order });
            }
        }
    }

    fn inactive(&self) -> PageCount {
        PageCount(self.inactive.pages)
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn flush_statistics(&mut self) {
        self.statistics = Statistics::of(self);
    }

    fn active(&self) -> PageCount {
        PageCount(self.active.pages)
    }

    fn nodes(&self) -> u64 {
        self.nodes
    }

    fn age(&mut self, pages: PageCount, mapping: &Mapping) {
        self.age_active(pages.0, mapping);
    }

    fn shrink(&mut self, goal: PageCount, mapping: &Mapping, log: &mut impl Log) -> Shrunk {
        self.shrink_inactive(goal.0, mapping, log)
    }
}

/// The bits of a word up to that of `page`.
fn bits_to(page: u64) -> u64 {
    u64::MAX >> (WORD_PAGES - 1 - page % WORD_PAGES)
}
