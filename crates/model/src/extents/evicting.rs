//! What evictions do to chunks, and what is left of them.

use filemap_core::cache::{in_leaf, word_mask, words};
use filemap_core::units::{Order, PageIndex};

use super::Extents;
use super::chunk::Chunk;
use super::shadows::{Shadow, Shadows};
use super::span::Span;

/// Evictions that cannot matter any more are kept at most until one such part of the memory's
/// pages was evicted after them.
const FORGOTTEN_PART: u64 = 16;

/// The folios of `span` leave a chunk, evicted from the clock `clock` on, or a part of one does.
/// Where `is_plain`, none has the workingset flag. Returns how many leaf nodes go with them.
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
        note_workingset(shadows, chunk, span, order, clock);
    }
    let empty = chunk.remove(span);
    if in_leaf(order) { empty } else { 0 }
}

/// Notes such an eviction by what has the workingset flag and what has not.
#[inline(never)]
fn note_workingset<const W: usize>(
    shadows: &mut Shadows<W>,
    chunk: &mut Chunk<W>,
    span: Span,
    order: Order,
    clock: u64,
) {
    let mut from = span.from;
    while from < span.end {
        let (end, workingset) = chunk.workingset_until(Span { from, ..span });
        let clock = clock + order.round_down((from - span.from) as u64);
        let shadow = Shadow::new(Span { from, end }, order, clock, workingset);
        shadows.push(&mut chunk.evicted, shadow);
        from = end;
    }
}

impl<const W: usize> Extents<W> {
    /// Pages leave the cache: their entries are gone in all layers but the first.
    pub(super) fn clear_aliases(&mut self, from: u64, end: u64) {
        if self.aliases.is_empty() {
            return;
        }
        let (from, end) = (PageIndex(from), PageIndex(end));
        for number in words(from, end) {
            self.aliases.clear(number, word_mask(number, from, end));
        }
    }

    /// Forgets evictions that cannot matter any more, and chunks in which there was nothing else:
    /// now and then, for many at a time.
    #[inline(never)]
    pub(super) fn forget_old(&mut self) {
        self.forgets_at = self.clock.saturating_add(self.capacity / FORGOTTEN_PART);
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
