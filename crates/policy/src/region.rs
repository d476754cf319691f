//! The regions of a file: bitmaps of pages that were read or requested, fault counts, and the units
//! that were read ahead.

use std::collections::BTreeMap;
use std::mem;

use crate::reads::PageRange;

/// Pages of a region: 2 MiB of 4 KiB pages.
pub const REGION_PAGES: u64 = 512;

/// Pages of a block, the smallest unit of reading ahead.
const BLOCK_PAGES: u64 = 32;

const BLOCKS: usize = (REGION_PAGES / BLOCK_PAGES) as usize;

/// Pages mapped by one fault if cached: the kernel's default fault-around.
pub const AROUND_PAGES: u64 = 16;

/// The units in which pages are read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuySize {
    Block,
    Group,
    Region,
}

impl BuySize {
    /// Largest first.
    pub const ALL: [BuySize; 3] = [BuySize::Region, BuySize::Group, BuySize::Block];

    pub const fn pages(self) -> u64 {
        match self {
            BuySize::Block => BLOCK_PAGES,
            BuySize::Group => 4 * BLOCK_PAGES,
            BuySize::Region => REGION_PAGES,
        }
    }

    /// The unit that contains `page`.
    pub const fn around(self, page: u64) -> PageRange {
        let first = page / self.pages() * self.pages();
        PageRange { first, end: first.saturating_add(self.pages()) }
    }
}

/// Totals over visited regions that were not read as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnboughtTotals {
    /// Faults that read a page.
    pub faults: u64,
    /// Pages not known to be in memory.
    pub pages: u64,
}

impl UnboughtTotals {
    pub const fn add(&mut self, other: UnboughtTotals) {
        self.faults += other.faults;
        self.pages += other.pages;
    }

    pub const fn subtract(&mut self, other: UnboughtTotals) {
        self.faults -= other.faults;
        self.pages -= other.pages;
    }
}

/// State of a region. Pages are given by their number in the file.
#[derive(Clone, Debug)]
pub struct Region {
    /// Pages that were read or requested.
    known: [u64; (REGION_PAGES / 64) as usize],
    /// Pages the kernel's own windows would have read, in comparison number `compared`.
    around: [u64; (REGION_PAGES / 64) as usize],
    compared: u32,
    /// Faults that read a page, per block.
    faults: [u16; BLOCKS],
    /// By block: the size of the unit that it was read ahead with.
    bought: [Option<BuySize>; BLOCKS],
    /// A bit per [`AROUND_PAGES`] pages: whether read-ahead pages were used there.
    used: u32,
    /// Faults that waited for a known page.
    pub waits: u16,
    /// Whether the whole region was read.
    pub is_bought: bool,
    /// If this is the last region of a series read ahead: the length of the series.
    pub ahead: u64,
}

impl Region {
    pub const NEW: Region = Region {
        known: [0; (REGION_PAGES / 64) as usize],
        around: [0; (REGION_PAGES / 64) as usize],
        compared: 0,
        faults: [0; BLOCKS],
        bought: [None; BLOCKS],
        used: 0,
        waits: 0,
        is_bought: false,
        ahead: 0,
    };

    pub fn knows(&self, page: u64) -> bool {
        has(&self.known, page)
    }

    /// Marks these pages of the region as in memory or requested.
    pub fn add(&mut self, pages: PageRange) {
        words(pages).for_each(|(word, mask)| self.known[word] |= mask);
    }

    /// Number of these pages of the region that are not known.
    pub fn unknown(&self, pages: PageRange) -> u64 {
        words(pages).map(|(word, mask)| u64::from((!self.known[word] & mask).count_ones())).sum()
    }

    /// Whether the kernel would have read `page` by now, in comparison `number`.
    pub fn is_around(&self, page: u64, number: u32) -> bool {
        self.compared == number && has(&self.around, page)
    }

    /// Marks these pages of the region as read by the kernel's window. Returns how many of them are
    /// new.
    pub fn add_around(&mut self, pages: PageRange, number: u32) -> u64 {
        if self.compared != number {
            (self.around, self.compared) = (Region::NEW.around, number);
        }
        words(pages)
            .map(|(word, mask)| {
                let fresh = mask & !self.around[word] & !self.known[word];
                self.around[word] |= mask;
                u64::from(fresh.count_ones())
            })
            .sum()
    }

    /// The contribution of region `number` to the totals of visited regions.
    pub fn unbought(&self, number: u64) -> UnboughtTotals {
        let pages = BuySize::Region.around(number.saturating_mul(REGION_PAGES));
        let faults = self.faults(BuySize::Region, pages.first);
        if self.is_bought || faults == 0 {
            return UnboughtTotals::default();
        }
        UnboughtTotals { faults, pages: self.unknown(pages) }
    }

    /// Counts a fault that read `page`.
    pub fn count_fault(&mut self, page: u64) {
        let faults = &mut self.faults[block(page)];
        *faults = faults.saturating_add(1);
    }

    /// Faults that read pages of the unit around `page`.
    pub fn faults(&self, size: BuySize, page: u64) -> u64 {
        let first = block(size.around(page).first);
        let blocks = (size.pages() / BLOCK_PAGES) as usize;
        self.faults[first..first + blocks].iter().map(|&faults| u64::from(faults)).sum()
    }

    /// Marks the unit around `page` as read.
    pub fn buy(&mut self, size: BuySize, page: u64) {
        let first = block(size.around(page).first);
        let blocks = (size.pages() / BLOCK_PAGES) as usize;
        for bought in self.bought[first..first + blocks].iter_mut() {
            *bought = bought.or(Some(size));
        }
        self.is_bought |= size == BuySize::Region;
    }

    /// Records an access to a known page. Returns the unit it was read in, on the first use of the
    /// pages that fault-around maps with it.
    pub fn use_bought(&mut self, page: u64) -> Option<BuySize> {
        let size = self.bought[block(page)]?;
        let bit = 1 << (page % REGION_PAGES / AROUND_PAGES);
        let is_first = self.used & bit == 0;
        self.used |= bit;
        is_first.then_some(size)
    }
}

fn block(page: u64) -> usize {
    (page % REGION_PAGES / BLOCK_PAGES) as usize
}

fn has(words: &[u64; (REGION_PAGES / 64) as usize], page: u64) -> bool {
    let at = page % REGION_PAGES;
    words[(at / 64) as usize] >> (at % 64) & 1 == 1
}

/// Index and mask of each bitmap word with bits of `pages`, which lie in one region.
fn words(pages: PageRange) -> impl Iterator<Item = (usize, u64)> {
    let mut first = pages.first;
    std::iter::from_fn(move || {
        let at = first % REGION_PAGES;
        let count = (64 - at % 64).min(pages.end.checked_sub(first).filter(|left| *left > 0)?);
        first += count;
        Some(((at / 64) as usize, u64::MAX >> (64 - count) << (at % 64)))
    })
}

/// Maximum number of regions per generation. Two generations are kept: at most 20 MiB of memory,
/// for 128 GiB of a file.
const MAX_GENERATION_REGIONS: usize = 32_768;

/// Regions by number. When a generation is full, the previous one is dropped except for regions
/// visited since.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    young: BTreeMap<u64, Region>,
    old: BTreeMap<u64, Region>,
    unbought: UnboughtTotals,
}

impl Regions {
    /// Totals of visited regions that were not read.
    pub const fn unbought(&self) -> UnboughtTotals {
        self.unbought
    }

    /// Updates the region of `page`, keeping the totals current.
    pub fn update<T>(&mut self, page: u64, change: impl FnOnce(&mut Region) -> T) -> T {
        let number = page / REGION_PAGES;
        let Regions { young, old, unbought: open } = self;
        if !young.contains_key(&number) {
            let region = old.remove(&number).unwrap_or(Region::NEW);
            if young.len() >= MAX_GENERATION_REGIONS {
                for (&number, forgotten) in &mem::replace(old, mem::take(young)) {
                    open.subtract(forgotten.unbought(number));
                }
            }
            young.insert(number, region);
        }
        let region = young.get_mut(&number).expect("it was inserted");
        open.subtract(region.unbought(number));
        let result = change(region);
        open.add(region.unbought(number));
        result
    }

    /// Marks these pages as in memory or requested.
    pub fn add(&mut self, pages: PageRange) {
        let mut first = pages.first;
        while first < pages.end {
            let end = (first / REGION_PAGES + 1).saturating_mul(REGION_PAGES).min(pages.end);
            self.update(first, |region| region.add(PageRange { first, end }));
            first = end;
        }
    }
}
