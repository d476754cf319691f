//! Every history of three mms and two pages of up to eight steps, each of one page.

use crate::support::{folio, mm};
use filemap_mapcount::atomics::StdAtomics;
use filemap_mapcount::exit_orders::lost_share_of_two_slots;
use filemap_mapcount::slots::SlotRules;
use filemap_mapcount::{Mapcount, MmId, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners};

const MMS: usize = 3;
const PAGES: usize = 2;
const LENGTH: usize = 8;

/// One mm maps its next page, or unmaps its last one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Step {
    mm: usize,
    maps: bool,
}

type History = Vec<Step>;

/// The answers of the counters at the end of a history, and the real owner.
struct FinalState<'a> {
    history: &'a [Step],
    /// Maximum number of mms that mapped the folio at a time.
    max_mms: usize,
    owner: Option<MmId>,
    is_mapped: bool,
    maybe_shared: bool,
    owned_by: Vec<MmId>,
}

impl FinalState<'_> {
    fn is_falsely_shared(&self) -> bool {
        self.owner.is_some() && self.maybe_shared
    }

    /// Not shared according to the counters, or owned by an mm, but it is not.
    fn is_falsely_exclusive(&self) -> bool {
        let shared = self.is_mapped && self.owner.is_none();
        shared && !self.maybe_shared || self.owned_by.iter().any(|&mm| Some(mm) != self.owner)
    }

    fn is_exact(&self) -> bool {
        !self.is_falsely_shared()
            && !self.is_falsely_exclusive()
            && self.owned_by.first().copied() == self.owner
    }
}

/// The smallest ids and the largest, the hardest case for sums.
fn ids() -> [MmId; MMS] {
    [mm(1), mm(2), MmId::LAST]
}

/// All histories, the shortest first.
fn histories() -> Vec<History> {
    let mut all: Vec<History> = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..LENGTH {
        let until = all.len();
        for index in from..until {
            for step in next(&all[index]) {
                let longer = all[index].iter().copied().chain([step]).collect();
                all.push(longer);
            }
        }
        from = until;
    }
    all.remove(0);
    all
}

fn next(history: &[Step]) -> Vec<Step> {
    let mut mapped = [0; MMS];
    for step in history {
        if step.maps { mapped[step.mm] += 1 } else { mapped[step.mm] -= 1 }
    }
    let both = |mm: usize| [Step { mm, maps: true }, Step { mm, maps: false }];
    let can = |step: &Step| if step.maps { mapped[step.mm] < PAGES } else { mapped[step.mm] > 0 };
    (0..MMS).flat_map(both).filter(can).collect()
}

fn run<C: Mapcount>(history: &[Step]) -> FinalState<'_> {
    let folio = folio::<C>(1);
    let ids = ids();
    let mut mapped = [0; MMS];
    let mut max_mms = 0;
    for step in history {
        let pages = &mut mapped[step.mm];
        if step.maps {
            folio.map(ids[step.mm], *pages..*pages + 1);
            *pages += 1;
        } else {
            *pages -= 1;
            folio.unmap(ids[step.mm], *pages..*pages + 1);
        }
        max_mms = max_mms.max(mapped.iter().filter(|&&pages| pages > 0).count());
    }
    let all: usize = mapped.iter().sum();
    assert_eq!(folio.counts().mappings(), all as u32);
    let owner = (0..MMS).find(|&mm| mapped[mm] > 0 && mapped[mm] == all);
    let is_owner = |mm: &MmId| folio.counts().owned_by(*mm).is_some();
    FinalState {
        history,
        max_mms,
        owner: owner.map(|mm| ids[mm]),
        is_mapped: all > 0,
        maybe_shared: folio.counts().maybe_shared(),
        owned_by: ids.into_iter().filter(is_owner).collect(),
    }
}

fn text(history: &[Step]) -> String {
    let step = |step: &Step| format!("{}{}", ["A", "B", "C"][step.mm], sign(step.maps));
    history.iter().map(step).collect::<Vec<_>>().join(" ")
}

fn sign(maps: bool) -> char {
    if maps { '+' } else { '-' }
}

fn count<'a>(all: &[FinalState<'a>], which: impl Fn(&FinalState<'a>) -> bool) -> usize {
    all.iter().filter(|&state| which(state)).count()
}

fn slots_err_in_one_direction<C: Mapcount>() {
    let histories = histories();
    let all: Vec<FinalState> = histories.iter().map(|history| run::<C>(history)).collect();
    assert_eq!(all.len(), 85_695);
    assert_eq!(count(&all, |state| state.owner.is_some()), 15_660);
    assert_eq!(count(&all, FinalState::is_falsely_shared), 1_662);
    assert_eq!(count(&all, FinalState::is_falsely_exclusive), 0);
    // Unless it is marked as shared, the owner is known.
    assert_eq!(count(&all, |state| !state.is_falsely_shared() && !state.is_exact()), 0);
    // With at most two mms at a time the answers are exact, whichever came before.
    assert_eq!(count(&all, |state| state.max_mms <= 2 && !state.is_exact()), 0);
    let three = "A+ B+ B- C+ A-";
    assert!(all.iter().any(|state| text(state.history) == three && state.is_exact()));
    let shortest = all.iter().find(|state| state.is_falsely_shared()).expect("there are some");
    assert_eq!(text(shortest.history), "A+ B+ C+ A- B-");
}

#[test]
fn slots_with_page_counts() {
    slots_err_in_one_direction::<MmOwner>();
}

#[test]
fn slots_without_page_counts() {
    slots_err_in_one_direction::<NoPageMapcount>();
}

#[test]
fn sums_are_exact() {
    let histories = histories();
    let all: Vec<FinalState> = histories.iter().map(|it| run::<PreciseOwners>(it)).collect();
    assert_eq!(all.len(), 85_695);
    assert_eq!(count(&all, |state| !state.is_exact()), 0);
}

#[test]
fn without_owners_only_a_single_mapping_is_exclusive() {
    let histories = histories();
    let all: Vec<FinalState> = histories.iter().map(|it| run::<PageMapcount>(it)).collect();
    assert_eq!(count(&all, FinalState::is_falsely_exclusive), 0);
    assert_eq!(count(&all, |state| !state.owned_by.is_empty()), 0);
    assert!(count(&all, FinalState::is_falsely_shared) > 1_662);
}

/// A shortest history that shows that the rules are unsound.
fn counterexample<R: SlotRules>() -> Option<String> {
    let histories = histories();
    let wrong = |history: &&History| run::<MmOwner<StdAtomics, R>>(history).is_falsely_exclusive();
    histories.iter().find(wrong).map(|history| text(history))
}

struct TakesSlotsInUse;

impl SlotRules for TakesSlotsInUse {
    fn may_take(_: u32, shared: bool) -> bool {
        !shared
    }
}

/// Takes a free slot of a folio that mms without slots share.
struct TakesSlotsOfSharedFolios;

impl SlotRules for TakesSlotsOfSharedFolios {
    fn may_take(count: u32, _: bool) -> bool {
        count == 0
    }
}

struct IgnoresTheTotal;

impl SlotRules for IgnoresTheTotal {
    fn owns_all(count: u32, _: u32) -> bool {
        count > 0
    }
}

struct NeverMarks;

impl SlotRules for NeverMarks {
    fn marks(_: bool) -> bool {
        false
    }
}

#[test]
fn unsound_rules_have_counterexamples() {
    assert_eq!(counterexample::<TakesSlotsInUse>().as_deref(), Some("A+ B+"));
    assert_eq!(counterexample::<IgnoresTheTotal>().as_deref(), Some("A+ B+"));
    assert_eq!(counterexample::<NeverMarks>().as_deref(), Some("A+ B+"));
    assert_eq!(counterexample::<filemap_mapcount::slots::PublishedRules>(), None);
}

/// An mm that had mappings before it took a slot has more than the slot counts, so that a correct
/// unmap panics.
#[test]
#[should_panic(expected = "mm 2147483647 unmaps more pages")]
fn a_slot_taken_on_a_shared_folio_counts_too_few_mappings() {
    type Unsound = MmOwner<StdAtomics, TakesSlotsOfSharedFolios>;
    let folio = folio::<Unsound>(1);
    let [a, b, c] = ids();
    folio.map(a, 0..1);
    folio.map(b, 0..1);
    folio.map(c, 0..1);
    folio.unmap(a, 0..1);
    folio.map(c, 1..2);
    folio.unmap(c, 0..2);
}

/// Of k mms that exit in any order, the last one is known if it has one of two slots.
#[test]
fn slots_lose_the_last_owner_in_all_but_2_of_k_orders() {
    for k in 2..=7 {
        let orders = permutations(k);
        let wrong = |order: &&Vec<u32>| {
            let folio = folio::<NoPageMapcount>(1);
            for id in 1..=k as u32 {
                folio.map(mm(id), 0..2);
            }
            let (last, others) = order.split_last().expect("k is not 0");
            for &id in others {
                folio.unmap(mm(id), 0..2);
            }
            folio.counts().owned_by(mm(*last)).is_none()
        };
        let found = orders.iter().filter(wrong).count();
        assert_eq!(found * k, orders.len() * (k - 2), "{k} mms");
        let share = found as f64 / orders.len() as f64;
        assert!((share - lost_share_of_two_slots(k as u32)).abs() < 1e-12, "{k} mms: {share}");
    }
}

fn permutations(count: usize) -> Vec<Vec<u32>> {
    let shorter = if count == 1 { vec![Vec::new()] } else { permutations(count - 1) };
    let insert = |order: Vec<u32>| {
        (0..count).map(move |at| [&order[..at], &[count as u32][..], &order[at..]].concat())
    };
    shorter.into_iter().flat_map(insert).collect()
}
