//! Fault-around: mapping what is cached near a read fault.

use super::map;
use super::view::View;
use crate::address::entries::{MappedFile, PageWord};
use crate::address::vma::Vma;
use crate::cache::{Folio, WORD_PAGES, word_mask, words};
use crate::decision::{Decision, Log};
use crate::readahead::{Limits, miss};
use crate::series::Switch;
use crate::units::{PageCount, PageIndex};

/// The file pages that a fault-around looks at, first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// First page.
    pub from: PageIndex,
    /// Last page; before `from` where the end of the file leaves nothing.
    pub last: PageIndex,
}

/// The window of a fault-around for `index`: in page-table entries, so it depends on where the VMA
/// begins. A start clamped to the VMA moves the end with it.
///
/// Mirrors `do_fault_around`, 6.12 and 6.18. Test: `tests/fault_around.rs`.
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
/// from the counter. Returns whether the faulting page is now mapped.
///
/// Mirrors `filemap_map_pages`, 6.12 and 6.18. Test: `tests/fault_around.rs`.
pub fn map_around<C: MappedFile, L: Log>(
    index: PageIndex,
    tried: bool,
    view: &mut View<'_, C, L>,
) -> bool {
    let View { limits, vma, ra, tables, cache, log } = view;
    let (cache, log) = (&mut **cache, &mut **log);
    let around = window(index, vma, limits);
    let end = around.last + PageCount(1);
    let Some(first) = first_mappable(around.from, end, cache) else {
        return false;
    };
    let found = cache.folio(first).expect("a present page lies in a folio");
    let (vpn, entries) = (vma.vpn(index), limits.arch.pte_entries);
    if !spares(found, limits) && map::map_huge(found, vma, limits, tables, cache, log) {
        return true;
    }
    if spares(found, limits) && !tables.is_installed(vpn, entries) {
        return false;
    }
    tables.install(vpn, entries);
    let (hits, mapped) = (0, PageCount(0));
    let mut visit = Visit { index, tried, hits, mapped, reached: Reached::No };
    let mut next = first;
    while next < end {
        next = visit.word(next, end, vma, limits, cache);
    }
    let credit = visit.credit(limits);
    ra.mmap_miss = miss::credited(ra.mmap_miss, credit);
    log.record(Decision::MapPages {
        from: around.from,
        last: around.last,
        mapped: visit.mapped,
        credit,
    });
    visit.reached != Reached::No
}

/// Whether fault-around does no more for `folio` than map its pages inside the window: it does not
/// even make a page-table page for it.
fn spares(folio: Folio, limits: &Limits) -> bool {
    limits.rules.around_spares_file_end && folio.end() > limits.last_page()
}

/// The first page of `from..end` that fault-around may map.
fn first_mappable(from: PageIndex, end: PageIndex, cache: &impl MappedFile) -> Option<PageIndex> {
    words(from, end).find_map(|word| {
        let pages = mappable(&cache.word(word)) & word_mask(word, from, end);
        (pages != 0).then(|| PageIndex(word * WORD_PAGES + u64::from(pages.trailing_zeros())))
    })
}

fn mappable(word: &PageWord) -> u64 {
    word.present & !word.locked & !word.marked
}

/// What a walk over the window has done so far.
struct Visit {
    index: PageIndex,
    tried: bool,
    /// Pages visited whose folio has no workingset flag.
    hits: u32,
    mapped: PageCount,
    reached: Reached,
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
    /// Visits what is mappable from `from` to the end of its word or of the last folio in it.
    /// Returns where to go on.
    fn word(
        &mut self,
        from: PageIndex,
        end: PageIndex,
        vma: &Vma,
        limits: &Limits,
        cache: &mut impl MappedFile,
    ) -> PageIndex {
        let number = from.0 / WORD_PAGES;
        let word = cache.word(number);
        let pages = mappable(&word) & word_mask(number, from, end);
        self.base_pages(number, &word, pages & !word.large, limits, cache);
        let mut next = PageIndex((number + 1) * WORD_PAGES);
        let mut large = pages & word.large;
        while large != 0 {
            let first = PageIndex(number * WORD_PAGES + u64::from(large.trailing_zeros()));
            let folio = cache.folio(first).expect("a present page lies in a folio");
            let whole = !spares(folio, limits) && map::maps_whole(folio, vma, limits);
            let (start, stop) = match whole {
                true => (folio.head, folio.end()),
                false => (first, folio.end().min(end)),
            };
            let workingset = word.workingset & large & large.wrapping_neg() != 0;
            self.folio_range(start, stop, workingset, limits, cache);
            large &= !word_mask(number, first, folio.end());
            next = next.max(folio.end());
        }
        next
    }

    fn base_pages(
        &mut self,
        number: u64,
        word: &PageWord,
        pages: u64,
        limits: &Limits,
        cache: &mut impl MappedFile,
    ) {
        self.hits += (pages & !word.workingset).count_ones();
        let new = pages & !word.mapped & !word.copied;
        if new == 0 {
            return;
        }
        let faulting = word_mask(number, self.index, self.index + PageCount(1)) & new;
        let young = if limits.arch.prefaults_young { new } else { faulting };
        cache.map(number, new, young);
        self.mapped += PageCount(u64::from(new.count_ones()));
        if faulting != 0 {
            let workingset = faulting & word.workingset != 0;
            self.reached = if workingset { Reached::Workingset } else { Reached::Yes };
        }
    }

    fn folio_range(
        &mut self,
        start: PageIndex,
        stop: PageIndex,
        workingset: bool,
        limits: &Limits,
        cache: &mut impl MappedFile,
    ) {
        if !workingset {
            self.hits += (stop - start).0 as u32;
        }
        let holds_index = start <= self.index && self.index < stop;
        let young = limits.arch.prefaults_young || holds_index;
        self.mapped += map::map_range(start, stop, young, cache);
        if holds_index {
            self.reached = if workingset { Reached::Workingset } else { Reached::Yes };
        }
    }

    /// Hits to be taken from the counter.
    fn credit(&self, limits: &Limits) -> u32 {
        let series = limits.rules.series;
        if series.has(Switch::MissNoRetry) && self.tried {
            return 0;
        }
        if series.has(Switch::MissFaultAddress) {
            return u32::from(self.reached == Reached::Yes);
        }
        self.hits
    }
}
