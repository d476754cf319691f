//! Mapping cached folios: by one PMD entry, whole, or page by page.

use super::view::View;
use crate::address::advice::HugeHint;
use crate::address::entries::{MappedFile, UnmappedPages};
use crate::address::mapping::FileMapping;
use crate::address::page_table::PageTables;
use crate::address::vma::Vma;
use crate::cache::{Folio, WORD_PAGES, by_word, word_mask, words};
use crate::decision::{Decision, Log};
use crate::readahead::Limits;
use crate::rules::{Family, FreedTables};
use crate::units::{PageCount, PageIndex};

/// Maps `folio` by a PMD entry if possible; returns whether it did.
///
/// Mirrors `filemap_map_pmd` and `do_set_pmd`, 6.12 and 6.18. Test: `tests/fault_around.rs`.
#[inline(always)]
pub fn map_huge(
    folio: Folio,
    vma: &Vma,
    limits: &Limits,
    tables: &PageTables,
    cache: &mut impl MappedFile,
    log: &mut impl Log,
) -> bool {
    // Most folios are smaller.
    if folio.order != limits.arch.pmd_order() || !maps_by_pmd(folio, vma, limits, tables) {
        return false;
    }
    map_range(folio.head, folio.end(), true, cache);
    log.record(Decision::MapHuge { start: folio.head });
    true
}

/// Whether a PMD entry can map `folio`: no page-table page is in its place, and the VMA is not
/// advised NOHUGEPAGE.
#[inline(never)]
pub fn maps_by_pmd(folio: Folio, vma: &Vma, limits: &Limits, tables: &PageTables) -> bool {
    let entries = limits.arch.pte_entries;
    folio.order == limits.arch.pmd_order()
        && (vma.advice.huge != HugeHint::NoHuge || !limits.rules.nohugepage_keeps_pmd_off)
        && lies_within(folio, vma, limits)
        && vma.vpn(folio.head).align_down(entries) == vma.vpn(folio.head)
        && !tables.is_installed(vma.vpn(folio.head), entries)
}

/// Whether `folio` can be mapped as a whole by the entries of one page-table page.
///
/// Mirrors `filemap_map_folio_range` and `finish_fault`, 6.18. Test: `tests/fault_around.rs`.
pub fn maps_whole(folio: Folio, vma: &Vma, limits: &Limits) -> bool {
    let entries = limits.arch.pte_entries;
    limits.rules.maps_whole_folio
        && lies_within(folio, vma, limits)
        && vma.vpn(folio.head).align_down(entries)
            == vma.vpn(folio.end() - PageCount(1)).align_down(entries)
}

/// Whether all of `folio` lies inside the VMA and the file.
fn lies_within(folio: Folio, vma: &Vma, limits: &Limits) -> bool {
    let file_end = limits.last_page() + PageCount(1);
    folio.head >= vma.pgoff && folio.end() <= vma.end().min(file_end)
}

/// Maps the cached, unmapped pages of `from..end`. On architectures whose fault-around leaves
/// entries old, only `young` sets the accessed bit. Returns their number.
pub fn map_range(
    from: PageIndex,
    end: PageIndex,
    young: bool,
    cache: &mut impl MappedFile,
) -> PageCount {
    let mut mapped = PageCount(0);
    for (word, mask) in by_word(from, end) {
        let unmapped = mask & cache.pages(word, mask).unmapped();
        if unmapped != 0 {
            cache.map(word, unmapped, if young { unmapped } else { 0 });
            mapped += PageCount(unmapped.count_ones().into());
        }
    }
    mapped
}

/// Maps page `index`, found in `folio`: by a PMD entry, with its whole folio, or alone.
///
/// Mirrors `finish_fault`, 6.12 and 6.18. Test: `tests/fault.rs`.
pub fn map_found<C: MappedFile, L: Log>(index: PageIndex, folio: Folio, view: &mut View<'_, C, L>) {
    let View { limits, vma, tables, cache, log, .. } = view;
    let (cache, log) = (&mut **cache, &mut **log);
    if map_huge(folio, vma, limits, tables, cache, log) {
        return;
    }
    tables.install(vma.vpn(index), limits.arch.pte_entries);
    if maps_whole(folio, vma, limits) && is_unmapped(folio, cache) {
        map_range(folio.head, folio.end(), true, cache);
    } else {
        map_range(index, index + PageCount(1), true, cache);
    }
}

fn is_unmapped(folio: Folio, cache: &impl MappedFile) -> bool {
    by_word(folio.head, folio.end()).all(|(word, mask)| {
        let pages = cache.pages(word, mask);
        mask & (pages.mapped | pages.copied) == 0
    })
}

/// Copies page `index`, which is mapped read-only in a private mapping, on write. Returns whether
/// another task has not done so meanwhile.
///
/// Mirrors `do_wp_page`, 6.12 and 6.18. Test: `tests/page_table.rs`.
pub fn copy_mapped(index: PageIndex, cache: &mut impl MappedFile, log: &mut impl Log) -> bool {
    let is_new = cache.copy(index);
    log.record(Decision::Copied { index });
    is_new
}

/// Zaps the entries of `mapping` for the pages `from..end`, as `munmap(2)` and MADV_DONTNEED do. In
/// mappings with recency each batch with an accessed entry marks its folio accessed. Returns the
/// number of private copies freed.
///
/// Mirrors `zap_present_folio_ptes`, 6.12 and 6.18. Test: `tests/page_table.rs`.
pub fn unmap(
    mapping: &FileMapping,
    from: PageIndex,
    end: PageIndex,
    limits: &Limits,
    cache: &mut impl MappedFile,
) -> PageCount {
    let mut copies = 0;
    for (vma, from, end) in mapping.vmas(from, end) {
        let recency = mapping.vma_has_recency(&vma);
        let mut batch = PteBatch { next: None, is_used: false };
        for word in cache.words_with_entries(from, end) {
            let mask = word_mask(word, from, end);
            let unmapped = cache.unmap(word, mask);
            copies += u64::from(unmapped.copied.count_ones());
            if recency && unmapped.accessed != 0 {
                batch.word(word, unmapped, &vma, limits, cache);
            }
        }
    }
    PageCount(copies)
}

/// Consecutive entries of one folio in one page-table page.
struct PteBatch {
    /// The page after its last.
    next: Option<PageIndex>,
    /// Whether any of them was accessed.
    is_used: bool,
}

impl PteBatch {
    /// Continues with the entries of a word, some of which were accessed.
    fn word(
        &mut self,
        word: u64,
        UnmappedPages { mut mapped, accessed, .. }: UnmappedPages,
        vma: &Vma,
        limits: &Limits,
        cache: &mut impl MappedFile,
    ) {
        if limits.max_folio.is_none() {
            // Each entry is a batch.
            return cache.mark_pages_accessed(word, mapped & accessed);
        }
        let entries = limits.arch.pte_entries;
        while mapped != 0 {
            let bit = mapped & mapped.wrapping_neg();
            let index = PageIndex(word * WORD_PAGES + u64::from(mapped.trailing_zeros()));
            mapped &= !bit;
            let Some(folio) = cache.folio(index) else { continue };
            let vpn = vma.vpn(index);
            let begins = folio.head == index
                || vpn.align_down(entries) == vpn
                || limits.rules.entries_are_uses && folio.order < limits.arch.pmd_order();
            if begins || self.next != Some(index) {
                self.is_used = false;
            }
            if accessed & bit != 0 && !self.is_used {
                cache.mark_accessed(index);
                self.is_used = true;
            }
            self.next = Some(index + PageCount(1));
        }
    }
}

/// Splits a PMD entry that maps pages on both sides of page `at` of `mapping`, before a VMA is
/// split or entries are zapped there.
pub fn split_huge(
    at: PageIndex,
    mapping: &FileMapping,
    limits: &Limits,
    tables: &PageTables,
    cache: &mut impl MappedFile,
) {
    let is_inside = mapping.whole.pgoff < at && at < mapping.whole.end();
    if is_inside && cache.folio(at).is_some_and(|folio| folio.head < at) {
        unmap_huge(at, &mapping.whole, limits, tables, cache);
    }
}

/// Removes the PMD entry that maps page `index` of `vma`, if there is one. If it was accessed, its
/// folio becomes referenced. Returns whether there was one.
///
/// Mirrors `__split_huge_pmd`, 6.12 and 6.18. Test: `tests/page_table.rs`.
pub fn unmap_huge(
    index: PageIndex,
    vma: &Vma,
    limits: &Limits,
    tables: &PageTables,
    cache: &mut impl MappedFile,
) -> bool {
    let entries = limits.arch.pte_entries;
    if tables.is_installed(vma.vpn(index), entries) {
        return false;
    }
    let may_be_huge = |folio: &Folio| {
        folio.order == limits.arch.pmd_order()
            && folio.head >= vma.pgoff
            && vma.vpn(folio.head).align_down(entries) == vma.vpn(folio.head)
    };
    let Some(folio) = cache.folio(index).filter(may_be_huge) else { return false };
    if !cache.entry(index).0 {
        return false;
    }
    let mut accessed = 0;
    for word in words(folio.head, folio.end()) {
        accessed |= cache.unmap(word, word_mask(word, folio.head, folio.end())).accessed;
    }
    if accessed != 0 {
        cache.set_referenced(index);
    }
    true
}

/// Frees page-table pages after MADV_DONTNEED has zapped `from..end` of `mapping`: those whose
/// entries all belong to one VMA in the range.
///
/// Mirrors `zap_pte_range`, 6.18 and 7.0. Test: `tests/page_table.rs`.
pub fn free_tables(
    mapping: &FileMapping,
    from: PageIndex,
    end: PageIndex,
    limits: &Limits,
    tables: &mut PageTables,
) {
    let frees = match limits.rules.dontneed_frees_tables {
        FreedTables::Never => false,
        FreedTables::OnX86_64 => limits.arch.family == Family::X86_64,
        FreedTables::Always => true,
    };
    if !frees {
        return;
    }
    for (vma, from, end) in mapping.vmas(from, end) {
        tables.remove_lowest(vma.vpn(from), end - from, limits.arch.pte_entries);
    }
}
