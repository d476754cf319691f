//! Page tables: which parts of the address space have a page of entries.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::units::{PageCount, Vpn};

/// Which page-table pages exist: those of page entries, and two levels above them. The topmost
/// level comes with the process.
///
/// A PMD-sized folio is mapped by one PMD entry only where no page-table page is in its place.
#[derive(Clone, Debug, Default)]
pub struct PageTables {
    levels: [Tables; 3],
    /// Page-table pages that a private copy was made in first: they are not counted.
    of_copies: Tables,
    pages: PageCount,
}

/// The page-table pages of one level, one bit each: 4096 a block, by the number of the block.
#[derive(Clone, Debug, Default)]
struct Tables(BTreeMap<u64, Box<[u64; 64]>>);

impl Tables {
    /// A block with its place in the map.
    const BLOCK_BYTES: u64 = 512 + 40;

    /// Notes page-table page `number`; returns whether it is new.
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

    /// None of `numbers` exists from now on. Returns how many did.
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
    /// The page-table page of `entries` entries, a power of two, that maps `vpn` exists from now
    /// on.
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

    /// The page-table page of `entries` entries that maps `vpn` exists from now on, for a private
    /// copy, and counts for nothing unless something else needs it.
    pub fn install_for_copy(&mut self, vpn: Vpn, entries: u64) {
        self.of_copies.insert(vpn.0 >> entries.ilog2());
    }

    /// The page-table pages that map nothing but the `pages` pages from `start` are gone, where
    /// nothing else is mapped in the reach of those at the ends.
    pub fn remove(&mut self, start: Vpn, pages: PageCount, entries: u64) {
        let (mut first, mut last) = (start.0, (start + pages).0 - 1);
        self.of_copies.remove_all(first >> entries.ilog2()..(last >> entries.ilog2()) + 1);
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

    /// The page-table pages all of whose entries lie in the `pages` pages from `start` are gone;
    /// those above them stay.
    pub fn remove_lowest(&mut self, start: Vpn, pages: PageCount, entries: u64) {
        let first = start.0.div_ceil(entries);
        let numbers = first..((start + pages).0 / entries).max(first);
        self.pages -= PageCount(self.levels[0].remove_all(numbers.clone()));
        self.of_copies.remove_all(numbers);
    }

    /// Whether the page-table page of `entries` entries that maps `vpn` exists.
    pub fn is_installed(&self, vpn: Vpn, entries: u64) -> bool {
        let number = vpn.0 >> entries.ilog2();
        self.levels[0].contains(number) || self.of_copies.contains(number)
    }

    /// About how many bytes of memory the notes on them take.
    pub fn held_bytes(&self) -> u64 {
        let all = self.levels.iter().chain([&self.of_copies]);
        all.map(|level| level.0.len() as u64 * Tables::BLOCK_BYTES).sum()
    }

    /// Pages that all of them take.
    pub fn pages(&self) -> PageCount {
        self.pages
    }
}
