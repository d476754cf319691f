//! The words of a busy chunk: what is to be said of them lies together, for as many as most chunks
//! have.

use super::span::CHUNK_WORDS;
use super::words::{Flags, Word};

/// Room for so many words lies together.
const ROOM: usize = if cfg!(feature = "tiny-chunks") { 1 } else { 7 };

/// Which words are in which place of so many: a byte each, with its highest bit, or 0.
#[derive(Clone, Copy, Debug, Default)]
struct Places(u64);

/// The lowest bit of each of these bytes, and the highest.
const LOWEST: u64 = 0x0101_0101_0101_0101 >> (64 - 8 * ROOM);
const HIGHEST: u64 = LOWEST << 7;

/// The place that a bit of [`Places`] is of.
#[inline(always)]
fn place(bits: u64) -> usize {
    bits.trailing_zeros() as usize / 8
}

impl Places {
    /// The lowest bit that is set is that of the place of word `number`; none is if it has none.
    #[inline(always)]
    fn of(self, number: usize) -> u64 {
        let unlike = self.0 ^ (number as u64 * LOWEST | HIGHEST);
        // Borrowing sets bits above the lowest byte that is 0 only.
        unlike.wrapping_sub(LOWEST) & !unlike & HIGHEST
    }

    /// A bit for each place that is free.
    #[inline(always)]
    fn free(self) -> u64 {
        !self.0 & HIGHEST
    }

    /// The word in a place from now on is `number`, or none.
    #[inline(always)]
    fn set(&mut self, place: usize, number: Option<usize>) {
        let byte = number.map_or(0, |number| number as u64 | 0x80);
        self.0 = self.0 & !(0xff << (8 * place)) | byte << (8 * place);
    }

    /// Frees the places of words that are not in `used`, one bit each.
    fn keep(&mut self, used: u64) {
        for place in 0..ROOM {
            let number = self.0 >> (8 * place) & 0x7f;
            if used >> number & 1 == 0 {
                self.set(place, None);
            }
        }
    }
}

/// The words of a chunk: the cached pages of those that are partial, and the flags of some.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Row {
    partial: Places,
    present: [u64; ROOM],
    flagged: Places,
    /// Words for which there was no room.
    others: Option<Box<[Word; CHUNK_WORDS]>>,
    flags: [Line; ROOM],
}

/// The flags of a word, in a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line(Flags);

impl Row {
    /// Words that are as these.
    pub fn of(words: [Word; CHUNK_WORDS]) -> Row {
        Row { others: Some(Box::new(words)), ..Row::default() }
    }

    /// Bytes of memory that it takes.
    pub fn held_bytes(&self) -> u64 {
        let others = if self.others.is_some() { size_of::<[Word; CHUNK_WORDS]>() } else { 0 };
        (size_of::<Row>() + others) as u64
    }

    /// Word `number`, for which there was no room.
    #[inline(never)]
    fn other(&self, number: usize) -> &Word {
        &self.others.as_ref().expect("there was no room")[number]
    }

    #[inline(never)]
    fn other_mut(&mut self, number: usize) -> &mut Word {
        &mut self.others.get_or_insert_with(|| Box::new([Word::default(); CHUNK_WORDS]))[number]
    }

    /// The cached pages of word `number`, which is partial.
    #[inline(always)]
    pub fn present(&self, number: usize) -> u64 {
        match self.partial.of(number) {
            0 => self.other(number).present,
            bits => self.present[place(bits)],
        }
    }

    /// Changes the cached pages of word `number`, which are anything unless it `was_partial`.
    /// Returns them.
    // What is anybody's guess is calculated: a processor that guesses wrong waits.
    #[inline(always)]
    pub fn change_present(
        &mut self,
        number: usize,
        was_partial: bool,
        change: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let own = self.partial.of(number);
        let bits = own | self.partial.free() & u64::from(own == 0).wrapping_neg();
        if (bits == 0) | (was_partial & (own == 0)) {
            let present = &mut self.other_mut(number).present;
            *present = change(*present);
            return *present;
        }
        let place = place(bits);
        let present = change(self.present[place]);
        self.present[place] = present;
        let is_partial = present.wrapping_add(1) > 1;
        self.partial.set(place, is_partial.then_some(number));
        present
    }

    /// No word is partial any more.
    pub fn forget_present(&mut self) {
        self.partial = Places::default();
    }

    /// The flags of word `number`, which has some.
    #[inline(always)]
    pub fn flags(&self, number: usize) -> &Flags {
        match self.flagged.of(number) {
            0 => &self.other(number).flags,
            bits => &self.flags[place(bits)].0,
        }
    }

    /// The flags of word `number`, which are anything if it `is_new` among the `flagged` words.
    #[inline(always)]
    pub fn flags_mut(&mut self, number: usize, is_new: bool, flagged: u64) -> &mut Flags {
        match self.flagged.of(number) {
            0 => self.made_flags(number, is_new, flagged),
            bits => &mut self.flags[place(bits)].0,
        }
    }

    #[inline(never)]
    fn made_flags(&mut self, number: usize, is_new: bool, flagged: u64) -> &mut Flags {
        if is_new && self.flagged.free() == 0 {
            self.flagged.keep(flagged);
        }
        match self.flagged.free() {
            bits if is_new && bits != 0 => {
                self.flagged.set(place(bits), Some(number));
                &mut self.flags[place(bits)].0
            }
            _ => &mut self.other_mut(number).flags,
        }
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::random::Rng;

    use super::*;

    #[test]
    fn words_are_what_they_were_made() {
        for seed in 0..1000 {
            let mut rng = Rng(seed);
            let mut row = Row::default();
            let mut words = [Word::default(); CHUNK_WORDS];
            let mut flagged = 0;
            let is_partial = |pages: u64| pages != 0 && pages != u64::MAX;
            for _ in 0..rng.below(300) {
                let number = rng.below(CHUNK_WORDS.min(16) as u64) as usize;
                let Word { present, flags } = &mut words[number];
                let (was, random) = (*present, rng.next());
                let now = rng.pick(&[0, u64::MAX, random, was | 3]);
                let change = |before| {
                    let before = if is_partial(was) { before } else { was };
                    assert_eq!(before, was, "word {number} with seed {seed}");
                    now
                };
                *present = row.change_present(number, is_partial(was), change);
                let (is_new, bit) = (flagged >> number & 1 == 0, 1 << number);
                if rng.chance(30) {
                    flagged &= !bit;
                } else {
                    flagged |= bit;
                    flags.mapped = rng.next();
                    let of_row = row.flags_mut(number, is_new, flagged);
                    *of_row = Flags { mapped: flags.mapped, ..Flags::default() };
                }
                for (number, word) in words.iter().enumerate() {
                    if is_partial(word.present) {
                        assert_eq!(row.present(number), word.present, "{number}, seed {seed}");
                    }
                    if flagged >> number & 1 == 1 {
                        assert_eq!(*row.flags(number), word.flags, "{number}, seed {seed}");
                    }
                }
            }
        }
    }
}
