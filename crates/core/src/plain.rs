//! The page cache page by page: slow, and simple enough to be read as the definition.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::cache::{Folio, FolioRun, PageCache, PageWord, Shrunk, WORD_PAGES, in_leaf};
use crate::decision::{EvictionRun, Log};
use crate::reclaim::{self, Referenced, Used, Verdict};
use crate::segments::Layer;
use crate::statistics::Statistics;
use crate::units::{Order, PageCount, PageIndex};
use crate::vma::Mapping;
use crate::workingset;

/// A page cache that stores each page and each folio by itself.
#[derive(Debug)]
pub struct PlainCache {
    folios: BTreeMap<PageIndex, State>,
    mapped: BTreeSet<(PageIndex, Layer)>,
    young: BTreeSet<(PageIndex, Layer)>,
    copied: BTreeSet<(PageIndex, Layer)>,
    /// The layer selected, and the last one that ever was.
    layer: Layer,
    last_layer: Layer,
    /// First pages of folios, the tail of the list first.
    inactive: VecDeque<PageIndex>,
    active: VecDeque<PageIndex>,
    inactive_pages: u64,
    active_pages: u64,
    /// Cached folios smaller than a word, by the word.
    nodes: BTreeMap<u64, u32>,
    /// Evictions and activations so far, in pages.
    clock: u64,
    statistics: Statistics,
    shadows: BTreeMap<PageIndex, Shadow>,
    capacity: u64,
}

impl Default for PlainCache {
    fn default() -> Self {
        PlainCache::new(None)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    order: Order,
    locked: bool,
    marked: bool,
    workingset: bool,
    referenced: bool,
    active: bool,
}

/// What an evicted page leaves behind.
#[derive(Clone, Copy, Debug)]
struct Shadow {
    clock: u64,
    workingset: bool,
}

impl PlainCache {
    /// An empty cache that never holds more than `capacity` pages.
    pub fn new(capacity: Option<PageCount>) -> PlainCache {
        PlainCache {
            folios: BTreeMap::new(),
            mapped: BTreeSet::new(),
            young: BTreeSet::new(),
            copied: BTreeSet::new(),
            layer: Layer::FIRST,
            last_layer: Layer::FIRST,
            inactive: VecDeque::new(),
            active: VecDeque::new(),
            inactive_pages: 0,
            active_pages: 0,
            nodes: BTreeMap::new(),
            clock: 0,
            statistics: Statistics::default(),
            shadows: BTreeMap::new(),
            capacity: capacity.map_or(u64::MAX, |pages| pages.0),
        }
    }

    fn find(&self, index: PageIndex) -> Option<(PageIndex, State)> {
        let (&head, &state) = self.folios.range(..=index).next_back()?;
        (index < head + PageCount(state.order.pages())).then_some((head, state))
    }

    fn state(&mut self, head: PageIndex) -> &mut State {
        self.folios.get_mut(&head).expect("a listed folio is cached")
    }

    fn pages_of(head: PageIndex, order: Order) -> impl Iterator<Item = PageIndex> {
        (head.0..head.0 + order.pages()).map(PageIndex)
    }

    /// Clears the accessed bits of a folio's entries, and says what they were where they are
    /// believed.
    fn take_young<'a>(
        &mut self,
        head: PageIndex,
        order: Order,
        mapping: &'a Mapping,
    ) -> Referenced<'a> {
        let mut referenced = Referenced::new(mapping);
        if mapping.has_recency() {
            for layer in (0..=self.last_layer.0).map(Layer) {
                for page in Self::pages_of(head, order) {
                    if self.young.remove(&(page, layer)) {
                        referenced.add(layer, page.0 / WORD_PAGES, 1 << (page.0 % WORD_PAGES));
                    }
                }
            }
        }
        referenced
    }

    fn add_folio(&mut self, head: PageIndex, order: Order, marked: bool) {
        let mut state = State { order, locked: true, marked, ..State::default() };
        if in_leaf(order) {
            *self.nodes.entry(head.0 / WORD_PAGES).or_default() += 1;
        }
        let mut shadow = None;
        for page in Self::pages_of(head, order) {
            let left = self.shadows.remove(&page);
            let kept = |left: &Shadow| workingset::is_kept(self.clock, left.clock, self.capacity);
            shadow = left.filter(kept).or(shadow);
        }
        if let Some(shadow) = shadow
            && workingset::is_recent(self.clock, shadow.clock, self.statistics.active)
        {
            state.active = true;
            state.workingset = shadow.workingset;
            self.clock += order.pages();
        }
        self.push(head, state);
    }

    /// Puts a folio at the head of the list that it belongs to.
    fn push(&mut self, head: PageIndex, state: State) {
        self.folios.insert(head, state);
        if state.active {
            self.active.push_back(head);
            self.active_pages += state.order.pages();
        } else {
            self.inactive.push_back(head);
            self.inactive_pages += state.order.pages();
        }
    }

    fn evict(&mut self, head: PageIndex, state: State) {
        self.folios.remove(&head);
        if let Entry::Occupied(mut folios) = self.nodes.entry(head.0 / WORD_PAGES)
            && in_leaf(state.order)
        {
            *folios.get_mut() -= 1;
            if *folios.get() == 0 {
                folios.remove();
            }
        }
        for page in Self::pages_of(head, state.order) {
            for layer in (0..=self.last_layer.0).map(Layer) {
                self.mapped.remove(&(page, layer));
                self.young.remove(&(page, layer));
            }
            let shadow = Shadow { clock: self.clock, workingset: state.workingset };
            self.shadows.insert(page, shadow);
        }
        self.clock += state.order.pages();
    }

    fn judge(&mut self, head: PageIndex, state: State, mapping: &Mapping) -> Verdict {
        let young = self.take_young(head, state.order, mapping);
        if state.order > Order(0) {
            return reclaim::judge_folio(young.vmas, state.referenced, young.executable);
        }
        let bit = |set: bool| u64::from(set);
        let referenced = bit(state.referenced || young.vmas > 1);
        let verdicts =
            reclaim::judge_pages(1, bit(young.vmas > 0), referenced, bit(young.executable));
        match (verdicts.evict, verdicts.keep) {
            (1, _) => Verdict::Evict,
            (_, 1) => Verdict::Keep,
            _ => Verdict::Activate,
        }
    }
}

impl PageCache for PlainCache {
    fn select(&mut self, layer: Layer) {
        self.layer = layer;
        self.last_layer = self.last_layer.max(layer);
    }

    fn word(&self, word: u64) -> PageWord {
        let mut bits = PageWord::default();
        for offset in 0..WORD_PAGES {
            let index = PageIndex(word * WORD_PAGES + offset);
            let set = |to: &mut u64, value: bool| *to |= u64::from(value) << offset;
            set(&mut bits.mapped, self.mapped.contains(&(index, self.layer)));
            set(&mut bits.copied, self.copied.contains(&(index, self.layer)));
            if let Some((_, state)) = self.find(index) {
                set(&mut bits.present, true);
                set(&mut bits.locked, state.locked);
                set(&mut bits.marked, state.marked);
                set(&mut bits.workingset, state.workingset);
                set(&mut bits.large, state.order > Order(0));
            }
        }
        bits
    }

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
        let pages = self.folios.iter().flat_map(|(&head, state)| Self::pages_of(head, state.order));
        PageCount(pages.filter(|&page| from <= page && page < end).count() as u64)
    }

    fn add(&mut self, run: FolioRun) {
        for folio in 0..run.folios {
            let head = run.start + PageCount(folio << run.order.0);
            self.add_folio(head, run.order, run.marked == Some(head));
        }
    }

    fn unlock(&mut self, start: PageIndex, pages: PageCount) {
        let end = start + pages;
        for (_, state) in self.folios.range_mut(start..end) {
            state.locked = false;
        }
    }

    fn clear_mark(&mut self, index: PageIndex) {
        if let Some((head, _)) = self.find(index) {
            self.state(head).marked = false;
        }
    }

    fn map(&mut self, word: u64, mask: u64, young: u64) {
        for offset in (0..WORD_PAGES).filter(|offset| mask >> offset & 1 == 1) {
            let index = PageIndex(word * WORD_PAGES + offset);
            self.mapped.insert((index, self.layer));
            if young >> offset & 1 == 1 {
                self.young.insert((index, self.layer));
            }
        }
    }

    fn touch(&mut self, index: PageIndex) -> bool {
        if self.mapped.contains(&(index, self.layer)) {
            self.young.insert((index, self.layer));
            return true;
        }
        self.copied.contains(&(index, self.layer))
    }

    fn copy(&mut self, index: PageIndex) {
        self.mapped.remove(&(index, self.layer));
        self.young.remove(&(index, self.layer));
        self.copied.insert((index, self.layer));
    }

    fn mark_accessed(&mut self, index: PageIndex) {
        let Some((head, state)) = self.find(index) else {
            return;
        };
        match reclaim::used(state.referenced, state.active) {
            Used::Reference => self.state(head).referenced = true,
            Used::Activate => {
                self.inactive.retain(|&listed| listed != head);
                self.inactive_pages -= state.order.pages();
                self.clock += state.order.pages();
                self.push(head, State { active: true, referenced: false, ..state });
            }
        }
    }

    fn inactive(&self) -> PageCount {
        PageCount(self.inactive_pages)
    }

    fn active(&self) -> PageCount {
        PageCount(self.active_pages)
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn flush_statistics(&mut self) {
        self.statistics = Statistics::of(self);
    }

    fn nodes(&self) -> u64 {
        self.nodes.len() as u64
    }

    fn age(&mut self, pages: PageCount, mapping: &Mapping) {
        let mut moved = 0;
        for _ in 0..self.active.len() {
            if moved >= pages.0 {
                return;
            }
            let head = self.active.pop_front().expect("the list is as long as it was");
            let state = *self.state(head);
            self.active_pages -= state.order.pages();
            if self.take_young(head, state.order, mapping).executable {
                self.push(head, state);
                self.clock += state.order.pages();
                continue;
            }
            moved += state.order.pages();
            self.push(head, State { active: false, workingset: true, ..state });
        }
    }

    fn shrink(&mut self, goal: PageCount, mapping: &Mapping, log: &mut impl Log) -> Shrunk {
        let mut shrunk = Shrunk::default();
        let mut run = EvictionRun::default();
        for _ in 0..self.inactive.len() {
            if shrunk.evicted >= goal {
                break;
            }
            let head = self.inactive.pop_front().expect("the list is as long as it was");
            let state = *self.state(head);
            let pages = PageCount(state.order.pages());
            self.inactive_pages -= pages.0;
            if state.locked {
                self.push(head, state);
                shrunk.kept += pages;
                continue;
            }
            match self.judge(head, state, mapping) {
                Verdict::Evict => {
                    self.evict(head, state);
                    run.push(head, pages, log);
                    shrunk.evicted += pages;
                }
                Verdict::Keep => {
                    self.push(head, State { referenced: true, ..state });
                    shrunk.kept += pages;
                }
                Verdict::Activate => {
                    self.push(head, State { referenced: true, active: true, ..state });
                    shrunk.kept += pages;
                    shrunk.activated += pages;
                }
            }
        }
        run.flush(log);
        self.clock += shrunk.activated.0;
        shrunk
    }
}
