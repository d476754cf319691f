//! MADV_COLD and MADV_PAGEOUT: which folios of a range are deactivated or evicted.
//!
//! In a memory cgroup, MADV_PAGEOUT is not reclaim caused by memory pressure: the kernel records
//! these evictions by the machine-wide clock, and judges refaults by the machine-wide active list.
//! As the machine is not modelled, that list is assumed to be longer than all evictions in between,
//! so such a folio returns to the active list.

use crate::address::entries::{Layer, MappedFile};
use crate::address::mapping::FileMapping;
use crate::address::page_table::PageTables;
use crate::address::reverse_map::FileMappings;
use crate::cache::{FileCache, Folio, WORD_PAGES, by_word};
use crate::fault::map;
use crate::lru::reclaim::{FolioVerdict, Referenced, judge_folio};
use crate::page_cache::PageCache;
use crate::readahead::Limits;
use crate::rules::AdvisedFolios;
use crate::units::{FileId, Order, PageCount, PageIndex};

/// What happens to a folio encountered in the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvisedAction {
    /// It is skipped.
    Keep,
    /// It is split into unmapped base pages.
    Split,
    /// It is skipped along with the rest of the page-table page.
    SkipTable,
    /// The advice is applied to it.
    Apply,
}

/// A folio encountered in the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedFolio {
    /// The folio.
    pub folio: Folio,
    /// Its consecutive entries inside the range.
    pub entries: PageCount,
    /// Whether a PMD entry maps it.
    pub is_huge: bool,
}

/// How a folio is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolioUsers {
    /// Mapped pages over all VMAs; a PMD entry counts once per page.
    pub entries: PageCount,
    /// Number of VMAs that map its first page.
    pub first_page_vmas: usize,
    /// Number of VMAs that map the page at which it was encountered.
    pub page_vmas: usize,
    /// Whether another process maps part of it.
    pub has_other_process: bool,
}

/// Decides about the folio `met`.
///
/// Mirrors `madvise_cold_or_pageout_pte_range`, 6.1, 6.6, 6.12 and 6.18. Test:
/// `tests/cold_or_pageout.rs`.
pub fn advised_action(
    mapped: &MappedFolio,
    users: &FolioUsers,
    rule: AdvisedFolios,
) -> AdvisedAction {
    let MappedFolio { folio, entries, is_huge } = *mapped;
    let pages = PageCount(folio.order.pages());
    let is_shared = match rule {
        AdvisedFolios::SplitByPage if !is_huge => users.page_vmas != 1,
        AdvisedFolios::SplitByPage | AdvisedFolios::SplitByFirstPage => users.first_page_vmas != 1,
        AdvisedFolios::KeepByEntries => users.entries > pages || users.first_page_vmas > 1,
        AdvisedFolios::KeepByProcesses => users.has_other_process,
    };
    let keeps = matches!(rule, AdvisedFolios::KeepByEntries | AdvisedFolios::KeepByProcesses);
    let is_base = folio.order == Order(0);
    let (is_whole, is_own) = (entries == pages, users.entries == pages);
    if is_base || keeps && is_whole && !is_huge {
        return if is_own { AdvisedAction::Apply } else { AdvisedAction::Keep };
    }
    match (is_huge, is_shared || !(is_huge && is_whole) && folio.locked) {
        (true, true) => AdvisedAction::Keep,
        (false, true) => {
            if keeps {
                AdvisedAction::Keep
            } else {
                AdvisedAction::SkipTable
            }
        }
        (true, false) if is_whole => AdvisedAction::Apply,
        (_, false) => AdvisedAction::Split,
    }
}

/// The mapping that is advised.
#[derive(Debug)]
pub struct AdvisedRange<'a> {
    /// The file.
    pub file: FileId,
    /// The mapping.
    pub mapping: &'a FileMapping,
    /// Layer of its entries.
    pub layer: Layer,
    /// All mappings of the file.
    pub mappings: &'a FileMappings,
    /// The page tables of its process.
    pub tables: &'a PageTables,
    /// Limits of the file.
    pub limits: &'a Limits,
}

impl AdvisedRange<'_> {
    /// Splits `from..end` by VMA and page-table page, as the kernel walks them.
    pub fn parts(&self, from: PageIndex, end: PageIndex) -> Vec<(PageIndex, PageIndex)> {
        let entries = self.limits.arch.pte_entries;
        let mut parts = Vec::new();
        for (vma, from, end) in self.mapping.vmas(from, end) {
            let mut next = from;
            while next < end {
                let vpn = vma.vpn(next);
                let table_end = next + PageCount(entries - vpn.0 % entries);
                parts.push((next, table_end.min(end)));
                next = table_end;
            }
        }
        parts
    }

    /// Walks one part, splitting folios that are only partly covered. Returns the folios to which
    /// the advice applies, in page order.
    pub fn collect_folios(
        &self,
        (from, end): (PageIndex, PageIndex),
        cache: &mut impl PageCache,
    ) -> Vec<Folio> {
        let mut selected = Vec::new();
        let mut next = from;
        while let Some(index) = self.next_mapped(next, end, cache) {
            let mapped = self.mapped_folio_at(index, end, cache);
            next = index + mapped.entries;
            match advised_action(
                &mapped,
                &self.folio_users(&mapped, index, cache),
                self.limits.rules.advised_folios,
            ) {
                AdvisedAction::Keep => {}
                AdvisedAction::Split => self.split(&mapped, cache),
                AdvisedAction::SkipTable => return selected,
                AdvisedAction::Apply => selected.push(mapped.folio),
            }
            if mapped.is_huge {
                return selected;
            }
        }
        selected
    }

    /// Whether to evict a folio: some kernels keep it if it was accessed through other mappings.
    ///
    /// Mirrors `reclaim_folio_list`, 6.1 and 6.6. Test: `tests/cold_or_pageout.rs`.
    pub fn judge(&self, folio: Folio, cache: &mut impl PageCache) -> FolioVerdict {
        if !self.limits.rules.paging_out_judges {
            return FolioVerdict::Evict;
        }
        self.make_old(&[folio], cache);
        let mut accessed = Referenced::new(self.mappings);
        for (layer, _) in cache.mapped_in(self.file, folio.head, folio.end()) {
            for (word, mask) in by_word(folio.head, folio.end()) {
                let recency = mask & self.mappings.recency_mask(layer, word);
                accessed.add(layer, word, cache.mapped(self.file, layer).make_old(word, recency));
            }
        }
        judge_folio(accessed.vmas, false, accessed.executable)
    }

    /// Clears the accessed bits of its entries for `folios`.
    pub fn make_old(&self, folios: &[Folio], cache: &mut impl PageCache) {
        let mut file = cache.mapped(self.file, self.layer);
        for folio in folios {
            for (word, mask) in by_word(folio.head, folio.end()) {
                file.make_old(word, mask);
            }
        }
    }

    /// The first page from `from` on that it maps.
    fn next_mapped(
        &self,
        from: PageIndex,
        end: PageIndex,
        cache: &mut impl PageCache,
    ) -> Option<PageIndex> {
        let file = cache.mapped(self.file, self.layer);
        by_word(from, end).find_map(|(word, mask)| {
            let mapped = file.pages(word, mask).mapped & mask;
            (mapped != 0).then(|| PageIndex(word * WORD_PAGES + u64::from(mapped.trailing_zeros())))
        })
    }

    /// The folio mapped at `index`, and how many of its pages are mapped from there on, before
    /// `end`.
    fn mapped_folio_at(
        &self,
        index: PageIndex,
        end: PageIndex,
        cache: &mut impl PageCache,
    ) -> MappedFolio {
        let file = cache.mapped(self.file, self.layer);
        let folio = file.folio(index).expect("what is mapped is cached");
        let last = folio.end().min(end);
        let mut next = index;
        while next < last && file.entry(next).0 {
            next += PageCount(1);
        }
        let Limits { arch, .. } = self.limits;
        let vma = self.mapping.vma(index);
        let is_huge = folio.order == arch.pmd_order()
            && !self.tables.is_installed(vma.vpn(index), arch.pte_entries);
        MappedFolio { folio, entries: next - index, is_huge }
    }

    fn folio_users(
        &self,
        mapped: &MappedFolio,
        index: PageIndex,
        cache: &mut impl PageCache,
    ) -> FolioUsers {
        let (head, end) = (mapped.folio.head, mapped.folio.end());
        let layers = cache.mapped_in(self.file, head, end);
        let entries = layers.iter().map(|(_, pages)| pages.0).sum();
        let of_page = |page: PageIndex, cache: &mut _| {
            PageCache::mapped_in(cache, self.file, page, page + PageCount(1)).len()
        };
        let process = self.mapping.process;
        let are_several = layers.iter().any(|(layer, _)| {
            let mut others = self.mappings.mapped_by_others(*layer, (head, end), process);
            others.any(|(from, end)| {
                let layers = cache.mapped_in(self.file, from, end);
                layers.iter().any(|(other, _)| other == layer)
            })
        });
        let (of_first, of_met) = (of_page(head, cache), of_page(index, cache));
        FolioUsers {
            entries: PageCount(entries),
            first_page_vmas: of_first,
            page_vmas: of_met,
            has_other_process: are_several,
        }
    }

    /// Splits a folio. Accessed PMD entries that mapped it leave it referenced.
    fn split(&self, mapped: &MappedFolio, cache: &mut impl PageCache) {
        let Folio { head, .. } = mapped.folio;
        for (layer, _) in cache.mapped_in(self.file, head, mapped.folio.end()) {
            if let Some(vma) = self.mappings.vma(layer, head) {
                let mut file = cache.mapped(self.file, layer);
                map::unmap_huge(head, &vma, self.limits, self.tables, &mut file);
            }
        }
        cache.split(self.file, mapped.folio, self.limits.rules.split_reverses);
    }
}
