//! MADV_COLD and MADV_PAGEOUT: which folios a part of a mapping gives up.
//!
//! What MADV_PAGEOUT evicts was not evicted for want of memory in a memory cgroup: the kernel notes
//! it by the clock of the whole machine, and judges its return by the active list of the whole
//! machine. Where that is not what is modelled, it is taken to be longer than all that leaves
//! meanwhile, so that such a folio returns to the active list.

use crate::address::entries::{Layer, MappedFile};
use crate::address::mapping::Mapping;
use crate::address::page_table::PageTables;
use crate::address::reverse_map::FileMappings;
use crate::cache::{FileCache, Folio, WORD_PAGES, by_word};
use crate::fault::map;
use crate::lru::reclaim::{Referenced, Verdict, judge_folio};
use crate::page_cache::PageCache;
use crate::readahead::Limits;
use crate::rules::AdvisedFolios;
use crate::units::{FileId, Order, PageCount, PageIndex};

/// What becomes of a folio that is met among the entries of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing.
    Kept,
    /// It becomes base pages, which nothing maps.
    Split,
    /// Nothing, and nothing of the rest of the page-table page.
    EndsTable,
    /// The advice is carried out on it.
    Given,
}

/// A folio as it is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// The folio.
    pub folio: Folio,
    /// Its entries that are met in one piece.
    pub entries: PageCount,
    /// One PMD entry maps it.
    pub is_huge: bool,
}

/// Who maps a folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Users {
    /// Entries of its pages, in all VMAs. One PMD entry counts as one for each page.
    pub entries: PageCount,
    /// VMAs that map its first page.
    pub of_first: usize,
    /// VMAs that map the page where it is met.
    pub of_met: usize,
    /// Another process maps some of it.
    pub are_several: bool,
}

/// What becomes of a folio that is `met`.
///
/// Mirrors `madvise_cold_or_pageout_pte_range`, 6.1, 6.6, 6.12 and 6.18. Test: `tests/advised.rs`.
pub fn fate(met: &Met, users: &Users, rule: AdvisedFolios) -> Fate {
    let Met { folio, entries, is_huge } = *met;
    let pages = PageCount(folio.order.pages());
    let is_shared = match rule {
        AdvisedFolios::SplitByPage if !is_huge => users.of_met != 1,
        AdvisedFolios::SplitByPage | AdvisedFolios::SplitByFirstPage => users.of_first != 1,
        AdvisedFolios::KeepByEntries => users.entries > pages || users.of_first > 1,
        AdvisedFolios::KeepByProcesses => users.are_several,
    };
    let keeps = matches!(rule, AdvisedFolios::KeepByEntries | AdvisedFolios::KeepByProcesses);
    let is_base = folio.order == Order(0);
    let (is_whole, is_own) = (entries == pages, users.entries == pages);
    if is_base || keeps && is_whole && !is_huge {
        return if is_own { Fate::Given } else { Fate::Kept };
    }
    match (is_huge, is_shared || !(is_huge && is_whole) && folio.locked) {
        (true, true) => Fate::Kept,
        (false, true) => {
            if keeps {
                Fate::Kept
            } else {
                Fate::EndsTable
            }
        }
        (true, false) if is_whole => Fate::Given,
        (_, false) => Fate::Split,
    }
}

/// A mapping whose owner gives such advice.
#[derive(Debug)]
pub struct Advised<'a> {
    /// The file.
    pub file: FileId,
    /// The mapping.
    pub mapping: &'a Mapping,
    /// The layer that its entries are in.
    pub layer: Layer,
    /// All mappings of the file.
    pub mappings: &'a FileMappings,
    /// The page tables of its process.
    pub tables: &'a PageTables,
    /// The bounds of the file.
    pub limits: &'a Limits,
}

impl Advised<'_> {
    /// The parts of the pages `from..end` that lie in one VMA and in one page-table page: the
    /// kernel looks at each by itself.
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

    /// Goes over a part: folios are split where the advice is for some of their pages only. Returns
    /// those that the advice is carried out on, in the order of their pages.
    pub fn take(
        &self,
        (from, end): (PageIndex, PageIndex),
        cache: &mut impl PageCache,
    ) -> Vec<Folio> {
        let mut given = Vec::new();
        let mut next = from;
        while let Some(index) = self.next_mapped(next, end, cache) {
            let met = self.meet(index, end, cache);
            next = index + met.entries;
            match fate(&met, &self.users(&met, index, cache), self.limits.rules.advised_folios) {
                Fate::Kept => {}
                Fate::Split => self.split(&met, cache),
                Fate::EndsTable => return given,
                Fate::Given => given.push(met.folio),
            }
            if met.is_huge {
                return given;
            }
        }
        given
    }

    /// What becomes of a folio that is to be evicted: it stays where it was accessed through other
    /// mappings, on kernels that look.
    ///
    /// Mirrors `reclaim_folio_list`, 6.1 and 6.6. Test: `tests/advised.rs`.
    pub fn judge(&self, folio: Folio, cache: &mut impl PageCache) -> Verdict {
        if !self.limits.rules.paging_out_judges {
            return Verdict::Evict;
        }
        self.make_old(&[folio], cache);
        let mut accessed = Referenced::new(self.mappings);
        for (layer, _) in cache.mapped_in(self.file, folio.head, folio.end()) {
            for (word, mask) in by_word(folio.head, folio.end()) {
                let believed = mask & self.mappings.believed_mask(layer, word);
                accessed.add(layer, word, cache.mapped(self.file, layer).make_old(word, believed));
            }
        }
        judge_folio(accessed.vmas, false, accessed.executable)
    }

    /// The accessed bits of its entries for the pages of `folios` are cleared.
    pub fn make_old(&self, folios: &[Folio], cache: &mut impl PageCache) {
        let mut file = cache.mapped(self.file, self.layer);
        for folio in folios {
            for (word, mask) in by_word(folio.head, folio.end()) {
                file.make_old(word, mask);
            }
        }
    }

    /// The first page from `from` on that it has mapped.
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

    /// The folio that `index` is mapped to, and how much of it is mapped from there on, before
    /// `end`.
    fn meet(&self, index: PageIndex, end: PageIndex, cache: &mut impl PageCache) -> Met {
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
        Met { folio, entries: next - index, is_huge }
    }

    fn users(&self, met: &Met, index: PageIndex, cache: &mut impl PageCache) -> Users {
        let (head, end) = (met.folio.head, met.folio.end());
        let layers = cache.mapped_in(self.file, head, end);
        let entries = layers.iter().map(|(_, pages)| pages.0).sum();
        let of_page = |page: PageIndex, cache: &mut _| {
            PageCache::mapped_in(cache, self.file, page, page + PageCount(1)).len()
        };
        let process = self.mapping.process;
        let are_several = layers.iter().any(|(layer, _)| {
            let mut others = self.mappings.of_others(*layer, (head, end), process);
            others.any(|(from, end)| {
                let layers = cache.mapped_in(self.file, from, end);
                layers.iter().any(|(of, _)| of == layer)
            })
        });
        let (of_first, of_met) = (of_page(head, cache), of_page(index, cache));
        Users { entries: PageCount(entries), of_first, of_met, are_several }
    }

    /// Splits a folio. The PMD entries that map it leave it referenced where they were accessed.
    fn split(&self, met: &Met, cache: &mut impl PageCache) {
        let Folio { head, .. } = met.folio;
        for (layer, _) in cache.mapped_in(self.file, head, met.folio.end()) {
            if let Some(vma) = self.mappings.vma(layer, head) {
                let mut file = cache.mapped(self.file, layer);
                map::unmap_huge(head, &vma, self.limits, self.tables, &mut file);
            }
        }
        cache.split(self.file, met.folio, self.limits.rules.split_reverses);
    }
}
