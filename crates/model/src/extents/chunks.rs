//! The chunks of all files' row of pages that hold anything.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use filemap_core::cache::words;
use filemap_core::units::{PageCount, PageIndex};

use super::chunk::Chunk;
use super::shadows::Shadows;
use super::span::{limit, pages_of};
use super::words::Words;

/// Bytes of a chunk's slot in the table.
const SLOT_BYTES: u64 = 32;

/// Where so many pages can be cached for each chunk, chunks keep their words in rows: with all of
/// them 16 bytes a page.
const PAGES_FOR_ROWS: u64 = 256;

/// Chunks by number. Memory grows with the chunks in use, not with the file.
#[derive(Debug)]
pub struct Chunks<const W: usize> {
    /// Slots of the first chunks by number, which are most that there are.
    low: Vec<u32>,
    /// Slots of the others.
    high: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    /// The number of the chunk in each slot.
    numbers: Vec<u64>,
    chunks: Vec<Chunk<W>>,
    /// While there are no more, each keeps its words in a row.
    with_rows: u64,
    /// Bytes that each took when it was last counted, and all of them: each is counted when it is
    /// no longer remembered.
    counted: Vec<Cell<u32>>,
    counted_bytes: Cell<u64>,
    free: Vec<u32>,
    /// Chunks that have no slot, all pages of which are cached as base pages without a flag, and
    /// none of which was evicted: the first of each run, and the one after its last.
    full: BTreeMap<u64, u64>,
    /// Chunks from the first up to the second one are in no such run: what was found last.
    between: Cell<(u64, u64)>,
    /// Chunks that were looked up lately and their slots, each at its number's place: a fault, its
    /// window and what is reclaimed for that go to and fro between a few.
    recent: [Cell<(u64, u32)>; RECENT],
}

/// How many chunks are remembered.
const RECENT: usize = 8;

/// A chunk number that no file has.
const NONE: u64 = u64::MAX;

/// The slot of a chunk that has none.
const NO_SLOT: u32 = u32::MAX;

impl<const W: usize> Chunks<W> {
    /// A chunk whose pages are all cached, as base pages without a flag.
    const FULL: &'static Chunk<W> = &Chunk::FULL;

    /// The most that a chunk takes: all its words, and four bytes for the order of each page.
    const MOST_BYTES: u64 =
        size_of::<Chunk<W>>() as u64 + Words::<W>::MOST_BYTES + 4 * pages_of(W) + SLOT_BYTES;

    /// A window that fills fewer chunks makes each of them.
    pub const LEAST_RUN: u64 = limit(W, 4, 2);

    /// So many chunks keep their words in rows in any case: half a MiB at most.
    const SMALL_CHUNKS: u64 = limit(W, 128, 4);

    /// Chunks below this number have their slots in a row: those of the first 2 TiB of the first
    /// file.
    const LOW: u64 = limit(W, 1 << 17, 1 << 6);

    /// None yet, in which `capacity` pages can be cached.
    pub fn new(capacity: Option<PageCount>) -> Chunks<W> {
        let limited = capacity.map_or(0, |pages| pages.0 / PAGES_FOR_ROWS);
        Chunks {
            low: Vec::new(),
            high: HashMap::default(),
            numbers: Vec::new(),
            chunks: Vec::new(),
            with_rows: Self::SMALL_CHUNKS.max(limited),
            counted: Vec::new(),
            counted_bytes: Cell::new(0),
            free: Vec::new(),
            full: BTreeMap::new(),
            between: Cell::new((0, 0)),
            recent: [const { Cell::new((NONE, 0)) }; RECENT],
        }
    }

    /// Chunk `number`, where it holds anything.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Chunk<W>> {
        match self.slot(number) {
            Some(slot) => Some(&self.chunks[slot as usize]),
            None if self.full.is_empty() => None,
            None => self.full_run(number).map(|_| Self::FULL),
        }
    }

    /// Chunk `number`, where it holds anything.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Chunk<W>> {
        let slot = match self.slot(number) {
            Some(slot) => slot,
            None if self.full.is_empty() => return None,
            None => self.full_run(number).map(|_| self.make(number))?,
        };
        Some(&mut self.chunks[slot as usize])
    }

    /// Chunk `number`, made if it is not there.
    #[inline]
    pub fn get_or_make(&mut self, number: u64) -> &mut Chunk<W> {
        let slot = match self.slot(number) {
            Some(slot) => slot,
            None => self.make(number),
        };
        &mut self.chunks[slot as usize]
    }

    /// Whether the rows of all chunks take little memory beside the pages that can be cached.
    pub fn is_roomy(&self) -> bool {
        (self.chunks.len() as u64) < self.with_rows
    }

    /// Whether chunk `number` has a slot.
    pub fn has_slot(&self, number: u64) -> bool {
        self.slot(number).is_some()
    }

    /// All pages of the chunks `first..end`, none of which has a slot, are cached from now on, as
    /// base pages.
    pub fn add_full(&mut self, first: u64, end: u64) {
        self.full.insert(first, end);
        self.between.set((0, 0));
    }

    /// The run of full chunks without slots that `number` is in.
    #[inline(never)]
    fn full_run(&self, number: u64) -> Option<(u64, u64)> {
        let (first, behind) = self.between.get();
        if (first..behind).contains(&number) {
            return None;
        }
        let before = self.full.range(..=number).next_back().map(|(&first, &end)| (first, end));
        if let Some((_, end)) = before
            && number < end
        {
            return before;
        }
        let behind = self.full.range(number..).next().map_or(NONE, |(&first, _)| first);
        self.between.set((before.map_or(0, |run| run.1), behind));
        None
    }

    /// Gives chunk `number` a slot, which it has not. Returns that.
    #[inline(never)]
    fn make(&mut self, number: u64) -> u32 {
        let run = self.full_run(number);
        let slot = self.free.pop().unwrap_or_else(|| {
            let mut chunk = Chunk::default();
            if self.is_roomy() {
                chunk.keep_in_row();
            }
            self.chunks.push(chunk);
            self.counted.push(Cell::new(0));
            self.numbers.push(NONE);
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

    /// At most how many bytes of memory they take. A chunk that was in use keeps its words.
    pub fn held_bytes(&self) -> u64 {
        let slots = (self.chunks.len() + self.full.len()) as u64 * SLOT_BYTES;
        let low = (self.low.capacity() * size_of::<u32>()) as u64;
        self.counted_bytes.get() + slots + low + RECENT as u64 * Self::MOST_BYTES
    }

    /// The pages of `from..end` that are in full chunks without slots.
    pub fn full_pages(&self, from: PageIndex, end: PageIndex) -> u64 {
        let runs = self.full.iter().map(|(first, end)| (first * pages_of(W), end * pages_of(W)));
        runs.map(|run| run.1.min(end.0).saturating_sub(run.0.max(from.0))).sum()
    }

    /// Every chunk with a slot and its number, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Chunk<W>)> {
        self.numbers.iter().copied().zip(&self.chunks).filter(|(number, _)| *number != NONE)
    }

    /// The words, in ascending order, in which one of the pages `from..end` may be mapped or
    /// copied.
    pub fn words_with_entries(&self, from: PageIndex, end: PageIndex) -> Vec<u64> {
        let wanted = words(from, end);
        let (first, last) = (from.0 / pages_of(W), (end.0 - 1) / pages_of(W));
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

    /// Forgets chunk `number`, in which nothing is cached or copied. Its evictions count no more.
    pub fn remove(&mut self, number: u64, shadows: &mut Shadows<W>) {
        if let Some(slot) = self.slot(number) {
            self.set_slot(number, NO_SLOT);
            self.numbers[slot as usize] = NONE;
            let chunk = &mut self.chunks[slot as usize];
            chunk.forget();
            shadows.release(&mut chunk.evicted);
            self.free.push(slot);
            self.count_bytes(slot);
            if self.recent(number).get().0 == number {
                self.recent(number).set((NONE, 0));
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
        let slot = if number < Self::LOW {
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

    /// Chunk `number` has this slot from now on, or none.
    fn set_slot(&mut self, number: u64, slot: u32) {
        if number < Self::LOW {
            let behind = self.low.len().max(number as usize + 1);
            self.low.resize(behind, NO_SLOT);
            self.low[number as usize] = slot;
        } else if slot == NO_SLOT {
            self.high.remove(&number);
        } else {
            self.high.insert(number, slot);
        }
    }

    /// Remembers the slot of chunk `number`, and not that which was in its place.
    #[inline]
    fn remember(&self, number: u64, slot: u32) {
        let (before, slot_before) = self.recent(number).replace((number, slot));
        if before != NONE {
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
        &self.recent[number as usize % RECENT]
    }
}

/// Spreads small numbers over the bits that the table looks at: Fibonacci hashing.
#[derive(Clone, Copy, Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
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

    use super::super::span::{CHUNK_WORDS, FEW_WORDS, Span};
    use super::*;

    #[test]
    fn what_chunks_hold_is_never_more_than_they_say() {
        never_more_than_they_say::<CHUNK_WORDS>();
        never_more_than_they_say::<FEW_WORDS>();
    }

    fn never_more_than_they_say<const W: usize>() {
        let mut rng = Rng(1);
        let mut chunks = Chunks::<W>::new(None);
        chunks.add_full(1 << 20, 1 << 30);
        for step in 0..20_000 {
            let number = rng.below(1 << 12) + (1 << 20) * rng.below(2);
            let chunk = chunks.get_or_make(number);
            if chunk.is_empty() {
                let order = Order(rng.pick(&[0, 0, 2]));
                chunk.add(Span { from: 0, end: pages_of(W) as usize }, order);
            }
            let word = rng.below(W as u64) as usize;
            chunk.change_flags(word, |flags| flags.mapped |= rng.next());
            let held: u64 = chunks.chunks.iter().map(Chunk::held_bytes).sum();
            let said = chunks.held_bytes();
            assert!(held <= said, "step {step}: {held} bytes, said to be {said}");
            let most = 2 * held + (1 << 20);
            assert!(said <= most, "step {step}: {held} bytes, said to be {said}");
        }
    }
}
