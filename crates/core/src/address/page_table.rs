//! Page tables: which page-table pages exist.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::units::{PageCount, Vpn};

/// The page-table pages of a process: those with PTEs and two levels above. The topmost level
/// exists with the process.
///
/// A PMD-sized folio can be mapped by a PMD entry only if no page-table page is in its place.
#[derive(Clone, Debug, Default)]
pub struct PageTables {
    levels: [Tables; 3],
    /// Page-table pages first created for a private copy; they are not counted.
    copy_tables: Tables,
    pages: PageCount,
}

/// The page-table pages of one level, one bit each, in blocks of 4096.
#[derive(Clone, Debug, Default)]
struct Tables(BTreeMap<u64, Box<[u64; 64]>>);

impl Tables {
    /// Size of a block including its map entry.
    const BLOCK_BYTES: u64 = 512 + 40;

    /// Inserts page-table page `number`; returns whether it is new.
    #[inline]
    fn insert(&mut self, number: u64) -> bool {
        let Some(block) = self.0.get_mut(&(number / 4096)) else {
            return self.insert_first(number);
        };
        let word = &mut block[(number / 64 % 64) as usize];
        let before = *word;
        *word |= 1 << (number % 64);
        *word != before
    }

    /// [`Tables::insert`] of the first of a block.
    #[inline(never)]
    fn insert_first(&mut self, number: u64) -> bool {
        self.0.insert(number / 4096, Box::new([0; 64]));
        self.insert(number)
    }

    fn remove(&mut self, number: u64) {
        let block = self.0.get_mut(&(number / 4096)).expect("the page-table page exists");
        block[(number / 64 % 64) as usize] &= !(1 << (number % 64));
    }

    /// Removes all of `numbers`. Returns how many existed.
    fn remove_all(&mut self, numbers: Range<u64>) -> u64 {
        let (mut next, mut removed) = (numbers.start, 0);
        while let Some(number) = self.next(next..numbers.end) {
            self.remove(number);
            (next, removed) = (number + 1, removed + 1);
        }
        removed
    }

    /// The first of `numbers` that exists.
    fn next(&self, numbers: Range<u64>) -> Option<u64> {
        let blocks = numbers.start / 4096..numbers.end.div_ceil(4096);
        for (block, words) in self.0.range(blocks) {
            let first = block * 4096;
            let from = numbers.start.saturating_sub(first);
            let mut mask = u64::MAX << (from % 64);
            for word in from / 64..(numbers.end - first).div_ceil(64).min(64) {
                let found = words[word as usize] & mask;
                if found != 0 {
                    let number = first + word * 64 + u64::from(found.trailing_zeros());
                    return Some(number).filter(|&number| number < numbers.end);
                }
                mask = u64::MAX;
            }
        }
        None
    }

    fn contains(&self, number: u64) -> bool {
        let block = self.0.get(&(number / 4096));
        block.is_some_and(|block| block[(number / 64 % 64) as usize] >> (number % 64) & 1 == 1)
    }
}

impl PageTables {
    /// Creates the page-table page of `entries` entries, a power of two, that maps `vpn`, and its
    /// upper levels.
    pub fn install(&mut self, vpn: Vpn, entries: u64) {
        let (mut number, bits) = (vpn.0, entries.ilog2());
        for level in &mut self.levels {
            number >>= bits;
            if !level.insert(number) {
                break;
            }
            self.pages += PageCount(1);
        }
    }

    /// Creates the page-table page that maps `vpn` for a private copy. It is not counted until
    /// something else needs it.
    pub fn install_for_copy(&mut self, vpn: Vpn, entries: u64) {
        self.copy_tables.insert(vpn.0 >> entries.ilog2());
    }

    /// Frees the page-table pages that map only the `pages` pages from `start`; nothing else may be
    /// mapped within reach of the outermost ones.
    pub fn remove(&mut self, start: Vpn, pages: PageCount, entries: u64) {
        let (mut first, mut last) = (start.0, (start + pages).0 - 1);
        self.copy_tables.remove_all(first >> entries.ilog2()..(last >> entries.ilog2()) + 1);
        for level in 0..self.levels.len() {
            let (below, above) = self.levels.split_at_mut(level);
            (first, last) = (first >> entries.ilog2(), last >> entries.ilog2());
            let is_empty = |number: u64| {
                let children = number * entries..(number + 1) * entries;
                below.last().is_none_or(|below| below.next(children).is_none())
            };
            let mut next = first;
            while let Some(number) = above[0].next(next..last + 1) {
                if is_empty(number) {
                    above[0].remove(number);
                    self.pages -= PageCount(1);
                }
                next = number + 1;
            }
        }
    }

    /// Frees the lowest-level page-table pages whose entries all lie in the `pages` pages from
    /// `start`; upper levels stay.
    pub fn remove_lowest(&mut self, start: Vpn, pages: PageCount, entries: u64) {
        let first = start.0.div_ceil(entries);
        let numbers = first..((start + pages).0 / entries).max(first);
        self.pages -= PageCount(self.levels[0].remove_all(numbers.clone()));
        self.copy_tables.remove_all(numbers);
    }

    /// Whether the page-table page of `entries` entries that maps `vpn` exists.
    pub fn is_installed(&self, vpn: Vpn, entries: u64) -> bool {
        let number = vpn.0 >> entries.ilog2();
        self.levels[0].contains(number) || self.copy_tables.contains(number)
    }

    /// Approximate memory used by this structure, in bytes.
    pub fn held_bytes(&self) -> u64 {
        let all = self.levels.iter().chain([&self.copy_tables]);
        all.map(|level| level.0.len() as u64 * Tables::BLOCK_BYTES).sum()
    }

    /// Number of pages charged for page tables.
    pub fn pages(&self) -> PageCount {
        self.pages
    }
}
