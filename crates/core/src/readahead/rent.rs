//! Rent or buy: whether a miss reads its page alone or a window, based on how useful windows have
//! been.
//!
//! Replaces the miss counter ([`super::miss`]). Reading a page alone is renting, reading a
//! window is buying. Windows are bought from credit, which misses that rent and hits earn. The
//! price doubles with each window that did not pay off, and halves with each that did. A miss close
//! to the last rented page counts in favour of windows, like a hit.

use crate::units::{PageCount, PageIndex};

/// State of an open file, in the 32 bits that would replace `mmap_miss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rent {
    /// Block of the page last read alone: its low 11 bits.
    last: u16,
    /// Whether the last miss bought a window.
    bought: bool,
    /// Credit for windows, in misses that read their page alone.
    credit: u16,
    /// Number of doublings of the price, up to [`MAX_LEVEL`].
    level: u8,
    /// Evidence for windows since the last one, up to [`MAX_HITS`].
    hits: u8,
}

/// Reading this many pages takes about as long as a fault waits for its page.
pub const PAGES_PER_FAULT: u64 = 32;

/// Maximum number of doublings of the price.
pub const MAX_LEVEL: u8 = 6;

/// Maximum number of hits counted per window: 5 bits.
pub const MAX_HITS: u8 = 31;

/// Maximum price and maximum credit: 12 bits.
pub const MAX_PRICE: u16 = 4095;

/// Maximum credit that hits can earn.
pub const MAX_SAVED: u16 = 16;

/// Initial credit of an open file.
pub const FIRST_CREDIT: u16 = 256;

/// The price does not double while this much credit is left.
pub const ENOUGH_CREDIT: u16 = 64;

/// log2 of the pages per block: misses in the same or neighbouring blocks are close.
pub const BLOCK_SHIFT: u32 = 3;

impl Rent {
    /// State of a newly opened file.
    pub const NEW: Rent = Rent { last: 0, bought: false, credit: FIRST_CREDIT, level: 0, hits: 0 };

    /// Records a miss on page `index`; returns whether it reads a window of up to `window` pages.
    ///
    /// A rule of our own. Test: `tests/rent.rs`.
    pub fn record_miss(&mut self, index: PageIndex, window: PageCount) -> bool {
        if self.is_close(index) {
            self.hits = (self.hits + 1).min(MAX_HITS);
            self.credit = (self.credit + 1).min(MAX_PRICE);
        }
        let base = window.0.div_ceil(PAGES_PER_FAULT).min(MAX_PRICE.into()) as u16;
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

    /// Counts a hit if it can belong to the last window: after a page that was read alone, hits may
    /// be on any cached page.
    ///
    /// A rule of our own. Test: `tests/rent.rs`.
    pub fn record_hit(&mut self) {
        if self.bought {
            self.hits = (self.hits + 1).min(MAX_HITS);
            if self.credit < MAX_SAVED {
                self.credit += 1;
            }
        }
    }

    /// Whether page `index` is close to the last one read alone.
    fn is_close(&self, index: PageIndex) -> bool {
        block(index).wrapping_sub(self.last).wrapping_add(1) & BLOCK_MASK <= 2
    }
}

/// The bits of a block that are kept.
const BLOCK_MASK: u16 = 0x7ff;

fn block(index: PageIndex) -> u16 {
    (index.0 >> BLOCK_SHIFT) as u16 & BLOCK_MASK
}
