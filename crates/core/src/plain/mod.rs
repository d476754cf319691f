//! A page cache kept page by page: slow, and simple enough to serve as the reference.

mod file;
mod page_cache;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::address::entries::Layer;
use crate::address::reverse_map::ReverseMap;
use crate::cache::{WORD_PAGES, fits_in_leaf};
use crate::decision::{EvictionRun, Log};
use crate::lru::lists::{LruLists, Scan, ShrinkStats};
use crate::lru::reclaim::{self, FolioVerdict, Referenced};
use crate::lru::statistics::LruvecStats;
use crate::lru::workingset;
use crate::units::{FileId, Order, PageCount, PageIndex};

/// A page of a file.
type FilePage = (FileId, PageIndex);

/// A page cache that stores each page and folio separately.
#[derive(Debug)]
pub struct PlainCache {
    /// Keyed by first page.
    folios: BTreeMap<FilePage, FolioState>,
    mapped: BTreeSet<(FilePage, Layer)>,
    young: BTreeSet<(FilePage, Layer)>,
    copied: BTreeSet<(FilePage, Layer)>,
    /// The last layer that ever had an entry.
    last_layer: Layer,
    /// First pages of folios, the tail of the list first.
    inactive: VecDeque<FilePage>,
    active: VecDeque<FilePage>,
    inactive_pages: u64,
    active_pages: u64,
    /// Cached folios smaller than a word, by the word.
    nodes: BTreeMap<(FileId, u64), u32>,
    /// Evictions and activations so far, in pages.
    clock: u64,
    known: LruvecStats,
    shadows: BTreeMap<FilePage, PageShadow>,
    capacity: u64,
}

impl Default for PlainCache {
    fn default() -> Self {
        PlainCache::new(None)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct FolioState {
    order: Order,
    locked: bool,
    marked: bool,
    workingset: bool,
    referenced: bool,
    active: bool,
}

/// The shadow of an evicted page.
#[derive(Clone, Copy, Debug)]
struct PageShadow {
    clock: u64,
    workingset: bool,
    /// It returns to the active list regardless of later evictions.
    returns: bool,
}

impl PlainCache {
    /// An empty cache that never holds more than `capacity` pages.
    pub fn new(capacity: Option<PageCount>) -> PlainCache {
        PlainCache {
            folios: BTreeMap::new(),
            mapped: BTreeSet::new(),
            young: BTreeSet::new(),
            copied: BTreeSet::new(),
            last_layer: Layer::FIRST,
            inactive: VecDeque::new(),
            active: VecDeque::new(),
            inactive_pages: 0,
            active_pages: 0,
            nodes: BTreeMap::new(),
            clock: 0,
            known: LruvecStats::default(),
            shadows: BTreeMap::new(),
            capacity: capacity.map_or(u64::MAX, |pages| pages.0),
        }
    }

    fn find(&self, (file, index): FilePage) -> Option<(PageIndex, FolioState)> {
        let (&(found_file, head), &state) = self.folios.range(..=(file, index)).next_back()?;
        let holds = found_file == file && index < head + PageCount(state.order.pages());
        holds.then_some((head, state))
    }

    fn state(&mut self, head: FilePage) -> &mut FolioState {
        self.folios.get_mut(&head).expect("a listed folio is cached")
    }

    fn layers(&self) -> impl Iterator<Item = Layer> + use<> {
        (0..=self.last_layer.0).map(Layer)
    }

    /// Clears and returns the accessed bits of a folio in mappings with recency.
    fn take_young<'a>(
        &mut self,
        (file, head): FilePage,
        order: Order,
        mappings: &'a ReverseMap,
    ) -> Referenced<'a> {
        let mappings = mappings.file(file);
        let mut referenced = Referenced::new(mappings);
        for layer in self.layers() {
            for page in folio_pages(head, order) {
                let (word, bit) = (page.0 / WORD_PAGES, 1 << (page.0 % WORD_PAGES));
                let recency = mappings.recency_mask(layer, word) & bit != 0;
                if recency && self.young.remove(&((file, page), layer)) {
                    referenced.add(layer, word, bit);
                }
            }
        }
        referenced
    }

    fn add_folio(&mut self, (file, head): FilePage, order: Order, marked: bool) {
        let mut state = FolioState { order, locked: true, marked, ..FolioState::default() };
        if fits_in_leaf(order) {
            *self.nodes.entry((file, head.0 / WORD_PAGES)).or_default() += 1;
        }
        let mut shadow = None;
        for page in folio_pages(head, order) {
            let left = self.shadows.remove(&(file, page));
            let kept = |left: &PageShadow| {
                left.returns || workingset::is_kept(self.clock, left.clock, self.capacity)
            };
            shadow = left.filter(kept).or(shadow);
        }
        let active = self.known.sizes.active;
        if let Some(shadow) = shadow
            && (shadow.returns || workingset::is_recent(self.clock, shadow.clock, active))
        {
            state.active = true;
            state.workingset = shadow.workingset;
            self.clock += order.pages();
            self.known.refaults.count(PageCount(order.pages()));
        }
        self.push((file, head), state);
    }

    /// Adds a folio at the head of its list.
    fn push(&mut self, head: FilePage, state: FolioState) {
        self.folios.insert(head, state);
        if state.active {
            self.active.push_back(head);
            self.active_pages += state.order.pages();
        } else {
            self.inactive.push_back(head);
            self.inactive_pages += state.order.pages();
        }
    }

    /// Removes a folio from its list.
    fn unlist(&mut self, head: FilePage, state: FolioState) {
        let (list, pages) = if state.active {
            (&mut self.active, &mut self.active_pages)
        } else {
            (&mut self.inactive, &mut self.inactive_pages)
        };
        list.retain(|&listed| listed != head);
        *pages -= state.order.pages();
    }

    /// Evicts a folio, leaving shadows.
    fn evict(&mut self, (file, head): FilePage, state: FolioState) {
        self.remove((file, head), state);
        for page in folio_pages(head, state.order) {
            let shadow =
                PageShadow { clock: self.clock, workingset: state.workingset, returns: false };
            self.shadows.insert((file, page), shadow);
        }
        self.clock += state.order.pages();
    }

    /// Number of mapped pages of a folio.
    fn mapped_pages(&self, (file, head): FilePage, order: Order) -> PageCount {
        let is_mapped = |page: &PageIndex| {
            self.layers().any(|layer| self.mapped.contains(&((file, *page), layer)))
        };
        PageCount(folio_pages(head, order).filter(is_mapped).count() as u64)
    }

    /// Removes a folio and its page-table entries.
    fn remove(&mut self, (file, head): FilePage, state: FolioState) {
        self.folios.remove(&(file, head));
        if let Entry::Occupied(mut folios) = self.nodes.entry((file, head.0 / WORD_PAGES))
            && fits_in_leaf(state.order)
        {
            *folios.get_mut() -= 1;
            if *folios.get() == 0 {
                folios.remove();
            }
        }
        for page in folio_pages(head, state.order) {
            for layer in self.layers() {
                self.mapped.remove(&((file, page), layer));
                self.young.remove(&((file, page), layer));
            }
        }
    }

    fn is_mapped(&self, (file, head): FilePage, order: Order) -> bool {
        let mut entries = folio_pages(head, order)
            .flat_map(|page| self.layers().map(move |layer| ((file, page), layer)));
        entries.any(|entry| self.mapped.contains(&entry))
    }

    fn judge(&mut self, head: FilePage, state: FolioState, mappings: &ReverseMap) -> FolioVerdict {
        let young = self.take_young(head, state.order, mappings);
        if state.order > Order(0) {
            return reclaim::judge_folio(young.vmas, state.referenced, young.executable);
        }
        let bit = |set: bool| u64::from(set);
        let referenced = bit(state.referenced || young.vmas > 1);
        let verdicts =
            reclaim::judge_pages(1, bit(young.vmas > 0), referenced, bit(young.executable));
        match (verdicts.evict, verdicts.keep) {
            (1, _) => FolioVerdict::Evict,
            (_, 1) => FolioVerdict::Keep,
            _ => FolioVerdict::Activate,
        }
    }
}

fn folio_pages(head: PageIndex, order: Order) -> impl Iterator<Item = PageIndex> {
    (head.0..head.0 + order.pages()).map(PageIndex)
}

impl LruLists for PlainCache {
    fn inactive(&self) -> PageCount {
        PageCount(self.inactive_pages)
    }

    fn active(&self) -> PageCount {
        PageCount(self.active_pages)
    }

    fn lruvec_stats(&self) -> LruvecStats {
        self.known
    }

    fn lruvec_stats_mut(&mut self) -> &mut LruvecStats {
        &mut self.known
    }

    fn age(&mut self, pages: PageCount, mappings: &ReverseMap) {
        let mut moved = 0;
        for _ in 0..self.active.len() {
            if moved >= pages.0 {
                return;
            }
            let head = self.active.pop_front().expect("the list is as long as it was");
            let state = *self.state(head);
            self.active_pages -= state.order.pages();
            if self.take_young(head, state.order, mappings).executable {
                self.push(head, state);
                self.clock += state.order.pages();
                continue;
            }
            moved += state.order.pages();
            self.push(head, FolioState { active: false, workingset: true, ..state });
        }
    }

    fn shrink(&mut self, scan: Scan, mappings: &ReverseMap, log: &mut impl Log) -> ShrinkStats {
        let mut shrunk = ShrinkStats::default();
        let mut run = EvictionRun::default();
        for _ in 0..self.inactive.len() {
            if shrunk.evicted >= scan.goal || shrunk.evicted + shrunk.kept >= scan.max_scan {
                break;
            }
            let head = self.inactive.pop_front().expect("the list is as long as it was");
            let state = *self.state(head);
            let pages = PageCount(state.order.pages());
            self.inactive_pages -= pages.0;
            if state.locked {
                self.push(head, state);
                shrunk.kept += pages;
                shrunk.locked += pages;
                continue;
            }
            match self.judge(head, state, mappings) {
                FolioVerdict::Evict => {
                    shrunk.unmapped += self.mapped_pages(head, state.order);
                    self.evict(head, state);
                    run.push(head.0, head.1, pages, log);
                    shrunk.evicted += pages;
                }
                FolioVerdict::Keep => {
                    self.push(head, FolioState { referenced: true, ..state });
                    shrunk.kept += pages;
                }
                FolioVerdict::Activate => {
                    self.push(head, FolioState { referenced: true, active: true, ..state });
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
