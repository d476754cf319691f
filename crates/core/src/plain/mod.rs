//! The page cache page by page: slow, and simple enough to be read as the definition.

mod file;
mod page_cache;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::address::entries::Layer;
use crate::address::reverse_map::ReverseMap;
use crate::cache::{WORD_PAGES, in_leaf};
use crate::decision::{EvictionRun, Log};
use crate::lru::lists::{Lists, Scan, Shrunk};
use crate::lru::reclaim::{self, Referenced, Verdict};
use crate::lru::statistics::Known;
use crate::lru::workingset;
use crate::units::{FileId, Order, PageCount, PageIndex};

/// A page of a file.
type Page = (FileId, PageIndex);

/// A page cache that stores each page and each folio by itself.
#[derive(Debug)]
pub struct PlainCache {
    /// By their first pages.
    folios: BTreeMap<Page, State>,
    mapped: BTreeSet<(Page, Layer)>,
    young: BTreeSet<(Page, Layer)>,
    copied: BTreeSet<(Page, Layer)>,
    /// The last layer that ever had an entry.
    last_layer: Layer,
    /// First pages of folios, the tail of the list first.
    inactive: VecDeque<Page>,
    active: VecDeque<Page>,
    inactive_pages: u64,
    active_pages: u64,
    /// Cached folios smaller than a word, by the word.
    nodes: BTreeMap<(FileId, u64), u32>,
    /// Evictions and activations so far, in pages.
    clock: u64,
    known: Known,
    shadows: BTreeMap<Page, Shadow>,
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
    /// It returns to the active list, however much was evicted since.
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
            known: Known::default(),
            shadows: BTreeMap::new(),
            capacity: capacity.map_or(u64::MAX, |pages| pages.0),
        }
    }

    fn find(&self, (file, index): Page) -> Option<(PageIndex, State)> {
        let (&(of, head), &state) = self.folios.range(..=(file, index)).next_back()?;
        let holds = of == file && index < head + PageCount(state.order.pages());
        holds.then_some((head, state))
    }

    fn state(&mut self, head: Page) -> &mut State {
        self.folios.get_mut(&head).expect("a listed folio is cached")
    }

    fn layers(&self) -> impl Iterator<Item = Layer> + use<> {
        (0..=self.last_layer.0).map(Layer)
    }

    /// Clears the accessed bits of a folio's entries where they are believed, and says what they
    /// were.
    fn take_young<'a>(
        &mut self,
        (file, head): Page,
        order: Order,
        mappings: &'a ReverseMap,
    ) -> Referenced<'a> {
        let mappings = mappings.of(file);
        let mut referenced = Referenced::new(mappings);
        for layer in self.layers() {
            for page in pages_of(head, order) {
                let (word, bit) = (page.0 / WORD_PAGES, 1 << (page.0 % WORD_PAGES));
                let believed = mappings.believed_mask(layer, word) & bit != 0;
                if believed && self.young.remove(&((file, page), layer)) {
                    referenced.add(layer, word, bit);
                }
            }
        }
        referenced
    }

    fn add_folio(&mut self, (file, head): Page, order: Order, marked: bool) {
        let mut state = State { order, locked: true, marked, ..State::default() };
        if in_leaf(order) {
            *self.nodes.entry((file, head.0 / WORD_PAGES)).or_default() += 1;
        }
        let mut shadow = None;
        for page in pages_of(head, order) {
            let left = self.shadows.remove(&(file, page));
            let kept = |left: &Shadow| {
                left.returns || workingset::is_kept(self.clock, left.clock, self.capacity)
            };
            shadow = left.filter(kept).or(shadow);
        }
        let active = self.known.statistics.active;
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

    /// Puts a folio at the head of the list that it belongs to.
    fn push(&mut self, head: Page, state: State) {
        self.folios.insert(head, state);
        if state.active {
            self.active.push_back(head);
            self.active_pages += state.order.pages();
        } else {
            self.inactive.push_back(head);
            self.inactive_pages += state.order.pages();
        }
    }

    /// Takes a folio from its list.
    fn unlist(&mut self, head: Page, state: State) {
        let (list, pages) = if state.active {
            (&mut self.active, &mut self.active_pages)
        } else {
            (&mut self.inactive, &mut self.inactive_pages)
        };
        list.retain(|&listed| listed != head);
        *pages -= state.order.pages();
    }

    /// A folio leaves the cache, and its pages their shadows.
    fn evict(&mut self, (file, head): Page, state: State) {
        self.remove((file, head), state);
        for page in pages_of(head, state.order) {
            let shadow = Shadow { clock: self.clock, workingset: state.workingset, returns: false };
            self.shadows.insert((file, page), shadow);
        }
        self.clock += state.order.pages();
    }

    /// Pages of a folio that have an entry.
    fn mapped_pages(&self, (file, head): Page, order: Order) -> PageCount {
        let is_mapped = |page: &PageIndex| {
            self.layers().any(|layer| self.mapped.contains(&((file, *page), layer)))
        };
        PageCount(pages_of(head, order).filter(is_mapped).count() as u64)
    }

    /// A folio leaves the cache with its entries.
    fn remove(&mut self, (file, head): Page, state: State) {
        self.folios.remove(&(file, head));
        if let Entry::Occupied(mut folios) = self.nodes.entry((file, head.0 / WORD_PAGES))
            && in_leaf(state.order)
        {
            *folios.get_mut() -= 1;
            if *folios.get() == 0 {
                folios.remove();
            }
        }
        for page in pages_of(head, state.order) {
            for layer in self.layers() {
                self.mapped.remove(&((file, page), layer));
                self.young.remove(&((file, page), layer));
            }
        }
    }

    fn is_mapped(&self, (file, head): Page, order: Order) -> bool {
        let mut entries = pages_of(head, order)
            .flat_map(|page| self.layers().map(move |layer| ((file, page), layer)));
        entries.any(|entry| self.mapped.contains(&entry))
    }

    fn judge(&mut self, head: Page, state: State, mappings: &ReverseMap) -> Verdict {
        let young = self.take_young(head, state.order, mappings);
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

fn pages_of(head: PageIndex, order: Order) -> impl Iterator<Item = PageIndex> {
    (head.0..head.0 + order.pages()).map(PageIndex)
}

impl Lists for PlainCache {
    fn inactive(&self) -> PageCount {
        PageCount(self.inactive_pages)
    }

    fn active(&self) -> PageCount {
        PageCount(self.active_pages)
    }

    fn known(&self) -> Known {
        self.known
    }

    fn known_mut(&mut self) -> &mut Known {
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
            self.push(head, State { active: false, workingset: true, ..state });
        }
    }

    fn shrink(&mut self, scan: Scan, mappings: &ReverseMap, log: &mut impl Log) -> Shrunk {
        let mut shrunk = Shrunk::default();
        let mut run = EvictionRun::default();
        for _ in 0..self.inactive.len() {
            if shrunk.evicted >= scan.goal || shrunk.evicted + shrunk.kept >= scan.look {
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
                Verdict::Evict => {
                    shrunk.unmapped += self.mapped_pages(head, state.order);
                    self.evict(head, state);
                    run.push(head.0, head.1, pages, log);
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
