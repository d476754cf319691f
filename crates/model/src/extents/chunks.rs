//! The table of chunks in use.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use filemap_core::cache::words;
use filemap_core::units::{PageCount, PageIndex};

use super::chunk::Chunk;
use super::shadows::Shadows;
use super::span::{chunk_pages, limit};
use super::words::Words;

/// Bytes per chunk for its place in the table.
const SLOT_BYTES: u64 = 32;

/// Chunks use slot storage for their words if the cache limit is this many pages per chunk: at most
/// 16 bytes per page.
const PAGES_PER_SLOTTED_CHUNK: u64 = 256;

/// Chunks by number. Memory grows with the chunks in use, not with the file size.
#[derive(Debug)]
pub struct Chunks<const W: usize> {
    /// Positions of the lowest-numbered chunks, which are almost all of them.
    low: Vec<u32>,
    /// Positions of the other chunks.
    high: HashMap<u64, u32, BuildHasherDefault<FibonacciHasher>>,
    /// Chunk number at each position.
    numbers: Vec<u64>,
    chunks: Vec<Chunk<W>>,
    /// Up to this many chunks use slot storage.
    max_with_slots: u64,
    /// Memory of each chunk when it was last counted, and the sum. A chunk is counted again when it
    /// drops out of `recent`.
    counted: Vec<Cell<u32>>,
    counted_bytes: Cell<u64>,
    free: Vec<u32>,
    /// Runs of chunks without a position whose pages are all cached as base pages without flags or
    /// shadows: first chunk and the one after the last.
    full: BTreeMap<u64, u64>,
    /// A range of chunks known to be in no such run: the last negative lookup.
    last_gap: Cell<(u64, u64)>,
    /// Recently used chunks and their positions, indexed by chunk number: a fault, its window and
    /// the reclaim for it alternate between a few chunks.
    recent: [Cell<(u64, u32)>; RECENT_CHUNKS],
}

/// Size of the cache of recent lookups.
const RECENT_CHUNKS: usize = 8;

/// A chunk number outside of every file.
const NO_CHUNK: u64 = u64::MAX;

/// Marks a chunk without a position.
const NO_SLOT: u32 = u32::MAX;

impl<const W: usize> Chunks<W> {
    /// A chunk whose pages are all cached, as base pages without a flag.
    const FULL: &'static Chunk<W> = &Chunk::FULL;

    /// Maximum memory of a chunk: all words, and four bytes per page for orders.
    const MAX_CHUNK_BYTES: u64 =
        size_of::<Chunk<W>>() as u64 + Words::<W>::MAX_BYTES + 4 * chunk_pages(W) + SLOT_BYTES;

    /// Minimum number of full chunks that are kept as a run.
    pub const MIN_FULL_RUN: u64 = limit(W, 4, 2);

    /// This many chunks use slot storage regardless of the limit: at most half a MiB.
    const MIN_SLOTTED_CHUNKS: u64 = limit(W, 128, 4);

    /// Chunks below this number are indexed by a vector: the first 2 TiB of the first file.
    const LOW_CHUNKS: u64 = limit(W, 1 << 17, 1 << 6);

    /// An empty table for a cache of at most `capacity` pages.
    pub fn new(capacity: Option<PageCount>) -> Chunks<W> {
        let limited = capacity.map_or(0, |pages| pages.0 / PAGES_PER_SLOTTED_CHUNK);
        Chunks {
            low: Vec::new(),
            high: HashMap::default(),
            numbers: Vec::new(),
            chunks: Vec::new(),
            max_with_slots: Self::MIN_SLOTTED_CHUNKS.max(limited),
            counted: Vec::new(),
            counted_bytes: Cell::new(0),
            free: Vec::new(),
            full: BTreeMap::new(),
            last_gap: Cell::new((0, 0)),
            recent: [const { Cell::new((NO_CHUNK, 0)) }; RECENT_CHUNKS],
        }
    }

    /// Chunk `number`, if it is in use.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Chunk<W>> {
        match self.slot(number) {
            Some(slot) => Some(&self.chunks[slot as usize]),
            None if self.full.is_empty() => None,
            None => self.full_run(number).map(|_| Self::FULL),
        }
    }

    /// Chunk `number`, if it is in use.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Chunk<W>> {
        let slot = match self.slot(number) {
            Some(slot) => slot,
            None if self.full.is_empty() => return None,
            None => self.full_run(number).map(|_| self.allocate(number))?,
        };
        Some(&mut self.chunks[slot as usize])
    }

    /// Chunk `number`, allocated if it is not in use.
    #[inline]
    pub fn get_or_allocate(&mut self, number: u64) -> &mut Chunk<W> {
        let slot = match self.slot(number) {
            Some(slot) => slot,
            None => self.allocate(number),
        };
        &mut self.chunks[slot as usize]
    }

    /// Whether new chunks use slot storage.
    pub fn uses_slots(&self) -> bool {
        (self.chunks.len() as u64) < self.max_with_slots
    }

    /// Whether chunk `number` has a slot.
    pub fn has_slot(&self, number: u64) -> bool {
        self.slot(number).is_some()
    }

    /// Adds all pages of the unused chunks `first..end`, as base pages.
    pub fn add_full(&mut self, first: u64, end: u64) {
        self.full.insert(first, end);
        self.last_gap.set((0, 0));
    }

    /// The run of full chunks that contains `number`.
    #[inline(never)]
    fn full_run(&self, number: u64) -> Option<(u64, u64)> {
        let (first, after) = self.last_gap.get();
        if (first..after).contains(&number) {
            return None;
        }
        let before = self.full.range(..=number).next_back().map(|(&first, &end)| (first, end));
        if let Some((_, end)) = before
            && number < end
        {
            return before;
        }
        let after = self.full.range(number..).next().map_or(NO_CHUNK, |(&first, _)| first);
        self.last_gap.set((before.map_or(0, |run| run.1), after));
        None
    }

    /// Allocates chunk `number` and returns its position.
    #[inline(never)]
    fn allocate(&mut self, number: u64) -> u32 {
        let run = self.full_run(number);
        let slot = self.free.pop().unwrap_or_else(|| {
            let mut chunk = Chunk::default();
            if self.uses_slots() {
                chunk.use_slots();
            }
            self.chunks.push(chunk);
            self.counted.push(Cell::new(0));
            self.numbers.push(NO_CHUNK);
            self.chunks.len() as u32 - 1
        });
        self.set_slot(number, slot);
        self.numbers[slot as usize] = number;
        self.remember(number, slot);
        if let Some((first, end)) = run {
            self.full.remove(&first);
            let parts = [(first, number), (number + 1, end)];
            self.full.extend(parts.into_iter().filter(|(first, end)| first < end));
            self.chunks[slot as usize].fill();
        }
        slot
    }

    /// Upper bound of the memory used, in bytes. Chunks keep their words after use.
    pub fn held_bytes(&self) -> u64 {
        let slots = (self.chunks.len() + self.full.len()) as u64 * SLOT_BYTES;
        let low = (self.low.capacity() * size_of::<u32>()) as u64;
        self.counted_bytes.get() + slots + low + RECENT_CHUNKS as u64 * Self::MAX_CHUNK_BYTES
    }

    /// Number of pages of `from..end` in runs of full chunks.
    pub fn full_pages(&self, from: PageIndex, end: PageIndex) -> u64 {
        let runs =
            self.full.iter().map(|(first, end)| (first * chunk_pages(W), end * chunk_pages(W)));
        runs.map(|run| run.1.min(end.0).saturating_sub(run.0.max(from.0))).sum()
    }

    /// Every allocated chunk with its number, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Chunk<W>)> {
        self.numbers.iter().copied().zip(&self.chunks).filter(|(number, _)| *number != NO_CHUNK)
    }

    /// The words, in ascending order, in which any of the pages `from..end` may be mapped or
    /// copied.
    pub fn words_with_entries(&self, from: PageIndex, end: PageIndex) -> Vec<u64> {
        let wanted = words(from, end);
        let (first, last) = (from.0 / chunk_pages(W), (end.0 - 1) / chunk_pages(W));
        let mut chunks: Vec<u64> = if last - first < self.numbers.len() as u64 {
            (first..=last).filter(|&number| self.has_slot(number)).collect()
        } else {
            self.numbers.iter().copied().filter(|number| (first..=last).contains(number)).collect()
        };
        chunks.sort_unstable();
        let of_chunk = |number: u64| {
            let chunk = self.get(number).expect("it is in use");
            chunk.words_with_entries().map(move |word| number * W as u64 + word as u64)
        };
        chunks.into_iter().flat_map(of_chunk).filter(|word| wanted.contains(word)).collect()
    }

    /// Frees chunk `number`, which has neither cached pages nor copies. Its shadows are obsolete.
    pub fn remove(&mut self, number: u64, shadows: &mut Shadows<W>) {
        if let Some(slot) = self.slot(number) {
            self.set_slot(number, NO_SLOT);
            self.numbers[slot as usize] = NO_CHUNK;
            let chunk = &mut self.chunks[slot as usize];
            chunk.forget();
            shadows.release(&mut chunk.evicted);
            self.free.push(slot);
            self.count_bytes(slot);
            if self.recent(number).get().0 == number {
                self.recent(number).set((NO_CHUNK, 0));
            }
        }
    }

    #[inline]
    fn slot(&self, number: u64) -> Option<u32> {
        let (recent, slot) = self.recent(number).get();
        if recent == number { Some(slot) } else { self.find_slot(number) }
    }

    #[inline(never)]
    fn find_slot(&self, number: u64) -> Option<u32> {
        let slot = if number < Self::LOW_CHUNKS {
            self.low.get(number as usize).copied().unwrap_or(NO_SLOT)
        } else {
            *self.high.get(&number)?
        };
        if slot == NO_SLOT {
            return None;
        }
        self.remember(number, slot);
        Some(slot)
    }

    /// Sets or clears the position of chunk `number`.
    fn set_slot(&mut self, number: u64, slot: u32) {
        if number < Self::LOW_CHUNKS {
            let after = self.low.len().max(number as usize + 1);
            self.low.resize(after, NO_SLOT);
            self.low[number as usize] = slot;
        } else if slot == NO_SLOT {
            self.high.remove(&number);
        } else {
            self.high.insert(number, slot);
        }
    }

    /// Enters chunk `number` into `recent`, replacing another one.
    #[inline]
    fn remember(&self, number: u64, slot: u32) {
        let (before, slot_before) = self.recent(number).replace((number, slot));
        if before != NO_CHUNK {
            self.count_bytes(slot_before);
        }
    }

    #[inline]
    fn count_bytes(&self, slot: u32) {
        let bytes = self.chunks[slot as usize].held_bytes();
        let counted = self.counted[slot as usize].replace(bytes as u32);
        self.counted_bytes.set(self.counted_bytes.get() + bytes - u64::from(counted));
    }

    #[inline]
    fn recent(&self, number: u64) -> &Cell<(u64, u32)> {
        &self.recent[number as usize % RECENT_CHUNKS]
    }
}

/// Fibonacci hashing, which spreads small numbers over all bits.
#[derive(Clone, Copy, Debug, Default)]
struct FibonacciHasher(u64);

impl Hasher for FibonacciHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("chunk numbers are 64-bit")
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::units::Order;
    use filemap_job::random::Rng;

    use super::super::span::{CHUNK_WORDS, Span, TINY_CHUNK_WORDS};
    use super::*;

    #[test]
    fn what_chunks_hold_is_never_more_than_they_say() {
        never_more_than_they_say::<CHUNK_WORDS>();
        never_more_than_they_say::<TINY_CHUNK_WORDS>();
    }

    fn never_more_than_they_say<const W: usize>() {
        let mut rng = Rng(1);
        let mut chunks = Chunks::<W>::new(None);
        chunks.add_full(1 << 20, 1 << 30);
        for step in 0..20_000 {
            let number = rng.below(1 << 12) + (1 << 20) * rng.below(2);
            let chunk = chunks.get_or_allocate(number);
            if chunk.is_empty() {
                let order = Order(rng.pick(&[0, 0, 2]));
                chunk.add(Span { from: 0, end: chunk_pages(W) as usize }, order);
            }
            let word = rng.below(W as u64) as usize;
            chunk.change_flags(word, |flags| flags.mapped |= rng.next());
            let held: u64 = chunks.chunks.iter().map(Chunk::held_bytes).sum();
            let reported = chunks.held_bytes();
            assert!(held <= reported, "step {step}: {held} bytes, said to be {reported}");
            let most = 2 * held + (1 << 20);
            assert!(reported <= most, "step {step}: {held} bytes, said to be {reported}");
        }
    }
}
