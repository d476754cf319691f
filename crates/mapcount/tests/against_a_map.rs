//! Counters against a plain map of who maps which pages, on random histories.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::support::{Random, folio, mm};
use filemap_mapcount::sums::Sums;
use filemap_mapcount::{
    Folio, Mapcount, MmId, MmIds, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners,
};
use proptest::prelude::*;

const ORDER: u32 = 3;
const PAGES: usize = 1 << ORDER;
const MMS: usize = 5;

/// A step of one mm.
#[derive(Clone, Debug)]
enum Step {
    /// Maps the unmapped pages of the range, in batches.
    Map(Range<usize>),
    /// Unmaps the mapped pages of the range, in batches.
    Unmap(Range<usize>),
    /// Unmaps everything. A new mm takes its place, maybe with the same id.
    Exit,
}

/// Which pages each mm maps, by its id.
#[derive(Default)]
struct MappedPages(BTreeMap<u32, [bool; PAGES]>);

impl MappedPages {
    fn by(&mut self, id: MmId) -> &mut [bool; PAGES] {
        self.0.entry(id.get()).or_default()
    }

    fn mappings(&self, id: &u32) -> u32 {
        self.0[id].iter().filter(|&&mapped| mapped).count() as u32
    }

    fn page_mappings(&self, page: usize) -> u32 {
        self.0.values().map(|pages| u32::from(pages[page])).sum()
    }

    fn owners(&self) -> Vec<u32> {
        self.0.keys().filter(|id| self.mappings(id) > 0).copied().collect()
    }
}

/// The maximal parts of `range` whose pages are all `mapped`.
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

struct History<C: Mapcount> {
    folio: Folio<C>,
    expected: MappedPages,
    ids: MmIds,
    mms: Vec<MmId>,
    mapped: i64,
}

impl<C: Mapcount> History<C> {
    fn new() -> History<C> {
        // One id more than mms, so that ids are reused soon.
        let ids = MmIds::new(MMS as u32 + 1).expect("so many are possible");
        let mms = (0..MMS).map(|_| ids.allocate().expect("one is left")).collect();
        History { folio: folio(ORDER), expected: MappedPages::default(), ids, mms, mapped: 0 }
    }

    fn take(&mut self, index: usize, step: Step) {
        let mm = self.mms[index];
        match step {
            Step::Map(range) => self.map(mm, range),
            Step::Unmap(range) => self.unmap(mm, range),
            Step::Exit => {
                self.unmap(mm, 0..PAGES);
                self.ids.release(mm);
                self.mms[index] = self.ids.allocate().expect("one is left");
            }
        }
    }

    fn map(&mut self, mm: MmId, range: Range<usize>) {
        for batch in batches(self.expected.by(mm), range, false) {
            self.expected.by(mm)[batch.clone()].fill(true);
            self.mapped += self.folio.map(mm, batch);
        }
    }

    fn unmap(&mut self, mm: MmId, range: Range<usize>) {
        for batch in batches(self.expected.by(mm), range, true) {
            self.expected.by(mm)[batch.clone()].fill(false);
            self.mapped += self.folio.unmap(mm, batch);
        }
    }

    fn check(&self, has_page_counts: bool, is_exact: bool) {
        let counts = self.folio.counts();
        let owners = self.expected.owners();
        let mappings: u32 = owners.iter().map(|id| self.expected.mappings(id)).sum();
        assert_eq!(counts.mappings(), mappings);
        let mapped_pages = (0..PAGES).filter(|&page| self.expected.page_mappings(page) > 0).count();
        for page in 0..PAGES {
            let expected = has_page_counts.then(|| self.expected.page_mappings(page));
            assert_eq!(self.folio.page_mappings(page), expected);
        }
        if has_page_counts {
            assert_eq!(self.mapped, mapped_pages as i64);
        } else {
            assert_eq!(self.mapped, if mapped_pages > 0 { PAGES as i64 } else { 0 });
        }
        let owned_by = |id: &u32| counts.owned_by(mm(*id));
        let known: Vec<u32> = (1..=MMS as u32 + 1).filter(|id| owned_by(id).is_some()).collect();
        assert!(counts.maybe_shared() || owners.len() <= 1);
        if is_exact {
            assert_eq!(counts.maybe_shared(), owners.len() > 1);
            assert_eq!(known, if owners.len() == 1 { owners } else { Vec::new() });
        } else {
            assert!(known.is_empty() || known == owners);
        }
        assert!(known.iter().all(|id| owned_by(id) == Some(mappings)));
    }
}

fn step() -> impl Strategy<Value = Step> {
    let range = || (0..PAGES, 1..=PAGES).prop_map(|(from, len)| from..(from + len).min(PAGES));
    prop_oneof![
        5 => range().prop_map(Step::Map),
        4 => range().prop_map(Step::Unmap),
        2 => Just(Step::Exit),
    ]
}

fn history() -> impl Strategy<Value = Vec<(usize, Step)>> {
    prop::collection::vec((0..MMS, step()), 1..60)
}

fn follow<C: Mapcount>(steps: &[(usize, Step)], has_page_counts: bool, is_exact: bool) {
    let mut history = History::<C>::new();
    for (mm, step) in steps {
        history.take(*mm, step.clone());
        history.check(has_page_counts, is_exact);
    }
    for mm in 0..MMS {
        history.take(mm, Step::Exit);
        history.check(has_page_counts, is_exact);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn every_scheme_agrees_with_the_map(history in history()) {
        follow::<PageMapcount>(&history, true, false);
        follow::<MmOwner>(&history, true, false);
        follow::<NoPageMapcount>(&history, false, false);
        follow::<PreciseOwners>(&history, false, true);
    }
}

/// A million histories of 32 steps, of 2 to 64 mms with ids of any size.
#[test]
fn sums_are_never_wrong_in_a_million_histories() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..1_000_000 {
        let mms = 2 + random.below(63) as usize;
        let bits = 1 + random.below(u64::from(MmId::BITS));
        // Ids close together or far apart. An odd step makes them different; 0 is no id.
        let first = random.below(1 << MmId::BITS);
        let step = 1 | random.below(1 << bits);
        let id = |mm: usize| (first + mm as u64 * step) % (1 << MmId::BITS);
        let ids: Vec<u64> = (0..mms).map(id).filter(|&id| id > 0).collect();
        let mut mapped = [0_u32; 64];
        let mut sums = Sums::default();
        for _ in 0..32 {
            let at = random.below(ids.len() as u64) as usize;
            let mm = mm(ids[at] as u32);
            // Mostly all of it, so that mms exit.
            if mapped[at] > 0 {
                let fewer = if random.below(4) == 0 { 1 } else { mapped[at] };
                mapped[at] -= fewer;
                sums = sums.unmap(mm, fewer).expect("it was mapped");
            } else {
                let more = 1 + random.below(512) as u32;
                mapped[at] += more;
                sums = sums.map(mm, more);
            }
            check(sums, &ids, &mapped, at);
        }
    }
}

fn check(sums: Sums, ids: &[u64], mapped: &[u32; 64], at: usize) {
    let mappings: u64 = mapped.iter().map(|&count| u64::from(count)).sum();
    assert_eq!(u64::from(sums.mappings()), mappings);
    let mut owners = (0..ids.len()).filter(|&mm| mapped[mm] > 0);
    let owner = owners.next().filter(|_| owners.next().is_none());
    assert_eq!(sums.has_owner(), owner.is_some());
    assert_eq!(sums.owned_by(mm(ids[at] as u32)), owner == Some(at));
}
