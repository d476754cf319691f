//! Counters against a plain map of who maps which pages, on random histories.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::support::{Random, folio, mm};
use filemap_mapcount::sums::Sums;
use filemap_mapcount::{
    Change, Folio, Mapcount, MmId, MmIds, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners,
};
use proptest::prelude::*;

const ORDER: u32 = 3;
const PAGES: usize = 1 << ORDER;
const MMS: usize = 5;

/// What one of the mms does.
#[derive(Clone, Debug)]
enum Act {
    /// Maps the pages of the range that it has not mapped, in batches.
    Map(Range<usize>),
    /// Unmaps those that it has.
    Unmap(Range<usize>),
    MapEntirely,
    UnmapEntirely,
    /// Unmaps everything. Another mm comes, with an id that may be the same.
    Exit,
}

/// The truth: who maps which pages.
#[derive(Default)]
struct Truth(BTreeMap<u32, ([bool; PAGES], u32)>);

impl Truth {
    fn of(&mut self, id: MmId) -> &mut ([bool; PAGES], u32) {
        self.0.entry(id.get()).or_default()
    }

    fn mappings(&self, id: &u32) -> u32 {
        let (pages, entire) = &self.0[id];
        pages.iter().filter(|&&mapped| mapped).count() as u32 + entire
    }

    fn page(&self, page: usize) -> u32 {
        self.0.values().map(|(pages, entire)| u32::from(pages[page]) + entire).sum()
    }

    fn entire(&self) -> u32 {
        self.0.values().map(|(_, entire)| entire).sum()
    }

    fn mapping(&self) -> Vec<u32> {
        self.0.keys().filter(|id| self.mappings(id) > 0).copied().collect()
    }
}

/// The parts of `range` whose pages are `mapped`.
fn batches(pages: &[bool; PAGES], range: Range<usize>, mapped: bool) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for page in range.filter(|&page| pages[page] == mapped) {
        match found.last_mut() {
            Some(last) if last.end == page => last.end += 1,
            _ => found.push(page..page + 1),
        }
    }
    found
}

struct Run<C: Mapcount> {
    folio: Folio<C>,
    truth: Truth,
    ids: MmIds,
    mms: Vec<MmId>,
    mapped: i64,
}

impl<C: Mapcount> Run<C> {
    fn new() -> Run<C> {
        // One id more than mms, so that ids come back soon.
        let ids = MmIds::new(MMS as u32 + 1).expect("so many are possible");
        let mms = (0..MMS).map(|_| ids.allocate().expect("one is left")).collect();
        Run { folio: folio(ORDER), truth: Truth::default(), ids, mms, mapped: 0 }
    }

    fn act(&mut self, index: usize, act: Act) {
        let mm = self.mms[index];
        match act {
            Act::Map(range) => self.map(mm, range),
            Act::Unmap(range) => self.unmap(mm, range),
            Act::MapEntirely => {
                self.truth.of(mm).1 += 1;
                let change = self.folio.map_entirely(mm);
                self.keep(change);
            }
            Act::UnmapEntirely if self.truth.of(mm).1 > 0 => {
                self.truth.of(mm).1 -= 1;
                let change = self.folio.unmap_entirely(mm);
                self.keep(change);
            }
            Act::UnmapEntirely => {}
            Act::Exit => {
                while self.truth.of(mm).1 > 0 {
                    self.act(index, Act::UnmapEntirely);
                }
                self.unmap(mm, 0..PAGES);
                self.ids.release(mm);
                self.mms[index] = self.ids.allocate().expect("one is left");
            }
        }
    }

    fn map(&mut self, mm: MmId, range: Range<usize>) {
        for batch in batches(&self.truth.of(mm).0, range, false) {
            self.truth.of(mm).0[batch.clone()].fill(true);
            let change = self.folio.map(mm, batch);
            self.keep(change);
        }
    }

    fn unmap(&mut self, mm: MmId, range: Range<usize>) {
        for batch in batches(&self.truth.of(mm).0, range, true) {
            self.truth.of(mm).0[batch.clone()].fill(false);
            let change = self.folio.unmap(mm, batch);
            self.keep(change);
            // What is said to be mapped in part is.
            let some = (0..PAGES).filter(|&page| self.truth.page(page) > 0).count();
            assert!(!change.in_part || (1..PAGES).contains(&some));
        }
    }

    fn keep(&mut self, change: Change) {
        self.mapped += change.pages;
    }

    fn check(&self, pages_have_counts: bool, exact: bool) {
        let counts = self.folio.counts();
        let mapping = self.truth.mapping();
        let all: u32 = mapping.iter().map(|id| self.truth.mappings(id)).sum();
        assert_eq!(counts.mappings(), all);
        assert_eq!(counts.entire_mappings(), self.truth.entire());
        let seen = (0..PAGES).filter(|&page| self.truth.page(page) > 0).count();
        if pages_have_counts {
            let pages = (0..PAGES).map(|page| self.folio.page_mappings(page));
            assert!(pages.eq((0..PAGES).map(|page| self.truth.page(page))));
            assert_eq!(self.mapped, seen as i64);
        } else {
            assert_eq!(self.mapped, if seen > 0 { PAGES as i64 } else { 0 });
        }
        let says = |id: &u32| counts.owned_by(mm(*id));
        let owned: Vec<u32> = (1..=MMS as u32 + 1).filter(|id| says(id).is_some()).collect();
        assert!(counts.maybe_shared() || mapping.len() <= 1);
        if exact {
            assert_eq!(counts.maybe_shared(), mapping.len() > 1);
            assert_eq!(owned, if mapping.len() == 1 { mapping } else { Vec::new() });
        } else {
            assert!(owned.is_empty() || owned == mapping);
        }
        assert!(owned.iter().all(|id| says(id) == Some(all)));
    }
}

fn act() -> impl Strategy<Value = Act> {
    let range = || (0..PAGES, 1..=PAGES).prop_map(|(from, len)| from..(from + len).min(PAGES));
    prop_oneof![
        5 => range().prop_map(Act::Map),
        4 => range().prop_map(Act::Unmap),
        1 => Just(Act::MapEntirely),
        2 => Just(Act::UnmapEntirely),
        2 => Just(Act::Exit),
    ]
}

fn history() -> impl Strategy<Value = Vec<(usize, Act)>> {
    prop::collection::vec((0..MMS, act()), 1..60)
}

fn follow<C: Mapcount>(history: &[(usize, Act)], pages_have_counts: bool, exact: bool) {
    let mut run = Run::<C>::new();
    for (mm, act) in history {
        run.act(*mm, act.clone());
        run.check(pages_have_counts, exact);
    }
    for mm in 0..MMS {
        run.act(mm, Act::Exit);
        run.check(pages_have_counts, exact);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn every_configuration_counts_what_the_map_holds(history in history()) {
        follow::<PageMapcount>(&history, true, false);
        follow::<MmOwner>(&history, true, false);
        follow::<NoPageMapcount>(&history, false, false);
        follow::<PreciseOwners>(&history, false, true);
    }
}

/// A million histories of 2 to 64 mms with ids of any size, 32 steps each.
#[test]
fn sums_are_never_wrong_in_a_million_histories() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..1_000_000 {
        let mms = 2 + random.below(63) as usize;
        let bits = 1 + random.below(u64::from(MmId::BITS));
        // Ids near each other or far apart. As the step is odd, all are different. 0 is no id.
        let first = random.below(1 << MmId::BITS);
        let step = 1 | random.below(1 << bits);
        let id = |mm: usize| (first + mm as u64 * step) % (1 << MmId::BITS);
        let ids: Vec<u64> = (0..mms).map(id).filter(|&id| id > 0).collect();
        let mut mapped = [0_u32; 64];
        let mut sums = Sums::default();
        for _ in 0..32 {
            let at = random.below(ids.len() as u64) as usize;
            let mm = mm(ids[at] as u32);
            // All of it in half of the cases, so that mms leave.
            if mapped[at] > 0 {
                let fewer = if random.below(4) == 0 { 1 } else { mapped[at] };
                mapped[at] -= fewer;
                sums = sums.unmap(mm, fewer).expect("it was mapped");
            } else {
                let more = 1 + random.below(512) as u32;
                mapped[at] += more;
                sums = sums.map(mm, more);
            }
            judge(sums, &ids, &mapped, at);
        }
    }
}

fn judge(sums: Sums, ids: &[u64], mapped: &[u32; 64], at: usize) {
    let all: u64 = mapped.iter().map(|&count| u64::from(count)).sum();
    assert_eq!(u64::from(sums.mappings()), all);
    let mut mapping = (0..ids.len()).filter(|&mm| mapped[mm] > 0);
    let owner = mapping.next().filter(|_| mapping.next().is_none());
    assert_eq!(sums.has_owner(), owner.is_some());
    let asked = mm(ids[at] as u32);
    assert_eq!(sums.owned_by(asked), owner == Some(at));
}
