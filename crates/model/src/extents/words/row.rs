//! The words of a busy chunk: what is to be said of them lies together, for as many as most chunks
//! have.

use super::super::span::limit;
use super::{Counted, Flags, Word};

/// Room for so many words lies together.
const ROOM: usize = 7;

/// Which words are in which place of so many: a byte each, with its highest bit, or 0.
#[derive(Clone, Copy, Debug, Default)]
struct Places<const W: usize>(u64);

/// The place that a bit of [`Places`] is of.
#[inline(always)]
fn place(bits: u64) -> usize {
    bits.trailing_zeros() as usize / 8
}

impl<const W: usize> Places<W> {
    /// So many of them are used.
    const USED: usize = limit(W, ROOM as u64, 1) as usize;

    /// The lowest bit of each of their bytes, and the highest.
    const LOWEST: u64 = 0x0101_0101_0101_0101 >> (64 - 8 * Self::USED);
    const HIGHEST: u64 = Self::LOWEST << 7;

    /// The lowest bit that is set is that of the place of word `number`; none is if it has none.
    #[inline(always)]
    fn of(self, number: usize) -> u64 {
        let unlike = self.0 ^ ((number as u64 * Self::LOWEST) | Self::HIGHEST);
        // Borrowing sets bits above the lowest byte that is 0 only.
        unlike.wrapping_sub(Self::LOWEST) & !unlike & Self::HIGHEST
    }

    /// A bit for each place that is free.
    #[inline(always)]
    fn free(self) -> u64 {
        !self.0 & Self::HIGHEST
    }

    /// The word in a place from now on is `number`, or none.
    #[inline(always)]
    fn set(&mut self, place: usize, number: Option<usize>) {
        let byte = number.map_or(0, |number| number as u64 | 0x80);
        self.0 = self.0 & !(0xff << (8 * place)) | byte << (8 * place);
    }

    /// The words that have places, and these.
    fn words(self) -> impl Iterator<Item = (usize, usize)> {
        let byte = move |place| (self.0 >> (8 * place)) as usize & 0xff;
        (0..Self::USED)
            .map(move |place| (byte(place), place))
            .filter(|word| word.0 != 0)
            .map(|(byte, place)| (byte & 0x7f, place))
    }
}

/// Some words of a chunk: the cached pages of those that are partial, and the flags of those that
/// have some.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Row<const W: usize> {
    partial: Places<W>,
    present: [u64; ROOM],
    flagged: Places<W>,
    flags: [Line; ROOM],
}

/// The flags of a word, in a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line(Flags);

impl<const W: usize> Row<W> {
    /// So many words of either kind leave room for some more.
    pub const FEW: u32 = limit(W, 5, 1) as u32;

    /// The words of these that are used, of which there are few.
    pub fn of(words: &[Word; W], Counted { mut flagged, mut partial }: Counted) -> Row<W> {
        let mut row = Row::default();
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

    /// Puts its words among those of the chunk.
    pub fn spread(&self, words: &mut [Word; W]) {
        for (number, place) in self.partial.words() {
            words[number].present = self.present[place];
        }
        for (number, place) in self.flagged.words() {
            words[number].flags = self.flags[place].0;
        }
    }

    /// The cached pages of word `number`, which is partial.
    #[inline(always)]
    pub fn present(&self, number: usize) -> u64 {
        debug_assert!(self.partial.of(number) != 0, "the word is partial");
        self.present[place(self.partial.of(number)) % ROOM]
    }

    /// The place for the cached pages of word `number`, if there is one.
    #[inline(always)]
    pub fn place(&self, number: usize) -> Option<usize> {
        let own = self.partial.of(number);
        let bits = own | self.partial.free() & u64::from(own == 0).wrapping_neg();
        (bits != 0).then(|| place(bits))
    }

    /// Changes the cached pages of word `number`, which are anything unless it was partial, in its
    /// place. Returns them.
    // Whether the word has a place cannot be predicted, so the place is computed without a branch.
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

    /// The flags of word `number`, which has some.
    #[inline(always)]
    pub fn flags(&self, number: usize) -> &Flags {
        debug_assert!(self.flagged.of(number) != 0, "the word has flags");
        &self.flags[place(self.flagged.of(number)) % ROOM].0
    }

    /// The place for the flags of word `number`, one of the `flagged` ones, if there is one. They
    /// are anything if it is new among them.
    #[inline(always)]
    pub fn place_of_flags(&mut self, number: usize, flagged: u64) -> Option<usize> {
        match self.flagged.of(number) {
            0 => self.place_for_flags(number, flagged),
            bits => Some(place(bits)),
        }
    }

    /// The flags in a place.
    #[inline(always)]
    pub fn flags_mut(&mut self, place: usize) -> &mut Flags {
        &mut self.flags[place].0
    }

    /// A free place for word `number`, or that of a word that is not `flagged` any more.
    #[inline(never)]
    fn place_for_flags(&mut self, number: usize, flagged: u64) -> Option<usize> {
        if self.flagged.free() == 0 {
            for (number, place) in self.flagged.words() {
                if flagged >> number & 1 == 0 {
                    self.flagged.set(place, None);
                }
            }
        }
        let bits = self.flagged.free();
        (bits != 0).then(|| {
            self.flagged.set(place(bits), Some(number));
            place(bits)
        })
    }

    /// The chunk is empty: nothing counts any more.
    pub fn forget(&mut self) {
        (self.partial, self.flagged) = (Places::default(), Places::default());
    }
}
