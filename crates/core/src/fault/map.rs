//! Mapping what is cached: by one PMD entry, folios whole, or page by page.

use super::view::View;
use crate::address::entries::MappedFile;
use crate::address::page_table::PageTables;
use crate::address::vma::Vma;
use crate::cache::{Folio, WORD_PAGES, word_mask};
use crate::decision::{Decision, Log};
use crate::readahead::Limits;
use crate::units::{PageCount, PageIndex};

/// Maps `folio` by one PMD entry where it can be; returns whether it did.
///
/// Mirrors `filemap_map_pmd` and `do_set_pmd`, 6.12 and 6.18. Test: `tests/fault_around.rs`.
#[inline]
pub fn map_huge(
    folio: Folio,
    vma: &Vma,
    limits: &Limits,
    tables: &PageTables,
    cache: &mut impl MappedFile,
    log: &mut impl Log,
) -> bool {
    if !maps_by_pmd(folio, vma, limits, tables) {
        return false;
    }
    map_range(folio.head, folio.end(), true, cache);
    log.record(Decision::MapHuge { start: folio.head });
    true
}

/// Whether one PMD entry can map `folio`, where no page-table page is in its place.
#[inline]
pub fn maps_by_pmd(folio: Folio, vma: &Vma, limits: &Limits, tables: &PageTables) -> bool {
    let entries = limits.arch.pte_entries;
    folio.order == limits.arch.pmd_order()
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

/// Maps those pages of `from..end` that are not mapped yet; on processors that let fault-around
/// leave old entries, only `young` makes them accessed. Returns how many.
pub fn map_range(
    from: PageIndex,
    end: PageIndex,
    young: bool,
    cache: &mut impl MappedFile,
) -> PageCount {
    let (mut next, mut mapped) = (from, PageCount(0));
    while next < end {
        let pages = cache.pages(next, end);
        if pages.folio.is_some() && !pages.mapped && !pages.copied {
            cache.map(next, pages.end, young);
            mapped += pages.end - next;
        }
        next = pages.end;
    }
    mapped
}

/// Maps the page `index` that a fault found in `folio`: by one PMD entry, with the rest of its
/// folio, or alone.
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
    let mut next = folio.head;
    while next < folio.end() {
        let pages = cache.pages(next, folio.end());
        if pages.mapped || pages.copied {
            return false;
        }
        next = pages.end;
    }
    true
}

/// A write to the page `index`, which its private mapping has mapped to read: the page is copied.
///
/// Mirrors `do_wp_page`, 6.12 and 6.18. Test: `tests/page_table.rs`.
pub fn copy_mapped(index: PageIndex, cache: &mut impl MappedFile, log: &mut impl Log) {
    cache.copy(index);
    log.record(Decision::Copied { index });
}

/// Takes away the entries of `vma`, as `munmap(2)` does. A folio whose entries were accessed is
/// used by that, once, where the advice lets accesses count. Returns how many private copies
/// are gone.
///
/// Mirrors `zap_present_folio_ptes`, 6.12 and 6.18. Test: `tests/page_table.rs`.
pub fn unmap(vma: &Vma, cache: &mut impl MappedFile) -> PageCount {
    let mut copies = 0;
    // The end of the last folio that was used.
    let mut used = PageIndex(0);
    for word in cache.words_with_entries(vma.pgoff, vma.end()) {
        let unmapped = cache.unmap(word, word_mask(word, vma.pgoff, vma.end()));
        copies += u64::from(unmapped.copied.count_ones());
        let mut accessed = if vma.advice.has_recency() { unmapped.accessed } else { 0 };
        while accessed != 0 {
            let index = PageIndex(word * WORD_PAGES + u64::from(accessed.trailing_zeros()));
            accessed &= accessed - 1;
            if index >= used
                && let Some(folio) = cache.folio(index)
            {
                cache.mark_accessed(index);
                used = folio.end();
            }
        }
    }
    PageCount(copies)
}
