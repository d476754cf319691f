//! A region of a file: what is in memory of it, what its faults have cost, what was bought.

use crate::pages::Pages;

/// Pages of a region: 2 MiB of pages of 4 KiB.
pub const REGION_PAGES: u64 = 512;

/// Pages of a block, which is the least that is bought.
const BLOCK_PAGES: u64 = 32;

const BLOCKS: usize = (REGION_PAGES / BLOCK_PAGES) as usize;

/// Pages that one fault maps if they are in memory: fault-around, as kernels have it by default.
pub const AROUND_PAGES: u64 = 16;

/// How much is bought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Block,
    Group,
    Region,
}

impl Size {
    /// The largest first.
    pub const ALL: [Size; 3] = [Size::Region, Size::Group, Size::Block];

    pub const fn pages(self) -> u64 {
        match self {
            Size::Block => BLOCK_PAGES,
            Size::Group => 4 * BLOCK_PAGES,
            Size::Region => REGION_PAGES,
        }
    }

    /// The pages around `page` that are bought together.
    pub const fn around(self, page: u64) -> Pages {
        let first = page / self.pages() * self.pages();
        Pages { first, end: first.saturating_add(self.pages()) }
    }
}

/// Sums over regions that were come to and not bought as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Faults that read a page.
    pub faults: u64,
    /// Pages that are not known.
    pub pages: u64,
}

impl Open {
    pub const fn add(&mut self, other: Open) {
        self.faults += other.faults;
        self.pages += other.pages;
    }

    pub const fn take(&mut self, other: Open) {
        self.faults -= other.faults;
        self.pages -= other.pages;
    }
}

/// What is known of a region. Pages are told by their number in the file.
#[derive(Clone, Debug)]
pub struct Region {
    /// Pages that were read or asked for.
    known: [u64; (REGION_PAGES / 64) as usize],
    /// Pages that the kernel's own windows would have read, in the comparison of that number.
    around: [u64; (REGION_PAGES / 64) as usize],
    compared: u32,
    /// Faults that read a page, in each block.
    faults: [u16; BLOCKS],
    /// What was bought, each block as a part of what.
    bought: [Option<Size>; BLOCKS],
    /// Of each [`AROUND_PAGES`] pages, whether what was bought there was used.
    used: u32,
    /// Faults that waited for a page that is known.
    pub waits: u16,
    /// Whether all of it was bought.
    pub is_bought: bool,
    /// How many regions were bought ahead, of which this is the last one.
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

    /// Notes that these pages, which are of this region, are in memory or will be.
    pub fn add(&mut self, pages: Pages) {
        words(pages).for_each(|(word, mask)| self.known[word] |= mask);
    }

    /// How many of these pages, which are of this region, are not known.
    pub fn unknown(&self, pages: Pages) -> u64 {
        words(pages).map(|(word, mask)| u64::from((!self.known[word] & mask).count_ones())).sum()
    }

    /// Whether the kernel would have read `page` by now, in the comparison of that number.
    pub fn is_around(&self, page: u64, number: u32) -> bool {
        self.compared == number && has(&self.around, page)
    }

    /// Notes that the kernel would have read these pages, which are of this region. Returns how
    /// many of them it would not have had.
    pub fn add_around(&mut self, pages: Pages, number: u32) -> u64 {
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

    /// What it adds to the sums over all regions that were come to and not bought.
    pub fn open(&self, number: u64) -> Open {
        let pages = Size::Region.around(number.saturating_mul(REGION_PAGES));
        let faults = self.faults(Size::Region, pages.first);
        if self.is_bought || faults == 0 {
            return Open::default();
        }
        Open { faults, pages: self.unknown(pages) }
    }

    /// Counts a fault that read `page`.
    pub fn count_fault(&mut self, page: u64) {
        let faults = &mut self.faults[block(page)];
        *faults = faults.saturating_add(1);
    }

    /// Faults that read a page of what is bought together with `page`.
    pub fn faults(&self, size: Size, page: u64) -> u64 {
        let first = block(size.around(page).first);
        let blocks = (size.pages() / BLOCK_PAGES) as usize;
        self.faults[first..first + blocks].iter().map(|&faults| u64::from(faults)).sum()
    }

    /// Notes that all around `page` was bought.
    pub fn buy(&mut self, size: Size, page: u64) {
        let first = block(size.around(page).first);
        let blocks = (size.pages() / BLOCK_PAGES) as usize;
        for bought in self.bought[first..first + blocks].iter_mut() {
            *bought = bought.or(Some(size));
        }
        self.is_bought |= size == Size::Region;
    }

    /// A page that is known was come to. Says as a part of what it was bought, if it was and this
    /// is the first use of the pages that fault-around maps with it.
    pub fn use_bought(&mut self, page: u64) -> Option<Size> {
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

/// The words of a region that have bits of `pages`, each with these bits.
fn words(pages: Pages) -> impl Iterator<Item = (usize, u64)> {
    let mut first = pages.first;
    std::iter::from_fn(move || {
        let at = first % REGION_PAGES;
        let count = (64 - at % 64).min(pages.end.checked_sub(first).filter(|left| *left > 0)?);
        first += count;
        Some(((at / 64) as usize, u64::MAX >> (64 - count) << (at % 64)))
    })
}
