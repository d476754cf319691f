//! The instruction TLB: hits, misses and page-table walks.

use filemap_core::address::entries::MappedFile;
use filemap_core::address::page_table::PageTables;
use filemap_core::address::vma::Vma;
use filemap_core::cache::by_word;
use filemap_core::fault::map;
use filemap_core::readahead::Limits;
use filemap_core::units::{Order, PageCount, PageIndex, Vpn};

use crate::profile;

/// Two levels of translations with LRU replacement within each set.
#[derive(Debug)]
pub struct Tlb {
    profile: profile::InstructionTlb,
    page_size: u64,
    first: TlbSets,
    second: TlbSets,
}

/// Counters of a TLB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlbCounts {
    /// Calls that missed the first level.
    pub misses: u64,
    /// Calls that missed both levels: the page tables were walked.
    pub walks: u64,
}

impl TlbCounts {
    /// Sum of both.
    pub fn plus(self, other: TlbCounts) -> TlbCounts {
        TlbCounts { misses: self.misses + other.misses, walks: self.walks + other.walks }
    }
}

impl Tlb {
    /// An empty TLB, for pages of `page_size` bytes.
    pub fn new(profile: profile::InstructionTlb, page_size: u64) -> Tlb {
        Tlb {
            profile,
            page_size,
            first: TlbSets::new(&profile.first),
            second: TlbSets::new(&profile.second),
        }
    }

    /// Looks up a translation, inserts it if missing, and counts misses. Returns the time taken in
    /// nanoseconds.
    pub fn look_up(&mut self, translation: Translation, counts: &mut TlbCounts) -> u64 {
        let largest = |level: &profile::TlbLevel| {
            Order::fitting(PageCount(level.largest_bytes / self.page_size))
        };
        if self.first.look_up(translation.truncate(largest(&self.profile.first))) {
            return self.profile.first.hit_ns;
        }
        counts.misses += 1;
        if self.second.look_up(translation.truncate(largest(&self.profile.second))) {
            return self.profile.second.hit_ns;
        }
        counts.walks += 1;
        self.profile.walk_ns
    }
}

impl Tlb {
    /// Invalidates the translations of the pages `from..end`.
    pub fn flush(&mut self, from: Vpn, end: Vpn) {
        for level in [&mut self.first, &mut self.second] {
            let is_kept = |entry: &TlbEntry| {
                let start = entry.number << entry.order.0;
                start + entry.order.pages() <= from.0 || end.0 <= start
            };
            level.sets.iter_mut().for_each(|set| set.retain(is_kept));
        }
    }
}

/// An aligned run of virtual pages covered by one translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The page whose code is called.
    pub vpn: Vpn,
    /// Length of the run, as an order.
    pub order: Order,
}

impl Translation {
    /// The entry for the part of it that fits into `largest`.
    fn truncate(self, largest: Order) -> TlbEntry {
        let order = self.order.min(largest);
        TlbEntry { number: self.vpn.0 >> order.0, order }
    }
}

/// The translation of the mapped page `index` of `vma`: a PMD entry, a contiguous-bit run, or a
/// single page.
///
/// arm64 sets the contiguous bit on an aligned run of entries that maps one folio. Folios are
/// aligned both in the file and in physical memory, so the VMA must be congruent to the file.
/// Mirrors `contpte_set_ptes` and `contpte_try_fold`, 6.18. Test: `tests/tlb.rs`.
pub fn translation(
    index: PageIndex,
    vma: &Vma,
    limits: &Limits,
    tables: &PageTables,
    cache: &impl MappedFile,
) -> Translation {
    let vpn = vma.vpn(index);
    let page = Translation { vpn, order: Order(0) };
    let Some(folio) = cache.folio(index) else {
        return page;
    };
    if map::maps_by_pmd(folio, vma, limits, tables) {
        return Translation { vpn, order: limits.arch.pmd_order() };
    }
    let order = limits.arch.contiguous_order;
    let run = index.align_down(order);
    let end = run + PageCount(order.pages());
    let congruent = vpn.0 % order.pages() == index.0 % order.pages();
    let inside = vma.pgoff <= run && end <= vma.end();
    if folio.order < order || !congruent || !inside {
        return page;
    }
    let is_mapped = |(word, mask)| mask & !cache.pages(word, mask).mapped == 0;
    if by_word(run, end).all(is_mapped) { Translation { vpn, order } } else { page }
}

/// One level of the TLB.
#[derive(Debug)]
struct TlbSets {
    ways: usize,
    /// Entries of each set, most recently used first.
    sets: Vec<Vec<TlbEntry>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TlbEntry {
    number: u64,
    order: Order,
}

impl TlbSets {
    fn new(profile: &profile::TlbLevel) -> TlbSets {
        let sets = (profile.entries / profile.ways).max(1) as usize;
        TlbSets { ways: profile.ways as usize, sets: vec![Vec::new(); sets] }
    }

    /// Whether `entry` hits. It becomes the most recently used one either way.
    fn look_up(&mut self, entry: TlbEntry) -> bool {
        let set = (entry.number % self.sets.len() as u64) as usize;
        let set = &mut self.sets[set];
        let found = set.iter().position(|&held| held == entry);
        match found {
            Some(position) => set[..=position].rotate_right(1),
            None => {
                set.truncate(self.ways - 1);
                set.insert(0, entry);
            }
        }
        found.is_some()
    }
}
