//! The instruction TLB: which calls find their translation, and what the others cost.

use filemap_core::address::entries::MappedFile;
use filemap_core::address::page_table::PageTables;
use filemap_core::address::vma::Vma;
use filemap_core::cache::by_word;
use filemap_core::fault::map;
use filemap_core::readahead::Limits;
use filemap_core::units::{Order, PageCount, PageIndex, Vpn};

use crate::profile;

/// Two levels of translations, each replaced by least recent use within its sets.
#[derive(Debug)]
pub struct Tlb {
    profile: profile::InstructionTlb,
    page_size: u64,
    first: Level,
    second: Level,
}

/// What a TLB counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that did not find their translation in the first level.
    pub misses: u64,
    /// Those that did not find it in the second either: the tables were walked.
    pub walks: u64,
}

impl Counts {
    /// What both counted together.
    pub fn with(self, other: Counts) -> Counts {
        Counts { misses: self.misses + other.misses, walks: self.walks + other.walks }
    }
}

impl Tlb {
    /// An empty TLB, for pages of `page_size` bytes.
    pub fn new(profile: profile::InstructionTlb, page_size: u64) -> Tlb {
        Tlb {
            profile,
            page_size,
            first: Level::new(&profile.first),
            second: Level::new(&profile.second),
        }
    }

    /// Looks up a translation, keeps it, and counts what it misses. Returns the nanoseconds it
    /// took.
    pub fn look_up(&mut self, translation: Translation, counts: &mut Counts) -> u64 {
        let largest = |level: &profile::TlbLevel| {
            Order::fitting(PageCount(level.largest_bytes / self.page_size))
        };
        if self.first.has(translation.cut(largest(&self.profile.first))) {
            return self.profile.first.hit_ns;
        }
        counts.misses += 1;
        if self.second.has(translation.cut(largest(&self.profile.second))) {
            return self.profile.second.hit_ns;
        }
        counts.walks += 1;
        self.profile.walk_ns
    }
}

impl Tlb {
    /// The entries of the pages `from..end` are gone.
    pub fn flush(&mut self, from: Vpn, end: Vpn) {
        for level in [&mut self.first, &mut self.second] {
            let is_kept = |entry: &Entry| {
                let start = entry.number << entry.order.0;
                start + entry.order.pages() <= from.0 || end.0 <= start
            };
            level.sets.iter_mut().for_each(|set| set.retain(is_kept));
        }
    }
}

/// An aligned run of virtual pages that one entry of a TLB can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The page that is called.
    pub vpn: Vpn,
    /// How many pages the run has, as an order.
    pub order: Order,
}

impl Translation {
    /// The part of it that an entry of at most `largest` holds, as a number of its own.
    fn cut(self, largest: Order) -> Entry {
        let order = self.order.min(largest);
        Entry { number: self.vpn.0 >> order.0, order }
    }
}

/// The translation of page `index` of `vma`, which is mapped: a PMD's, a run of entries with the
/// contiguous bit, or a page's.
///
/// arm64 sets the bit on an aligned run of entries that one folio fills, where the folio lies in
/// memory as the run does: folios are aligned in the file and in physical memory, so the VMA has
/// to be congruent to the file. Mirrors `contpte_set_ptes` and `contpte_try_fold`, 6.18.
/// Test: `tests/tlb.rs`.
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

/// One level.
#[derive(Debug)]
struct Level {
    ways: usize,
    /// The entries of each set, most recently used first.
    sets: Vec<Vec<Entry>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    number: u64,
    order: Order,
}

impl Level {
    fn new(profile: &profile::TlbLevel) -> Level {
        let sets = (profile.entries / profile.ways).max(1) as usize;
        Level { ways: profile.ways as usize, sets: vec![Vec::new(); sets] }
    }

    /// Whether `entry` is there. It is, from now on.
    fn has(&mut self, entry: Entry) -> bool {
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
