//! Three mms and two pages: every history of up to eight steps, one page each.

use crate::support::{folio, mm};
use filemap_mapcount::atomics::Real;
use filemap_mapcount::calculator::falsely_shared;
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

/// What counters know at the end of a history, and what is true.
struct Judged<'a> {
    history: &'a [Step],
    /// The most mms that mapped the folio at a time.
    at_once: usize,
    owner: Option<MmId>,
    is_mapped: bool,
    maybe_shared: bool,
    owned_by: Vec<MmId>,
}

impl Judged<'_> {
    fn is_falsely_shared(&self) -> bool {
        self.owner.is_some() && self.maybe_shared
    }

    /// Said to be of one mm, or of this one, and is not.
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

/// The smallest ids and the largest: for sums the hardest.
fn ids() -> [MmId; MMS] {
    [mm(1), mm(2), MmId::LAST]
}

/// Histories by their length, beginning with the shortest.
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

fn judge<C: Mapcount>(history: &[Step]) -> Judged<'_> {
    let folio = folio::<C>(1);
    let ids = ids();
    let mut mapped = [0; MMS];
    let mut at_once = 0;
    for step in history {
        let of = &mut mapped[step.mm];
        if step.maps {
            folio.map(ids[step.mm], *of..*of + 1);
            *of += 1;
        } else {
            *of -= 1;
            folio.unmap(ids[step.mm], *of..*of + 1);
        }
        at_once = at_once.max(mapped.iter().filter(|&&pages| pages > 0).count());
    }
    let all: usize = mapped.iter().sum();
    assert_eq!(folio.counts().mappings(), all as u32);
    let owner = (0..MMS).find(|&mm| mapped[mm] > 0 && mapped[mm] == all);
    let says = |mm: &MmId| folio.counts().owned_by(*mm).is_some();
    Judged {
        history,
        at_once,
        owner: owner.map(|mm| ids[mm]),
        is_mapped: all > 0,
        maybe_shared: folio.counts().maybe_shared(),
        owned_by: ids.into_iter().filter(says).collect(),
    }
}

fn text(history: &[Step]) -> String {
    let step = |step: &Step| format!("{}{}", ["A", "B", "C"][step.mm], sign(step.maps));
    history.iter().map(step).collect::<Vec<_>>().join(" ")
}

fn sign(maps: bool) -> char {
    if maps { '+' } else { '-' }
}

fn count<'a>(all: &[Judged<'a>], which: impl Fn(&Judged<'a>) -> bool) -> usize {
    all.iter().filter(|&judged| which(judged)).count()
}

fn two_slots_are_wrong_in_one_direction<C: Mapcount>() {
    let histories = histories();
    let all: Vec<Judged> = histories.iter().map(|history| judge::<C>(history)).collect();
    assert_eq!(all.len(), 85_695);
    assert_eq!(count(&all, |judged| judged.owner.is_some()), 15_660);
    assert_eq!(count(&all, Judged::is_falsely_shared), 1_662);
    assert_eq!(count(&all, Judged::is_falsely_exclusive), 0);
    // Where it is not marked, the owner is named.
    assert_eq!(count(&all, |judged| !judged.is_falsely_shared() && !judged.is_exact()), 0);
    // Two mms at a time are always told apart, however many there were.
    assert_eq!(count(&all, |judged| judged.at_once <= 2 && !judged.is_exact()), 0);
    let three = "A+ B+ B- C+ A-";
    assert!(all.iter().any(|judged| text(judged.history) == three && judged.is_exact()));
    let shortest = all.iter().find(|judged| judged.is_falsely_shared()).expect("there are some");
    assert_eq!(text(shortest.history), "A+ B+ C+ A- B-");
}

#[test]
fn two_slots_with_counts_of_pages() {
    two_slots_are_wrong_in_one_direction::<MmOwner>();
}

#[test]
fn two_slots_without_counts_of_pages() {
    two_slots_are_wrong_in_one_direction::<NoPageMapcount>();
}

#[test]
fn three_sums_are_never_wrong() {
    let histories = histories();
    let all: Vec<Judged> = histories.iter().map(|it| judge::<PreciseOwners>(it)).collect();
    assert_eq!(all.len(), 85_695);
    assert_eq!(count(&all, |judged| !judged.is_exact()), 0);
}

#[test]
fn without_owners_only_a_single_mapping_is_known_to_be_of_one_mm() {
    let histories = histories();
    let all: Vec<Judged> = histories.iter().map(|it| judge::<PageMapcount>(it)).collect();
    assert_eq!(count(&all, Judged::is_falsely_exclusive), 0);
    assert_eq!(count(&all, |judged| !judged.owned_by.is_empty()), 0);
    assert!(count(&all, Judged::is_falsely_shared) > 1_662);
}

/// The first history, one of the shortest, that shows an unsound rule.
fn caught<R: SlotRules>() -> Option<String> {
    let histories = histories();
    let wrong = |history: &&History| judge::<MmOwner<Real, R>>(history).is_falsely_exclusive();
    histories.iter().find(wrong).map(|history| text(history))
}

struct TakesSlotsInUse;

impl SlotRules for TakesSlotsInUse {
    fn may_take(_: u32, shared: bool) -> bool {
        !shared
    }
}

/// A slot that is free is taken on a folio that others share without slots.
struct TakesSlotsOfSharedFolios;

impl SlotRules for TakesSlotsOfSharedFolios {
    fn may_take(count: u32, _: bool) -> bool {
        count == 0
    }
}

struct DoesNotCompareTheTotal;

impl SlotRules for DoesNotCompareTheTotal {
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
fn unsound_rules_are_caught() {
    assert_eq!(caught::<TakesSlotsInUse>().as_deref(), Some("A+ B+"));
    assert_eq!(caught::<DoesNotCompareTheTotal>().as_deref(), Some("A+ B+"));
    assert_eq!(caught::<NeverMarks>().as_deref(), Some("A+ B+"));
    assert_eq!(caught::<filemap_mapcount::slots::Published>(), None);
}

/// An mm that had mappings before it took a slot has more than the slot counts. A caller that is
/// right is then told that it is wrong.
#[test]
#[should_panic(expected = "mm 2147483647 had not mapped as much")]
fn a_slot_taken_on_a_shared_folio_has_too_few_mappings() {
    type Unsound = MmOwner<Real, TakesSlotsOfSharedFolios>;
    let folio = folio::<Unsound>(1);
    let [a, b, c] = ids();
    folio.map(a, 0..1);
    folio.map(b, 0..1);
    folio.map(c, 0..1);
    folio.unmap(a, 0..1);
    folio.map(c, 1..2);
    folio.unmap(c, 0..2);
}

/// Of k mms that leave in any order, the last is known to be alone if it has one of two slots.
#[test]
fn two_slots_are_falsely_shared_in_all_but_2_of_k_orders() {
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
        assert!((share - falsely_shared(k as u32)).abs() < 1e-12, "{k} mms: {share}");
    }
}

fn permutations(of: usize) -> Vec<Vec<u32>> {
    let shorter = if of == 1 { vec![Vec::new()] } else { permutations(of - 1) };
    let insert = |order: Vec<u32>| {
        (0..of).map(move |at| [&order[..at], &[of as u32][..], &order[at..]].concat())
    };
    shorter.into_iter().flat_map(insert).collect()
}
