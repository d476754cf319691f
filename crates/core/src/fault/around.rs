//! Fault-around: mapping what is cached near a read fault.

use super::map;
use super::view::View;
use crate::address::entries::{MappedFile, Pages};
use crate::address::vma::Vma;
use crate::cache::{Folio, WORD_PAGES, word_mask};
use crate::decision::{Decision, Log, MissChange, MissChangeCause};
use crate::readahead::{Limits, miss};
use crate::series::Switch;
use crate::units::{Order, PageCount, PageIndex};

/// The file pages that a fault-around looks at, first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// First page.
    pub from: PageIndex,
    /// Last page; before `from` where the end of the file leaves nothing.
    pub last: PageIndex,
}

/// What a fault-around mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Pages that were not mapped before, by entries of their own.
    pub pages: PageCount,
    /// Whether the faulting page is now mapped.
    pub reached: bool,
    /// Whether it did that itself, and as accessed, by an entry for this page only.
    pub young: bool,
    /// Whether it saw that the faulting page is not cached.
    pub absent: bool,
}

impl Mapped {
    /// Nothing, and what is cached was not looked at.
    pub const NOTHING: Mapped =
        Mapped { pages: PageCount(0), reached: false, young: false, absent: false };
}

/// The window of a fault-around for `index`: in page-table entries, so it depends on where the VMA
/// begins. A start clamped to the VMA moves the end with it.
///
/// Mirrors `do_fault_around`, and for the end of the file `filemap_map_pages`, 6.12 and 6.18. Test:
/// `tests/fault_around.rs`.
pub fn window(index: PageIndex, vma: &Vma, limits: &Limits) -> Around {
    let entries = limits.arch.pte_entries;
    let vpn = vma.vpn(index);
    let table = vpn.align_down(entries);
    let aligned = vpn.align_down(limits.fault_around.0);
    let from = aligned.max(vma.start);
    let end =
        (from + limits.fault_around).min(table + PageCount(entries)).min(vma.start + vma.pages);
    let last = vma.index(end) - PageCount(1);
    Around { from: vma.index(from), last: last.min(limits.last_page()) }
}

/// Maps what is cached, up to date and unmarked in the window around `index`, and takes the hits
/// from the counter.
///
/// Mirrors `filemap_map_pages`, 6.12, 6.18 and 7.2. Test: `tests/fault_around.rs`.
pub fn map_around<C: MappedFile, L: Log>(
    index: PageIndex,
    tried: bool,
    view: &mut View<'_, C, L>,
) -> Mapped {
    let View { limits, vma, ra, tables, cache, log } = view;
    let around = window(index, vma, limits);
    let end = around.last + PageCount(1);
    let (mut next, mut absent, mut visit) = (around.from, false, None);
    while next < end {
        let word = next.0 / WORD_PAGES;
        let mask = word_mask(word, next, end);
        let pages = cache.pages(word, mask);
        absent |= mask & bit_of(index, word) & !pages.present != 0;
        let mappable = mask & pages.present & !pages.locked & !pages.marked;
        next = PageIndex((word + 1) * WORD_PAGES);
        if mappable == 0 {
            continue;
        }
        let visit = match &mut visit {
            Some(visit) => visit,
            None => {
                let folio = first_of(word, mappable, &pages, *cache);
                let spared = spares(folio, limits);
                if !spared && map::map_huge(folio, vma, limits, tables, *cache, *log) {
                    return Mapped { reached: true, ..Mapped::NOTHING };
                }
                let (vpn, entries) = (vma.vpn(index), limits.arch.pte_entries);
                if spared && !tables.is_installed(vpn, entries) {
                    return Mapped { absent, ..Mapped::NOTHING };
                }
                tables.install(vpn, entries);
                visit.insert(Visit::new(index))
            }
        };
        visit.base_pages(word, mappable & !pages.large, &pages, limits, *cache);
        let large = mappable & pages.large;
        if large != 0 {
            next = next.max(visit.large_folios(word, large, &pages, end, (vma, limits), *cache));
        }
    }
    let Some(Visit { hits, mapped, reached, young, .. }) = visit else {
        return Mapped { absent, ..Mapped::NOTHING };
    };
    let credit = credit(hits, reached, tried, vma, limits);
    let before = ra.mmap_miss;
    ra.credit(credit, limits.rules.series);
    let cause = MissChangeCause::Around { hits: credit };
    log.mmap_miss_changed(MissChange { cause, before, after: ra.mmap_miss });
    log.record(Decision::MapPages { from: around.from, last: around.last, mapped, credit });
    Mapped { pages: mapped, reached: reached != Reached::No, young, absent }
}

/// The bit of `index` in `word`, if it lies there.
fn bit_of(index: PageIndex, word: u64) -> u64 {
    u64::from(index.0 / WORD_PAGES == word) << (index.0 % WORD_PAGES)
}

/// Hits to be taken from the counter.
fn credit(hits: u32, reached: Reached, tried: bool, vma: &Vma, limits: &Limits) -> u32 {
    let rules = &limits.rules;
    let rents = rules.series.has(Switch::RentOrBuy);
    if tried && (!rules.retry_credits || rents || rules.series.has(Switch::MissNoRetry)) {
        return 0;
    }
    if !miss::counts_hits(vma, rules) {
        return 0;
    }
    if rules.credits_fault_address || rents || rules.series.has(Switch::MissFaultAddress) {
        return u32::from(reached == Reached::Yes);
    }
    hits
}

/// Whether fault-around does no more for `folio` than map its pages inside the window: it does not
/// even make a page-table page for it.
fn spares(folio: Folio, limits: &Limits) -> bool {
    limits.rules.around_spares_file_end && folio.end() > limits.last_page()
}

/// The folio of the lowest page of `mask` in `word`, whose pages are neither locked nor marked.
#[inline]
fn first_of(word: u64, mask: u64, pages: &Pages, cache: &impl MappedFile) -> Folio {
    let lowest = mask.trailing_zeros();
    let head = PageIndex(word * WORD_PAGES + u64::from(lowest));
    if pages.large >> lowest & 1 == 1 {
        return cache.folio(head).expect("the page is cached");
    }
    Folio { head, order: Order(0), locked: false, marked: false }
}

/// What a walk over the window has done so far.
struct Visit {
    index: PageIndex,
    /// Pages visited that count as hits: those whose folio has no workingset flag, or all.
    hits: u32,
    mapped: PageCount,
    reached: Reached,
    /// It mapped the faulting page by an entry of its own.
    young: bool,
}

/// Whether the walk mapped the faulting page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    No,
    /// Yes, and its folio has the workingset flag.
    Workingset,
    Yes,
}

impl Visit {
    fn new(index: PageIndex) -> Visit {
        Visit { index, hits: 0, mapped: PageCount(0), reached: Reached::No, young: false }
    }

    /// Visits the pages of `mask` in `word`, each of which is a folio.
    fn base_pages(
        &mut self,
        word: u64,
        mask: u64,
        pages: &Pages,
        limits: &Limits,
        cache: &mut impl MappedFile,
    ) {
        self.hits += hits(mask, pages, limits);
        let unmapped = mask & pages.unmapped();
        if unmapped == 0 {
            return;
        }
        let index = unmapped & bit_of(self.index, word);
        cache.map(word, unmapped, if limits.arch.prefaults_young { unmapped } else { index });
        self.mapped += PageCount(count(unmapped).into());
        if index != 0 {
            self.young = true;
            self.reach(pages.workingset & index != 0);
        }
    }

    /// Visits the pages of `mask` in `word`, which are in large folios: as far as the window goes,
    /// or whole folios. Returns the page after the last folio.
    #[inline(never)]
    fn large_folios(
        &mut self,
        word: u64,
        mask: u64,
        pages: &Pages,
        end: PageIndex,
        (vma, limits): (&Vma, &Limits),
        cache: &mut impl MappedFile,
    ) -> PageIndex {
        let (mut left, mut behind) = (mask, PageIndex(0));
        while left != 0 {
            let folio = first_of(word, left, pages, cache);
            let first = PageIndex(word * WORD_PAGES + u64::from(left.trailing_zeros()));
            let whole = !spares(folio, limits) && map::maps_whole(folio, vma, limits);
            let (start, stop) =
                if whole { (folio.head, folio.end()) } else { (first, folio.end().min(end)) };
            let bit = left & left.wrapping_neg();
            self.hits += (stop - start).0 as u32 * hits(bit, pages, limits);
            let holds_index = start <= self.index && self.index < stop;
            let young = limits.arch.prefaults_young || holds_index;
            self.mapped += map::map_range(start, stop, young, cache);
            if holds_index {
                self.reach(pages.workingset & bit != 0);
            }
            left &= !word_mask(word, first, folio.end());
            behind = folio.end();
        }
        behind
    }

    fn reach(&mut self, workingset: bool) {
        self.reached = if workingset { Reached::Workingset } else { Reached::Yes };
    }
}

/// How many of the pages of `mask` count as hits.
fn hits(mask: u64, pages: &Pages, limits: &Limits) -> u32 {
    let counted = if limits.rules.workingset_hits_count { mask } else { mask & !pages.workingset };
    count(counted)
}

/// How many pages a mask has: often one, which was read by itself.
fn count(mask: u64) -> u32 {
    if mask & mask.wrapping_sub(1) == 0 { u32::from(mask != 0) } else { count_several(mask) }
}

// Without an instruction of the processor for it, counting takes many steps.
#[inline(never)]
fn count_several(mask: u64) -> u32 {
    mask.count_ones()
}
