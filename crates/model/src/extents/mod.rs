//! The page cache as extents and bitmaps: a window costs by its words, not by its pages.

mod aliases;
mod chunk;
mod chunks;
mod lists;
mod locked;
mod orders;
mod reclaim;
mod shadows;
mod span;

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
use self::chunk::{CHUNK_PAGES, CHUNK_WORDS, Flags};
use self::chunks::Chunks;
use self::lists::{Extent, List, Stale};
use self::locked::Locked;
use self::reclaim::Retired;
use self::shadows::Shadows;
use self::span::by_chunk;

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
    shadows: Shadows,
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
            shadows: Shadows::default(),
            retired: Retired::default(),
        }
    }

    /// Adds base pages, all of them absent, to the list where their last evictions say.
    fn add_base_pages(&mut self, start: u64, end: u64, marked: Option<u64>) {
        let active = self.statistics.active.0;
        let recent = self.clock.saturating_sub(active);
        for (number, span) in by_chunk(start, end) {
            let chunk = self.chunks.get_or_make(number);
            self.nodes += chunk.add(span, Order(0));
            let first = number * CHUNK_PAGES + span.from as u64;
            let pages = span.pages() as u64;
            if active == 0 || !self.shadows.any_since(chunk.evicted, recent) {
                self.inactive.push(Extent { start: first, pages, order: Order(0) });
                continue;
            }
            for page in first..first + pages {
                self.enter(page, Order(0));
            }
        }
        if let Some(marked) = marked {
            self.set_range(marked, marked + 1, |flags, bit| flags.marked |= bit);
        }
    }

    fn add_folio(&mut self, head: u64, order: Order, marked: bool) {
        let end = head + order.pages();
        let mut were_empty = 0;
        for (number, span) in by_chunk(head, end) {
            let chunk = self.chunks.get_or_make(number);
            let had_orders = chunk.keeps_orders();
            were_empty += chunk.add(span, order);
            if !had_orders && chunk.keeps_orders() {
                self.chunks.note_orders();
            }
        }
        self.nodes += if in_leaf(order) { were_empty } else { 0 };
        if marked {
            self.set_range(head, end, |flags, mask| flags.marked |= mask);
        }
        self.enter(head, order);
    }

    /// Puts a folio that was added on the list where its last eviction says.
    fn enter(&mut self, head: u64, order: Order) {
        let extent = Extent { start: head, pages: order.pages(), order };
        let shadow = (head..head + order.pages()).rev().find_map(|page| {
            let chunk = self.chunks.get(page / CHUNK_PAGES)?;
            let shadow = self.shadows.last(chunk.evicted, (page % CHUNK_PAGES) as usize)?;
            workingset::is_kept(self.clock, shadow.0, self.capacity).then_some(shadow)
        });
        match shadow {
            Some((clock, workingset))
                if workingset::is_recent(self.clock, clock, self.statistics.active) =>
            {
                self.clock += order.pages();
                self.set_range(head, head + order.pages(), |flags, mask| {
                    flags.active |= mask;
                    flags.workingset |= if workingset { mask } else { 0 };
                });
                self.active.push(extent);
            }
            _ => self.inactive.push(extent),
        }
    }

    /// Changes the flags of cached pages `from..end`: gets those of each word, and the mask of its
    /// pages.
    fn set_range(&mut self, from: u64, end: u64, mut change: impl FnMut(&mut Flags, u64)) {
        for number in from / WORD_PAGES..end.div_ceil(WORD_PAGES) {
            let mask = word_mask(number, PageIndex(from), PageIndex(end));
            let chunk = self.chunks.get_mut(number / CHUNK_WORDS as u64).expect("pages are cached");
            change(chunk.flags_mut(number as usize % CHUNK_WORDS), mask);
        }
    }

    /// The first page in `from..end` that is cached, or the first that is not, or `end`.
    fn find(&self, from: u64, end: u64, cached: bool) -> u64 {
        for (number, span) in by_chunk(from, end) {
            let found = match self.chunks.get(number) {
                Some(chunk) => chunk.find(span, cached),
                None => (!cached).then_some(span.from),
            };
            if let Some(offset) = found {
                return number * CHUNK_PAGES + offset as u64;
            }
        }
        end
    }
}

impl PageCache for ExtentCache {
    fn select(&mut self, layer: Layer) {
        self.layer = layer;
    }

    fn word(&self, number: u64) -> PageWord {
        let entries = |first: Entries| match self.layer {
            Layer::FIRST => first,
            layer => self.aliases.get(number, layer),
        };
        let Some(chunk) = self.chunks.get(number / CHUNK_WORDS as u64) else {
            let copied = entries(Entries::default()).copied;
            return PageWord { copied, ..PageWord::default() };
        };
        let offset = number as usize % CHUNK_WORDS;
        let present = chunk.present(offset);
        let &Flags { marked, workingset, mapped, young, copied, .. } = chunk.flags(offset);
        let Entries { mapped, copied, .. } = entries(Entries { mapped, young, copied });
        let locked = self.locked.mask(number) & present;
        PageWord { present, locked, marked, workingset, mapped, copied, large: chunk.large(offset) }
    }

    fn folio(&self, index: PageIndex) -> Option<Folio> {
        let chunk = self.chunks.get(index.0 / CHUNK_PAGES)?;
        let offset = (index.0 % CHUNK_PAGES) as usize;
        if !chunk.has(offset) {
            return None;
        }
        let order = chunk.order(offset);
        let locked = self.locked.any(index.0, index.0 + 1);
        let marked = chunk.flags(offset / WORD_PAGES as usize).marked >> (index.0 % WORD_PAGES) & 1;
        Some(Folio { head: index.align_down(order), order, locked, marked: marked == 1 })
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
            let first = PageIndex(number * CHUNK_PAGES);
            let behind = first + PageCount(CHUNK_PAGES);
            if from <= first && behind <= end {
                return chunk.pages();
            }
            if from.max(first) >= end.min(behind) {
                return 0;
            }
            let words = (number * CHUNK_WORDS as u64..).zip(0..CHUNK_WORDS);
            let cached = words.map(|(at, word)| chunk.present(word) & word_mask(at, from, end));
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
            self.set_range(folio.head.0, folio.end().0, |flags, mask| flags.marked &= !mask);
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
        let flags = chunk.flags_mut(number as usize % CHUNK_WORDS);
        flags.mapped |= mask;
        flags.young |= young & mask;
    }

    fn touch(&mut self, index: PageIndex) -> bool {
        if self.layer != Layer::FIRST {
            return self.aliases.touch(index, self.layer);
        }
        let Some(chunk) = self.chunks.get_mut(index.0 / CHUNK_PAGES) else {
            return false;
        };
        let word = (index.0 % CHUNK_PAGES / WORD_PAGES) as usize;
        let bit = 1 << (index.0 % WORD_PAGES);
        let flags = chunk.flags(word);
        if flags.mapped & bit == 0 {
            return flags.copied & bit != 0;
        }
        chunk.flags_mut(word).young |= bit;
        true
    }

    fn copy(&mut self, index: PageIndex) {
        if self.layer != Layer::FIRST {
            return self.aliases.copy(index, self.layer);
        }
        let chunk = self.chunks.get_or_make(index.0 / CHUNK_PAGES);
        chunk.copy((index.0 % CHUNK_PAGES) as usize);
    }

    fn mark_accessed(&mut self, index: PageIndex) {
        let Some(folio) = self.folio(index) else {
            return;
        };
        let (head, end) = (folio.head.0, folio.end().0);
        let chunk = self.chunks.get(head / CHUNK_PAGES).expect("the page is cached");
        let flags = chunk.flags((head % CHUNK_PAGES / WORD_PAGES) as usize);
        let bit = 1 << (head % WORD_PAGES);
        match used(flags.referenced & bit != 0, flags.active & bit != 0) {
            Used::Reference => self.set_range(head, end, |flags, mask| flags.referenced |= mask),
            Used::Activate => {
                self.set_range(head, end, |flags, mask| {
                    flags.referenced &= !mask;
                    flags.active |= mask;
                });
                let pages = folio.order.pages();
                self.clock += pages;
                self.stale.add(head);
                self.inactive.pages -= pages;
                self.active.push(Extent { start: head, pages, order: folio.order });
            }
        }
    }

    fn held_bytes(&self) -> u64 {
        let lists = self.inactive.held_bytes() + self.active.held_bytes();
        self.chunks.held_bytes() + lists + self.shadows.held_bytes()
    }

    fn inactive(&self) -> PageCount {
        PageCount(self.inactive.pages)
    }

    fn active(&self) -> PageCount {
        PageCount(self.active.pages)
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn flush_statistics(&mut self) {
        self.statistics = Statistics::of(self);
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
