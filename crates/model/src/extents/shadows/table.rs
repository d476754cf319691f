//! The last eviction of each page of a chunk.

use super::{Shadow, ShadowRun};
use crate::extents::span::{Span, WORD};

/// Bits of a clock relative to the base of a table.
pub const CLOCK_BITS: u32 = 31;

/// The last eviction of each page of a chunk.
#[derive(Debug)]
pub struct ShadowTable<const W: usize> {
    /// Base of the clocks.
    base: u64,
    end: u64,
    /// Per page: twice the clock counted from 1, plus the workingset flag; 0 if it was not evicted.
    clocks: Box<[[u32; WORD]; W]>,
}

impl<const W: usize> Default for ShadowTable<W> {
    fn default() -> ShadowTable<W> {
        ShadowTable { base: 0, end: 0, clocks: Box::new([[0; WORD]; W]) }
    }
}

impl<const W: usize> ShadowTable<W> {
    /// Empties the table; `base` is before every eviction to be recorded.
    pub fn reset(&mut self, base: u64) {
        self.clocks.as_flattened_mut().fill(0);
        (self.base, self.end) = (base, 0);
    }

    /// Clock after the last eviction.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Records an eviction. Evictions before `oldest` are obsolete.
    // Out of line: most chunks have no table.
    #[inline(never)]
    pub fn record(&mut self, shadow: Shadow, oldest: u64) {
        if shadow.end() - self.base >= 1 << (CLOCK_BITS - 1) {
            self.rebase(oldest.max(self.base));
        }
        self.end = shadow.end();
        let first = usize::from(shadow.offset);
        let flag = u32::from(shadow.workingset);
        let clock = ((shadow.clock - self.base + 1) as u32) << 1 | flag;
        let entries = &mut self.clocks.as_flattened_mut()[first..first + usize::from(shadow.pages)];
        if shadow.is_erasure {
            return entries.fill(0);
        }
        let order = shadow.order.0;
        for (within, entry) in (0..).zip(entries) {
            *entry = clock + (within >> order << order << 1);
        }
    }

    /// The words, one bit each, in which a page of `span` was evicted at or after `since`.
    pub fn words_since(&self, span: Span, since: u64) -> u64 {
        let least = self.min_entry(since);
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

    /// Moves the base to the clock `base` and drops earlier evictions.
    fn rebase(&mut self, base: u64) {
        let passed = (base - self.base) << 1;
        for entry in self.clocks.as_flattened_mut() {
            *entry = if u64::from(*entry) > passed + 1 { *entry - passed as u32 } else { 0 };
        }
        self.base = base;
    }

    /// [`super::Shadows::runs_in_word`] of its chunk.
    pub fn pieces(&self, span: Span, since: u64, pieces: &mut Vec<ShadowRun>) {
        let least = self.min_entry(since);
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
            pieces.push(ShadowRun { offset: next, pages: pages as u64, clock, workingset });
            next += pages;
        }
    }

    /// The smallest entry at or after `since`.
    fn min_entry(&self, since: u64) -> u32 {
        let passed = since.saturating_sub(self.base).min((1 << CLOCK_BITS) - 2);
        (passed as u32 + 1) << 1
    }

    /// Clock and workingset flag of the page at `offset`.
    pub fn last(&self, offset: usize) -> Option<(u64, bool)> {
        let entry = self.clocks.as_flattened()[offset];
        (entry != 0).then(|| (self.base + u64::from(entry >> 1) - 1, entry & 1 == 1))
    }
}
