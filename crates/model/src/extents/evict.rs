//! Evicting pages of a chunk, and forgetting old shadows.

use filemap_core::cache::{fits_in_leaf, word_mask, words};
use filemap_core::units::{Order, PageIndex};

use super::Extents;
use super::chunk::Chunk;
use super::shadows::{Shadow, Shadows};
use super::span::Span;

/// Obsolete shadows are dropped each time this fraction of the capacity has been evicted.
const FORGET_FRACTION: u64 = 16;

/// Evicts the folios of `span`, or the part of a folio, from a chunk, starting at clock `clock`.
/// `is_plain` says that none has the workingset flag. Returns the number of leaf nodes freed.
#[inline(always)]
pub(super) fn evict_span<const W: usize>(
    shadows: &mut Shadows<W>,
    chunk: &mut Chunk<W>,
    (span, order, is_plain): (Span, Order, bool),
    clock: u64,
) -> u64 {
    if is_plain {
        shadows.push(&mut chunk.evicted, Shadow::new(span, order, clock, false));
    } else {
        push_shadows_by_workingset(shadows, chunk, span, order, clock);
    }
    let empty = chunk.remove(span);
    if fits_in_leaf(order) { empty } else { 0 }
}

/// Records the eviction as separate shadows for pages with and without the workingset flag.
#[inline(never)]
fn push_shadows_by_workingset<const W: usize>(
    shadows: &mut Shadows<W>,
    chunk: &mut Chunk<W>,
    span: Span,
    order: Order,
    clock: u64,
) {
    let mut from = span.from;
    while from < span.end {
        let (end, workingset) = chunk.workingset_run(Span { from, ..span });
        let clock = clock + order.round_down((from - span.from) as u64);
        let shadow = Shadow::new(Span { from, end }, order, clock, workingset);
        shadows.push(&mut chunk.evicted, shadow);
        from = end;
    }
}

impl<const W: usize> Extents<W> {
    /// Removes the entries of evicted pages in all layers but the first.
    pub(super) fn clear_aliases(&mut self, from: u64, end: u64) {
        if self.aliases.is_empty() {
            return;
        }
        let (from, end) = (PageIndex(from), PageIndex(end));
        for number in words(from, end) {
            self.aliases.clear(number, word_mask(number, from, end));
        }
    }

    /// Drops obsolete shadows, and chunks without anything else. Called now and then, for many at a
    /// time.
    #[inline(never)]
    pub(super) fn forget_old(&mut self) {
        self.forgets_at = self.clock.saturating_add(self.capacity / FORGET_FRACTION);
        let oldest = self.clock.saturating_sub(self.capacity);
        self.shadows.forget(oldest);
        while let Some(&(clock, number)) = self.retired.front()
            && clock < oldest
        {
            self.retired.pop_front();
            let unused = |chunk: &Chunk<W>| {
                chunk.is_empty() && !self.shadows.any_since(&chunk.evicted, oldest)
            };
            if self.chunks.get(number).is_some_and(unused) {
                self.chunks.remove(number, &mut self.shadows);
            }
        }
    }
}
