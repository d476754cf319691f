//! The chunks of a file that hold anything.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use filemap_core::cache::words;
use filemap_core::units::PageIndex;

use super::chunk::{CHUNK_PAGES, CHUNK_WORDS, Chunk};
use super::shadows::Shadows;

/// Bytes of a chunk with its words, 64 bytes each, and its slot in the table.
const CHUNK_BYTES: u64 = (size_of::<Chunk>() + CHUNK_WORDS * 64 + 32) as u64;

/// Chunks by number. Memory grows with the chunks in use, not with the file.
#[derive(Debug)]
pub struct Chunks {
    slots: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    /// Chunks that keep the order of each page.
    with_orders: u64,
    /// Chunks that were looked up lately and their slots, each at its number's place: a fault, its
    /// window and what is reclaimed for that go to and fro between a few.
    recent: [Cell<(u64, u32)>; RECENT],
}

/// How many chunks are remembered.
const RECENT: usize = 8;

/// A chunk number that no file has.
const NONE: u64 = u64::MAX;

impl Default for Chunks {
    fn default() -> Self {
        Chunks {
            slots: HashMap::default(),
            chunks: Vec::new(),
            free: Vec::new(),
            with_orders: 0,
            recent: [const { Cell::new((NONE, 0)) }; RECENT],
        }
    }
}

impl Chunks {
    /// Chunk `number`, where it holds anything.
    pub fn get(&self, number: u64) -> Option<&Chunk> {
        Some(&self.chunks[self.slot(number)? as usize])
    }

    /// Chunk `number`, where it holds anything.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Chunk> {
        let slot = self.slot(number)?;
        Some(&mut self.chunks[slot as usize])
    }

    /// Chunk `number`, made if it is not there.
    #[inline]
    pub fn get_or_make(&mut self, number: u64) -> &mut Chunk {
        let slot = match self.slot(number) {
            Some(slot) => slot,
            None => self.make(number),
        };
        &mut self.chunks[slot as usize]
    }

    /// Makes chunk `number`, which is not there. Returns its slot.
    #[inline(never)]
    fn make(&mut self, number: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            self.chunks.len() as u32 - 1
        });
        self.slots.insert(number, slot);
        self.recent(number).set((number, slot));
        slot
    }

    /// About how many bytes of memory they take. A chunk that was in use keeps its words.
    pub fn held_bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK_BYTES + self.with_orders * CHUNK_PAGES
    }

    /// Notes that one more chunk keeps the order of each page.
    pub fn note_orders(&mut self) {
        self.with_orders += 1;
    }

    /// Every chunk in use with its number, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Chunk)> {
        self.slots.iter().map(|(&number, &slot)| (number, &self.chunks[slot as usize]))
    }

    /// The words, in ascending order, in which one of the pages `from..end` may be mapped or
    /// copied.
    pub fn words_with_entries(&self, from: PageIndex, end: PageIndex) -> Vec<u64> {
        let wanted = words(from, end);
        let (first, last) = (from.0 / CHUNK_PAGES, (end.0 - 1) / CHUNK_PAGES);
        let mut chunks: Vec<u64> = if last - first < self.slots.len() as u64 {
            (first..=last).filter(|number| self.slots.contains_key(number)).collect()
        } else {
            self.slots.keys().copied().filter(|number| (first..=last).contains(number)).collect()
        };
        chunks.sort_unstable();
        let of_chunk = |number: u64| {
            let chunk = self.get(number).expect("it is in use");
            chunk.words_with_entries().map(move |word| number * CHUNK_WORDS as u64 + word as u64)
        };
        chunks.into_iter().flat_map(of_chunk).filter(|word| wanted.contains(word)).collect()
    }

    /// Forgets chunk `number`, in which nothing is cached or copied. Its evictions count no more.
    pub fn remove(&mut self, number: u64, shadows: &mut Shadows) {
        if let Some(slot) = self.slots.remove(&number) {
            let chunk = &mut self.chunks[slot as usize];
            self.with_orders -= u64::from(chunk.keeps_orders());
            chunk.forget();
            shadows.release(&mut chunk.evicted);
            self.free.push(slot);
            self.recent(number).set((NONE, 0));
        }
    }

    fn slot(&self, number: u64) -> Option<u32> {
        let (recent, slot) = self.recent(number).get();
        if recent == number {
            return Some(slot);
        }
        let slot = *self.slots.get(&number)?;
        self.recent(number).set((number, slot));
        Some(slot)
    }

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
