//! The last eviction of each page of a chunk.

use super::{Piece, Shadow};
use crate::extents::span::{Span, WORD};

/// Clocks from a table's base on fit into so many bits.
pub const CLOCK_BITS: u32 = 31;

/// The last eviction of each page of a chunk.
#[derive(Debug)]
pub struct Table<const W: usize> {
    /// The clocks count from here.
    base: u64,
    end: u64,
    /// The clock, from 1, doubled, and 1 more with the workingset flag; 0 where there is none.
    clocks: Box<[[u32; WORD]; W]>,
}

impl<const W: usize> Default for Table<W> {
    fn default() -> Table<W> {
        Table { base: 0, end: 0, clocks: Box::new([[0; WORD]; W]) }
    }
}

impl<const W: usize> Table<W> {
    /// No page has one, and none to be noted left before the clock `base`.
    pub fn begin(&mut self, base: u64) {
        self.clocks.as_flattened_mut().fill(0);
        (self.base, self.end) = (base, 0);
    }

    /// The clock after the last of them.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Notes an eviction. Those before the clock `oldest` count no more.
    // Most chunks have no table, and what evicts from them stays small without this.
    #[inline(never)]
    pub fn note(&mut self, shadow: Shadow, oldest: u64) {
        if shadow.end() - self.base >= 1 << (CLOCK_BITS - 1) {
            self.count_from(oldest.max(self.base));
        }
        self.end = shadow.end();
        let first = usize::from(shadow.offset);
        let flag = u32::from(shadow.workingset);
        let clock = ((shadow.clock - self.base + 1) as u32) << 1 | flag;
        let entries = &mut self.clocks.as_flattened_mut()[first..first + usize::from(shadow.pages)];
        if shadow.forgets {
            return entries.fill(0);
        }
        let order = shadow.order.0;
        for (within, entry) in (0..).zip(entries) {
            *entry = clock + (within >> order << order << 1);
        }
    }

    /// The words in which an eviction of a page of `span` at or after the clock `since` is noted,
    /// one bit each.
    pub fn words_since(&self, span: Span, since: u64) -> u64 {
        let least = self.entry_since(since);
        let mut words = span.words();
        let mut left = words;
        while left != 0 {
            let word = left.trailing_zeros();
            left &= left - 1;
            let first = word as usize * WORD;
            let (from, end) = (span.from.max(first), span.end.min(first + WORD));
            let is_any = self.clocks.as_flattened()[from..end]
                .iter()
                .fold(false, |any, &entry| any | (entry >= least));
            words &= !(u64::from(!is_any) << word);
        }
        words
    }

    /// Forgets evictions before the clock `base`, from which the others count.
    fn count_from(&mut self, base: u64) {
        let passed = (base - self.base) << 1;
        for entry in self.clocks.as_flattened_mut() {
            *entry = if u64::from(*entry) > passed + 1 { *entry - passed as u32 } else { 0 };
        }
        self.base = base;
    }

    /// [`super::Shadows::pieces`] of its chunk.
    pub fn pieces(&self, span: Span, since: u64, pieces: &mut Vec<Piece>) {
        let least = self.entry_since(since);
        let entries = &self.clocks.as_flattened()[..span.end];
        let mut next = span.from;
        while next < span.end {
            let entry = entries[next];
            if entry < least {
                next += 1;
                continue;
            }
            let follows = |(entry_of, within): &(&u32, u32)| **entry_of == entry + 2 * within;
            let pages = entries[next..].iter().zip(0..).take_while(follows).count();
            let clock = self.base + u64::from(entry >> 1) - 1;
            let workingset = entry & 1 == 1;
            pieces.push(Piece { offset: next, pages: pages as u64, clock, workingset });
            next += pages;
        }
    }

    /// The least entry at or after the clock `since`.
    fn entry_since(&self, since: u64) -> u32 {
        let passed = since.saturating_sub(self.base).min((1 << CLOCK_BITS) - 2);
        (passed as u32 + 1) << 1
    }

    /// Clock and workingset flag of the page at `offset`.
    pub fn last(&self, offset: usize) -> Option<(u64, bool)> {
        let entry = self.clocks.as_flattened()[offset];
        (entry != 0).then(|| (self.base + u64::from(entry >> 1) - 1, entry & 1 == 1))
    }
}
