//! Reclaim over two lists: which folios leave, go round, or become active.

use super::lists::{Lists, Shrunk};
use crate::address::entries::Layer;
use crate::address::reverse_map::{FileMappings, ReverseMap};
use crate::decision::Log;
use crate::units::{PageCount, PageIndex};
use crate::word::{WORD_PAGES, word_mask};

/// Pages looked at together (`SWAP_CLUSTER_MAX`): goals are whole batches.
pub const BATCH: PageCount = PageCount(32);

/// Both lists are first gone through by one part in `2^12`, then by twice as much, until it is all
/// (`DEF_PRIORITY`).
const FIRST_PRIORITY: u32 = 12;

/// Base pages in one GiB of 4 KiB pages are 2^18; the ratio grows with the lists' bytes.
const GIB_SHIFT: u32 = 30;

/// What becomes of the base pages of one word from the inactive list's tail. The three masks are
/// disjoint and cover what was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// Leave the lists.
    pub evict: u64,
    /// Go round the inactive list once more, now referenced.
    pub keep: u64,
    /// Go to the active list.
    pub activate: u64,
}

/// Judges base pages: `young` have an accessed entry, `referenced` were seen young before or have
/// accessed entries in several VMAs, `executable` lie in an executable VMA.
///
/// Mirrors `folio_check_references`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn judge_pages(pages: u64, young: u64, referenced: u64, executable: u64) -> Verdicts {
    let young = young & pages;
    let activate = young & (referenced | executable);
    Verdicts { evict: pages & !young, keep: young & !activate, activate }
}

/// What becomes of one folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Leaves the lists.
    Evict,
    /// Goes round the inactive list once more, now referenced.
    Keep,
    /// Goes to the active list.
    Activate,
}

/// What accessed entries say of one folio: gathered layer by layer, each page by page in
/// ascending order.
///
/// Mirrors `folio_referenced`, 6.12 and 6.18: however many entries of one VMA were accessed, they
/// count once. (Seen on 6.18: 64 MiB of large folios, each mapped by many accessed entries of one
/// VMA, went round the inactive list and none became active.) Test: `tests/reclaim.rs`.
#[derive(Debug)]
pub struct Referenced<'a> {
    mappings: &'a FileMappings,
    /// The last VMA that had an accessed entry, by its layer and first page.
    last: Option<(Layer, PageIndex)>,
    /// VMAs with an accessed entry.
    pub vmas: u32,
    /// Whether any of them is executable.
    pub executable: bool,
}

impl<'a> Referenced<'a> {
    /// Nothing gathered yet of a folio of the file that these map.
    pub fn new(mappings: &'a FileMappings) -> Self {
        Referenced { mappings, last: None, vmas: 0, executable: false }
    }

    /// Adds the pages of `mask` in `word` whose entries in `layer` were accessed.
    pub fn add(&mut self, layer: Layer, word: u64, mut mask: u64) {
        while mask != 0 {
            let index = PageIndex(word * WORD_PAGES + u64::from(mask.trailing_zeros()));
            let vma = self.mappings.vma(layer, index).expect("an entry lies in a VMA");
            if self.last != Some((layer, vma.pgoff)) {
                self.last = Some((layer, vma.pgoff));
                self.vmas += 1;
                self.executable |= vma.executable;
            }
            mask &= !word_mask(word, index, vma.end());
        }
    }
}

/// Judges a large folio: `young` VMAs have accessed entries for it, an `executable` one among
/// them or not.
///
/// Mirrors `folio_check_references`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn judge_folio(young: u32, referenced: bool, executable: bool) -> Verdict {
    match young {
        0 => Verdict::Evict,
        1 if !referenced && !executable => Verdict::Keep,
        _ => Verdict::Activate,
    }
}

/// What a use by `read(2)` does to a folio on the inactive list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    /// It becomes referenced.
    Reference,
    /// It was referenced: it moves to the active list's head and is no longer referenced.
    Activate,
}

/// The second use of an inactive folio makes it active.
///
/// Mirrors `folio_mark_accessed`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn used(referenced: bool, active: bool) -> Used {
    if referenced && !active { Used::Activate } else { Used::Reference }
}

/// Whether the active list has outgrown its share: the inactive list should hold at least one
/// part in `1 + ratio`, where the ratio is 1 below one GiB and then the root of ten times the GiB.
///
/// Mirrors `inactive_is_low`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn inactive_is_low(inactive: PageCount, active: PageCount, page_size: u64) -> bool {
    let gib = (inactive + active).bytes(page_size) >> GIB_SHIFT;
    let ratio = if gib == 0 { 1 } else { (10 * gib).isqrt() };
    inactive.0.saturating_mul(ratio) < active.0
}

/// Evicts at least `goal` pages, rounded up to whole batches, or what can be. Returns the number
/// of pages evicted.
///
/// The active list is aged along with it while the statistics say that it has outgrown its share,
/// and where nothing can be evicted otherwise.
///
/// Mirrors `do_try_to_free_pages` of the classic lists, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn reclaim<L: Lists>(
    lists: &mut L,
    goal: PageCount,
    page_size: u64,
    mappings: &ReverseMap,
    log: &mut impl Log,
) -> PageCount {
    let goal = PageCount(goal.0.next_multiple_of(BATCH.0));
    let known = lists.statistics();
    let mut ages = inactive_is_low(known.inactive, known.active, page_size);
    let mut evicted = PageCount(0);
    let mut idle_passes = 0;
    while evicted < goal && idle_passes < 2 {
        let freed = match ages {
            true => shrink_both(lists, mappings, log),
            false => lists.shrink(goal - evicted, mappings, log).evicted,
        };
        evicted += freed;
        idle_passes = if freed == PageCount(0) { idle_passes + 1 } else { 0 };
        if idle_passes == 2 && !ages && lists.active() > PageCount(0) {
            (ages, idle_passes) = (true, 0);
        }
    }
    evicted
}

/// Evicts a part of the inactive list and ages the same part of the active one, and then twice as
/// much of both, until at least a batch is evicted. Returns the number of pages evicted.
///
/// Where pages are accessed, more has to be looked at to evict that part; the active list is aged
/// in proportion to what was. (The kernel looks at the part, whatever it evicts of it.)
///
/// Mirrors `shrink_lruvec` of the classic lists, 6.12 and 6.18. Test: `tests/aging.rs`.
pub fn shrink_both<L: Lists>(
    lists: &mut L,
    mappings: &ReverseMap,
    log: &mut impl Log,
) -> PageCount {
    let mut evicted = PageCount(0);
    for priority in (0..=FIRST_PRIORITY).rev() {
        let (inactive, active) = (lists.inactive().0, lists.active().0);
        let shrunk = match PageCount(inactive >> priority) {
            PageCount(0) => Shrunk::default(),
            share => lists.shrink(share, mappings, log),
        };
        evicted += shrunk.evicted;
        let looked_at = (shrunk.evicted + shrunk.kept).0;
        let aged = (active >> priority).max(looked_at * active / inactive.max(1));
        // The lists take turns, a batch each; of the active one no more once a batch is evicted.
        let turns = looked_at.next_multiple_of(BATCH.0);
        lists.age(PageCount(if evicted < BATCH { aged } else { aged.min(turns) }), mappings);
        if evicted >= BATCH {
            break;
        }
    }
    evicted
}
