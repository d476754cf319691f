//! Rent or buy: whether a miss reads its page alone or a window, by what windows have been worth.
//!
//! It stands in place of the counter of misses ([`super::miss`]). A page that is read alone is
//! rented, and a window is bought. A window is bought from credit, which misses that rent earn, and
//! hits. Its price doubles with each window that was not worth it, and halves with each that was.
//! A miss close to the last rented page speaks for windows as a hit does.

use crate::units::{PageCount, PageIndex};

/// What an open file has learnt. The kernel has its 32 bits in place of `mmap_miss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rent {
    /// The block of the page that was last read alone: its low 11 bits.
    last: u16,
    /// The last miss bought a window.
    bought: bool,
    /// What windows may cost, in misses that read their page alone.
    credit: u16,
    /// How often the price has doubled, up to [`MAX_LEVEL`].
    level: u8,
    /// What spoke for windows since the last one, up to [`MAX_HITS`].
    hits: u8,
}

/// Reading as many pages takes about as long as one fault waits for its page.
pub const PAGES_OF_A_FAULT: u64 = 32;

/// The price doubles as often as this, and no more.
pub const MAX_LEVEL: u8 = 6;

/// Hits of one window are counted up to this: 5 bits.
pub const MAX_HITS: u8 = 31;

/// The highest price, and the highest credit: 12 bits.
pub const MAX_PRICE: u16 = 4095;

/// The credit that hits can earn.
pub const MAX_SAVED: u16 = 16;

/// The credit of a file that was just opened.
pub const FIRST_CREDIT: u16 = 256;

/// No price doubles where as much credit is left.
pub const ENOUGH_CREDIT: u16 = 64;

/// Pages of a block, as a power of two: misses in one block or in neighbours are close.
pub const BLOCK_SHIFT: u32 = 3;

impl Rent {
    /// A file that was just opened.
    pub const NEW: Rent = Rent { last: 0, bought: false, credit: FIRST_CREDIT, level: 0, hits: 0 };

    /// A miss on page `index`; returns whether it reads a window, which has up to `window` pages.
    ///
    /// A rule of our own. Test: `tests/rent.rs`.
    pub fn missed(&mut self, index: PageIndex, window: PageCount) -> bool {
        if self.is_close(index) {
            self.hits = (self.hits + 1).min(MAX_HITS);
            self.credit = (self.credit + 1).min(MAX_PRICE);
        }
        let base = window.0.div_ceil(PAGES_OF_A_FAULT).min(MAX_PRICE.into()) as u16;
        let price = (u32::from(base) << self.level).min(MAX_PRICE.into()) as u16;
        if self.credit < price {
            self.credit += 1;
            self.last = block(index);
            self.bought = false;
            return false;
        }
        self.credit -= price;
        if u16::from(self.hits) >= base.min(MAX_HITS.into()) {
            self.level = self.level.saturating_sub(1);
        } else if self.credit < ENOUGH_CREDIT {
            self.level = (self.level + 1).min(MAX_LEVEL);
        }
        self.hits = 0;
        self.bought = true;
        true
    }

    /// Counts a hit, if it can be one of the last window: after a page that was read alone hits may
    /// be those of any page that is cached.
    ///
    /// A rule of our own. Test: `tests/rent.rs`.
    pub fn hit(&mut self) {
        if self.bought {
            self.hits = (self.hits + 1).min(MAX_HITS);
            if self.credit < MAX_SAVED {
                self.credit += 1;
            }
        }
    }

    /// Whether page `index` is close to the one that was last read alone.
    fn is_close(&self, index: PageIndex) -> bool {
        block(index).wrapping_sub(self.last).wrapping_add(1) & BLOCK_MASK <= 2
    }
}

/// The bits of a block that are kept.
const BLOCK_MASK: u16 = 0x7ff;

fn block(index: PageIndex) -> u16 {
    (index.0 >> BLOCK_SHIFT) as u16 & BLOCK_MASK
}
