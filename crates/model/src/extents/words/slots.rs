//! A few words of a chunk in slots that share cache lines.

use super::super::span::limit;
use super::{Flags, LiveWords, Word};

/// Number of slots for words of each kind.
const SLOTS: usize = 7;

/// The word in each slot: one byte each, its number with the highest bit set, or 0.
#[derive(Clone, Copy, Debug, Default)]
struct SlotWords<const W: usize>(u64);

/// The lowest slot in a mask with one bit per byte.
#[inline(always)]
fn lowest_slot(bits: u64) -> usize {
    bits.trailing_zeros() as usize / 8
}

impl<const W: usize> SlotWords<W> {
    /// Number of slots in use.
    const COUNT: usize = limit(W, SLOTS as u64, 1) as usize;

    /// The lowest and the highest bit of each byte.
    const LOWEST: u64 = 0x0101_0101_0101_0101 >> (64 - 8 * Self::COUNT);
    const HIGHEST: u64 = Self::LOWEST << 7;

    /// A mask whose lowest set bit is in the byte of word `number`; 0 if it has no slot.
    #[inline(always)]
    fn find(self, number: usize) -> u64 {
        let unlike = self.0 ^ ((number as u64 * Self::LOWEST) | Self::HIGHEST);
        // Borrows can only set bits above the lowest zero byte.
        unlike.wrapping_sub(Self::LOWEST) & !unlike & Self::HIGHEST
    }

    /// A bit for each free slot.
    #[inline(always)]
    fn free(self) -> u64 {
        !self.0 & Self::HIGHEST
    }

    /// Assigns a slot to word `number`, or frees it.
    #[inline(always)]
    fn set(&mut self, place: usize, number: Option<usize>) {
        let byte = number.map_or(0, |number| number as u64 | 0x80);
        self.0 = self.0 & !(0xff << (8 * place)) | byte << (8 * place);
    }

    /// The words with slots, and the slots.
    fn words(self) -> impl Iterator<Item = (usize, usize)> {
        let byte = move |place| (self.0 >> (8 * place)) as usize & 0xff;
        (0..Self::COUNT)
            .map(move |place| (byte(place), place))
            .filter(|word| word.0 != 0)
            .map(|(byte, place)| (byte & 0x7f, place))
    }
}

/// Some words of a chunk: the cached pages of partial words, and the flags of flagged ones.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct WordSlots<const W: usize> {
    partial: SlotWords<W>,
    present: [u64; SLOTS],
    flagged: SlotWords<W>,
    flags: [FlagsLine; SLOTS],
}

/// The flags of a word, in a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct FlagsLine(Flags);

impl<const W: usize> WordSlots<W> {
    /// A chunk with at most this many words of either kind leaves some slots free.
    pub const COMPACT_WORDS: u32 = limit(W, 5, 1) as u32;

    /// Collects the `used` words, which have to fit.
    pub fn collect(
        words: &[Word; W],
        LiveWords { mut flagged, mut partial }: LiveWords,
    ) -> WordSlots<W> {
        let mut row = WordSlots::default();
        for place in 0..partial.count_ones() as usize {
            let number = partial.trailing_zeros() as usize;
            row.present[place] = words[number].present;
            row.partial.set(place, Some(number));
            partial &= partial - 1;
        }
        for place in 0..flagged.count_ones() as usize {
            let number = flagged.trailing_zeros() as usize;
            row.flags[place].0 = words[number].flags;
            row.flagged.set(place, Some(number));
            flagged &= flagged - 1;
        }
        row
    }

    /// Copies its words into the words of the chunk.
    pub fn copy_to(&self, words: &mut [Word; W]) {
        for (number, place) in self.partial.words() {
            words[number].present = self.present[place];
        }
        for (number, place) in self.flagged.words() {
            words[number].flags = self.flags[place].0;
        }
    }

    /// The cached pages of word `number`, which has to be partial.
    #[inline(always)]
    pub fn present(&self, number: usize) -> u64 {
        debug_assert!(self.partial.find(number) != 0, "the word is partial");
        self.present[lowest_slot(self.partial.find(number)) % SLOTS]
    }

    /// The slot for the cached pages of word `number`, its own or a free one.
    #[inline(always)]
    pub fn slot_for_present(&self, number: usize) -> Option<usize> {
        let own = self.partial.find(number);
        let bits = own | self.partial.free() & u64::from(own == 0).wrapping_neg();
        (bits != 0).then(|| lowest_slot(bits))
    }

    /// Changes and returns the cached pages of word `number` in its slot; they are undefined unless
    /// it was partial.
    // Unpredictable branch: the slot is computed without one.
    #[inline(always)]
    pub fn change_present(
        &mut self,
        number: usize,
        place: usize,
        change: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let present = change(self.present[place]);
        self.present[place] = present;
        let is_partial = present.wrapping_add(1) > 1;
        self.partial.set(place, is_partial.then_some(number));
        present
    }

    /// The flags of word `number`, which has to be flagged.
    #[inline(always)]
    pub fn flags(&self, number: usize) -> &Flags {
        debug_assert!(self.flagged.find(number) != 0, "the word has flags");
        &self.flags[lowest_slot(self.flagged.find(number)) % SLOTS].0
    }

    /// The slot for the flags of word `number`, which is in `flagged`. Its flags are undefined if
    /// it is new there.
    #[inline(always)]
    pub fn slot_for_flags(&mut self, number: usize, flagged: u64) -> Option<usize> {
        match self.flagged.find(number) {
            0 => self.allocate_flags_slot(number, flagged),
            bits => Some(lowest_slot(bits)),
        }
    }

    /// The flags in a slot.
    #[inline(always)]
    pub fn flags_mut(&mut self, place: usize) -> &mut Flags {
        &mut self.flags[place].0
    }

    /// Allocates a slot for word `number`, reusing those of words no longer `flagged`.
    #[inline(never)]
    fn allocate_flags_slot(&mut self, number: usize, flagged: u64) -> Option<usize> {
        if self.flagged.free() == 0 {
            for (number, place) in self.flagged.words() {
                if flagged >> number & 1 == 0 {
                    self.flagged.set(place, None);
                }
            }
        }
        let bits = self.flagged.free();
        (bits != 0).then(|| {
            self.flagged.set(lowest_slot(bits), Some(number));
            lowest_slot(bits)
        })
    }

    /// Discards all contents; the chunk is empty.
    pub fn forget(&mut self) {
        (self.partial, self.flagged) = (SlotWords::default(), SlotWords::default());
    }
}
