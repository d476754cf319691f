//! Page tables: which parts of the address space have a page of entries.

use std::collections::BTreeMap;

use crate::units::{PageCount, Vpn};

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

    /// Pages that all of them take.
    pub fn pages(&self) -> PageCount {
        self.pages
    }
}
