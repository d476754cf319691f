//! Fault-around: mapping cached pages near a read fault.

use super::map;
use super::view::View;
use crate::address::entries::{MappedFile, WordPages};
use crate::address::vma::Vma;
use crate::cache::{Folio, WORD_PAGES, word_mask};
use crate::decision::{Decision, Log, MissChange, MissChangeCause};
use crate::readahead::{Limits, miss};
use crate::series::Switch;
use crate::units::{Order, PageCount, PageIndex};

/// The window of a fault-around, in file pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AroundWindow {
    /// First page.
    pub from: PageIndex,
    /// Last page; before `from` if the file ends earlier.
    pub last: PageIndex,
}

/// Result of a fault-around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AroundResult {
    /// Pages newly mapped by entries of their own.
    pub pages: PageCount,
    /// Whether the faulting page is now mapped.
    pub reached: bool,
    /// Whether this call mapped it as accessed, by an entry for this page only.
    pub young: bool,
    /// Whether it found the faulting page absent from the cache.
    pub absent: bool,
}

impl AroundResult {
    /// Nothing was mapped or looked up.
    pub const NOTHING: AroundResult =
        AroundResult { pages: PageCount(0), reached: false, young: false, absent: false };
}

/// The window of a fault-around for `index`. It is aligned in page-table entries, so it depends on
/// the start of the VMA. A start clamped to the VMA moves the end with it.
///
/// Mirrors `do_fault_around`, and for the end of the file `filemap_map_pages`, 6.12 and 6.18. Test:
/// `tests/fault_around.rs`.
pub fn window(index: PageIndex, vma: &Vma, limits: &Limits) -> AroundWindow {
    let entries = limits.arch.pte_entries;
    let vpn = vma.vpn(index);
    let table = vpn.align_down(entries);
    let aligned = vpn.align_down(limits.fault_around.0);
    let from = aligned.max(vma.start);
    let end =
        (from + limits.fault_around).min(table + PageCount(entries)).min(vma.start + vma.pages);
    let last = vma.index(end) - PageCount(1);
    AroundWindow { from: vma.index(from), last: last.min(limits.last_page()) }
}

/// Maps the cached pages of the window around `index` that are up to date and unmarked, and
/// subtracts the hits from `mmap_miss`.
///
/// Mirrors `filemap_map_pages`, 6.12, 6.18 and 7.2. Test: `tests/fault_around.rs`.
pub fn map_around<C: MappedFile, L: Log>(
    index: PageIndex,
    tried: bool,
    view: &mut View<'_, C, L>,
) -> AroundResult {
    let View { limits, vma, ra, tables, cache, log } = view;
    let around = window(index, vma, limits);
    let end = around.last + PageCount(1);
    let (mut next, mut absent, mut visit) = (around.from, false, None);
    while next < end {
        let word = next.0 / WORD_PAGES;
        let mask = word_mask(word, next, end);
        let pages = cache.pages(word, mask);
        absent |= mask & word_bit(index, word) & !pages.present != 0;
        let mappable = mask & pages.present & !pages.locked & !pages.marked;
        next = PageIndex((word + 1) * WORD_PAGES);
        if mappable == 0 {
            continue;
        }
        let visit = match &mut visit {
            Some(visit) => visit,
            None => {
                let folio = lowest_folio(word, mappable, &pages, *cache);
                let spared = skips_file_end(folio, limits);
                if !spared && map::map_huge(folio, vma, limits, tables, *cache, *log) {
                    return AroundResult { reached: true, ..AroundResult::NOTHING };
                }
                let (vpn, entries) = (vma.vpn(index), limits.arch.pte_entries);
                if spared && !tables.is_installed(vpn, entries) {
                    return AroundResult { absent, ..AroundResult::NOTHING };
                }
                tables.install(vpn, entries);
                visit.insert(AroundWalk::new(index))
            }
        };
        visit.base_pages(word, mappable & !pages.large, &pages, limits, *cache);
        let large = mappable & pages.large;
        if large != 0 {
            next = next.max(visit.large_folios(word, large, &pages, end, (vma, limits), *cache));
        }
    }
    let Some(AroundWalk { hits, mapped, reached, young, .. }) = visit else {
        return AroundResult { absent, ..AroundResult::NOTHING };
    };
    let credit = credit(hits, reached, tried, vma, limits);
    let before = ra.mmap_miss;
    ra.record_hits(credit, limits.rules.series);
    let cause = MissChangeCause::Around { hits: credit };
    log.mmap_miss_changed(MissChange { cause, before, after: ra.mmap_miss });
    log.record(Decision::MapPages { from: around.from, last: around.last, mapped, credit });
    AroundResult { pages: mapped, reached: reached != FaultPage::Unmapped, young, absent }
}

/// The bit of `index` in `word`, if it lies there.
fn word_bit(index: PageIndex, word: u64) -> u64 {
    u64::from(index.0 / WORD_PAGES == word) << (index.0 % WORD_PAGES)
}

/// Hits to subtract from `mmap_miss`.
fn credit(hits: u32, reached: FaultPage, tried: bool, vma: &Vma, limits: &Limits) -> u32 {
    let rules = &limits.rules;
    let rents = rules.series.has(Switch::RentOrBuy);
    if tried && (!rules.retry_credits || rents || rules.series.has(Switch::MissNoRetry)) {
        return 0;
    }
    if !miss::counts_hits(vma, rules) {
        return 0;
    }
    if rules.credits_fault_address || rents || rules.series.has(Switch::MissFaultAddress) {
        return u32::from(reached == FaultPage::Mapped);
    }
    hits
}

/// Whether fault-around only maps pages of `folio` inside the window, and does not even create a
/// page-table page for it, because the folio reaches the end of the file.
fn skips_file_end(folio: Folio, limits: &Limits) -> bool {
    limits.rules.around_spares_file_end && folio.end() > limits.last_page()
}

/// The folio of the lowest page of `mask` in `word`, whose pages are neither locked nor marked.
#[inline]
fn lowest_folio(word: u64, mask: u64, pages: &WordPages, cache: &impl MappedFile) -> Folio {
    let lowest = mask.trailing_zeros();
    let head = PageIndex(word * WORD_PAGES + u64::from(lowest));
    if pages.large >> lowest & 1 == 1 {
        return cache.folio(head).expect("the page is cached");
    }
    Folio { head, order: Order(0), locked: false, marked: false }
}

/// State of a walk over the window.
struct AroundWalk {
    index: PageIndex,
    /// Visited pages that count as hits: those in folios without the workingset flag, or all.
    hits: u32,
    mapped: PageCount,
    reached: FaultPage,
    /// The faulting page was mapped by an entry of its own.
    young: bool,
}

/// Whether the walk mapped the faulting page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FaultPage {
    Unmapped,
    /// Yes, and its folio has the workingset flag.
    MappedWorkingset,
    Mapped,
}

impl AroundWalk {
    fn new(index: PageIndex) -> AroundWalk {
        AroundWalk {
            index,
            hits: 0,
            mapped: PageCount(0),
            reached: FaultPage::Unmapped,
            young: false,
        }
    }

    /// Visits pages of `mask` in `word` that are base-page folios.
    fn base_pages(
        &mut self,
        word: u64,
        mask: u64,
        pages: &WordPages,
        limits: &Limits,
        cache: &mut impl MappedFile,
    ) {
        self.hits += hits(mask, pages, limits);
        let unmapped = mask & pages.unmapped();
        if unmapped == 0 {
            return;
        }
        let index = unmapped & word_bit(self.index, word);
        cache.map(word, unmapped, if limits.arch.prefaults_young { unmapped } else { index });
        self.mapped += PageCount(count(unmapped).into());
        if index != 0 {
            self.young = true;
            self.record_fault_page(pages.workingset & index != 0);
        }
    }

    /// Visits pages of `mask` in `word` that are in large folios: up to the end of the window, or
    /// whole folios. Returns the page after the last folio.
    #[inline(never)]
    fn large_folios(
        &mut self,
        word: u64,
        mask: u64,
        pages: &WordPages,
        end: PageIndex,
        (vma, limits): (&Vma, &Limits),
        cache: &mut impl MappedFile,
    ) -> PageIndex {
        let (mut left, mut after) = (mask, PageIndex(0));
        while left != 0 {
            let folio = lowest_folio(word, left, pages, cache);
            let first = PageIndex(word * WORD_PAGES + u64::from(left.trailing_zeros()));
            let whole = !skips_file_end(folio, limits) && map::maps_whole(folio, vma, limits);
            let (start, stop) =
                if whole { (folio.head, folio.end()) } else { (first, folio.end().min(end)) };
            let bit = left & left.wrapping_neg();
            self.hits += (stop - start).0 as u32 * hits(bit, pages, limits);
            let holds_index = start <= self.index && self.index < stop;
            let young = limits.arch.prefaults_young || holds_index;
            self.mapped += map::map_range(start, stop, young, cache);
            if holds_index {
                self.record_fault_page(pages.workingset & bit != 0);
            }
            left &= !word_mask(word, first, folio.end());
            after = folio.end();
        }
        after
    }

    fn record_fault_page(&mut self, workingset: bool) {
        self.reached = if workingset { FaultPage::MappedWorkingset } else { FaultPage::Mapped };
    }
}

/// Number of pages of `mask` that count as hits.
fn hits(mask: u64, pages: &WordPages, limits: &Limits) -> u32 {
    let counted = if limits.rules.workingset_hits_count { mask } else { mask & !pages.workingset };
    count(counted)
}

/// Number of pages in a mask, most often one that was read on its own.
fn count(mask: u64) -> u32 {
    if mask & mask.wrapping_sub(1) == 0 { u32::from(mask != 0) } else { count_several(mask) }
}

// Slow without a popcount instruction.
#[inline(never)]
fn count_several(mask: u64) -> u32 {
    mask.count_ones()
}
