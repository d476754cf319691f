//! Page tables: which parts of the address space have a page of entries, and mapping folios whole.

use std::collections::BTreeMap;

use crate::cache::{Folio, PageCache, word_mask, words};
use crate::decision::{Decision, Log};
use crate::fault::View;
use crate::readahead::Limits;
use crate::units::{PageCount, PageIndex, Vpn};
use crate::vma::Vma;

/// Which page-table pages exist: those of page entries, and two levels above them. The topmost
/// level comes with the process.
///
/// A PMD-sized folio is mapped by one PMD entry only where no page-table page is in its place.
#[derive(Clone, Debug, Default)]
pub struct PageTables {
    levels: [Tables; 3],
    pages: PageCount,
}

/// The page-table pages of one level, one bit each: 4096 a block, by the number of the block.
#[derive(Clone, Debug, Default)]
struct Tables(BTreeMap<u64, Box<[u64; 64]>>);

impl Tables {
    /// A block with its place in the map.
    const BLOCK_BYTES: u64 = 512 + 40;

    /// Notes page-table page `number`; returns whether it is new.
    fn insert(&mut self, number: u64) -> bool {
        let block = self.0.entry(number / 4096).or_insert_with(|| Box::new([0; 64]));
        let word = &mut block[(number / 64 % 64) as usize];
        let before = *word;
        *word |= 1 << (number % 64);
        *word != before
    }

    fn contains(&self, number: u64) -> bool {
        let block = self.0.get(&(number / 4096));
        block.is_some_and(|block| block[(number / 64 % 64) as usize] >> (number % 64) & 1 == 1)
    }
}

impl PageTables {
    /// The page-table page of `entries` entries that maps `vpn` exists from now on.
    pub fn install(&mut self, vpn: Vpn, entries: u64) {
        let mut number = vpn.0;
        for level in &mut self.levels {
            number /= entries;
            if !level.insert(number) {
                break;
            }
            self.pages += PageCount(1);
        }
    }

    /// Whether the page-table page of `entries` entries that maps `vpn` exists.
    pub fn is_installed(&self, vpn: Vpn, entries: u64) -> bool {
        self.levels[0].contains(vpn.0 / entries)
    }

    /// About how many bytes of memory the notes on them take.
    pub fn held_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.0.len() as u64 * Tables::BLOCK_BYTES).sum()
    }

    /// Pages that all of them take.
    pub fn pages(&self) -> PageCount {
        self.pages
    }
}

/// Maps `folio` by one PMD entry where it can be; returns whether it did.
///
/// Mirrors `filemap_map_pmd` and `do_set_pmd`, 6.12 and 6.18. Test: `tests/fault_around.rs`.
pub fn map_huge(
    folio: Folio,
    vma: &Vma,
    limits: &Limits,
    tables: &PageTables,
    cache: &mut impl PageCache,
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
pub fn maps_by_pmd(folio: Folio, vma: &Vma, limits: &Limits, tables: &PageTables) -> bool {
    let entries = limits.arch.pte_entries;
    folio.order == limits.arch.pmd_order()
        && lies_within(folio, vma, limits)
        && vma.vpn(folio.head).0.is_multiple_of(entries)
        && !tables.is_installed(vma.vpn(folio.head), entries)
}

/// Whether `folio` can be mapped as a whole by the entries of one page-table page.
///
/// Mirrors `filemap_map_folio_range` and `finish_fault`, 6.18. Test: `tests/fault_around.rs`.
pub fn maps_whole(folio: Folio, vma: &Vma, limits: &Limits) -> bool {
    let entries = limits.arch.pte_entries;
    limits.rules.maps_whole_folio
        && lies_within(folio, vma, limits)
        && vma.vpn(folio.head).0 / entries == vma.vpn(folio.end() - PageCount(1)).0 / entries
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
    cache: &mut impl PageCache,
) -> PageCount {
    let mut mapped = 0;
    for number in words(from, end) {
        let word = cache.word(number);
        let new = word.present & !word.mapped & !word.copied & word_mask(number, from, end);
        if new != 0 {
            cache.map(number, new, if young { new } else { 0 });
            mapped += u64::from(new.count_ones());
        }
    }
    PageCount(mapped)
}

/// Maps the page `index` that a fault found in `folio`: by one PMD entry, with the rest of its
/// folio, or alone.
///
/// Mirrors `finish_fault`, 6.12 and 6.18. Test: `tests/fault.rs`.
pub fn map_found<C: PageCache, L: Log>(index: PageIndex, folio: Folio, view: &mut View<'_, C, L>) {
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

fn is_unmapped(folio: Folio, cache: &impl PageCache) -> bool {
    words(folio.head, folio.end()).all(|number| {
        let word = cache.word(number);
        (word.mapped | word.copied) & word_mask(number, folio.head, folio.end()) == 0
    })
}
