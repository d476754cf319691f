//! Storage for the words of a chunk, in three sizes.

mod runs;
mod slots;

use std::ops::Range;

use self::runs::PageRuns;
use self::slots::WordSlots;

/// Flags of 64 pages, one bit each. An absent page can only be `copied`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub marked: u64,
    pub workingset: u64,
    pub mapped: u64,
    pub young: u64,
    pub referenced: u64,
    pub active: u64,
    pub copied: u64,
}

impl Flags {
    /// Clears the flags of cached pages in `mask`.
    pub fn clear(&mut self, mask: u64) {
        let keep = !mask;
        self.marked &= keep;
        self.workingset &= keep;
        self.mapped &= keep;
        self.young &= keep;
        self.referenced &= keep;
        self.active &= keep;
    }

    /// The pages of `mask` whose entries were accessed.
    pub fn accessed(&self, mask: u64) -> u64 {
        self.mapped & self.young & mask
    }
}

/// State of 64 pages, in 64 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Word {
    pub present: u64,
    pub flags: Flags,
}

impl Word {
    fn masks(&self) -> [u64; 8] {
        let Flags { marked, workingset, mapped, young, referenced, active, copied } = self.flags;
        [self.present, marked, workingset, mapped, young, referenced, active, copied]
    }

    fn masks_mut(&mut self) -> [&mut u64; 8] {
        let Flags { marked, workingset, mapped, young, referenced, active, copied } =
            &mut self.flags;
        [&mut self.present, marked, workingset, mapped, young, referenced, active, copied]
    }
}

/// The words of a chunk.
#[derive(Debug)]
pub enum Words<const W: usize> {
    /// A few runs of pages with equal flags.
    Runs(PageRuns<W>),
    /// A few words in slots.
    Slots(Box<WordSlots<W>>),
    /// All words.
    All(Box<AllWords<W>>),
}

/// Words whose stored contents are valid, one bit each: those with flags, and partially cached
/// ones.
#[derive(Clone, Copy)]
pub struct LiveWords {
    pub flagged: u64,
    pub partial: u64,
}

/// All words, each in a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub struct AllWords<const W: usize>([Word; W]);

impl<const W: usize> Words<W> {
    /// Storage without valid contents.
    pub const UNSET: Words<W> = Words::Runs(PageRuns::EMPTY);

    /// Maximum heap memory, in bytes.
    pub const MAX_BYTES: u64 = if size_of::<AllWords<W>>() > size_of::<WordSlots<W>>() {
        size_of::<AllWords<W>>() as u64
    } else {
        size_of::<WordSlots<W>>() as u64
    };

    /// Switches to slots, with undefined contents.
    pub fn use_slots(&mut self) {
        if let Words::Runs(_) = self {
            *self = Words::Slots(Box::default());
        }
    }

    /// Applies `read` to the flags of word `number`, which have to be valid.
    #[inline(always)]
    pub fn get<R>(&self, number: usize, read: impl FnOnce(&Flags) -> R) -> R {
        match self {
            Words::Slots(row) => read(row.flags(number)),
            Words::All(words) => read(&words.0[number].flags),
            Words::Runs(few) => read(&few.word(number).flags),
        }
    }

    /// Changes the flags of word `number`, which are undefined if it was not flagged before.
    /// Contents of words not in `used` may be discarded.
    #[inline(always)]
    pub fn change<R>(
        &mut self,
        number: usize,
        used: LiveWords,
        change: impl FnOnce(&mut Flags) -> R,
    ) -> R {
        if let Words::Slots(row) = self {
            if let Some(place) = row.slot_for_flags(number, used.flagged) {
                return change(row.flags_mut(place));
            }
            self.expand();
        }
        match self {
            Words::All(words) => change(&mut words.0[number].flags),
            _ => self.change_runs(number, used, |word| {
                word.present &= (used.partial >> number & 1).wrapping_neg();
                change(&mut word.flags)
            }),
        }
    }

    /// Switches from slots to all words when the slots are full.
    #[inline(never)]
    fn expand(&mut self) {
        if let Words::Slots(row) = self {
            let mut words = Box::new(AllWords([Word::default(); W]));
            row.copy_to(&mut words.0);
            *self = Words::All(words);
        }
    }

    /// Switches back to slots if few words are used.
    #[inline(always)]
    pub fn compact(&mut self, used: LiveWords) {
        let is_few = |words: u64| words.count_ones() <= WordSlots::<W>::COMPACT_WORDS;
        if let Words::All(words) = self
            && is_few(used.flagged)
            && is_few(used.partial)
        {
            *self = Words::Slots(Box::new(WordSlots::collect(&words.0, used)));
        }
    }

    // Out of line, to keep the path for all words small.
    #[inline(never)]
    fn change_runs<R>(
        &mut self,
        number: usize,
        used: LiveWords,
        change: impl FnOnce(&mut Word) -> R,
    ) -> R {
        let Words::Runs(few) = self else { unreachable!("only a few are put") };
        let mut word = few.word(number);
        let changed = change(&mut word);
        self.set_words(number..number + 1, &word, used);
        changed
    }

    /// Stores a word, or several uniform ones, as runs.
    fn set_words(&mut self, numbers: Range<usize>, word: &Word, used: LiveWords) {
        if let Words::Runs(few) = self
            && let Some(words) = few.set_words(numbers, word, used)
        {
            *self = Words::All(Box::new(AllWords(words)));
        }
    }

    /// Number of words from `number` on that are known to be uniform and equal.
    #[inline]
    pub fn uniform_words(&self, number: usize) -> usize {
        if let Words::Runs(few) = self { few.uniform_words(number) } else { 0 }
    }

    /// The cached pages of word `number`, which has to be partial.
    #[inline(always)]
    pub fn present(&self, number: usize) -> u64 {
        match self {
            Words::Slots(row) => row.present(number),
            Words::All(words) => words.0[number].present,
            Words::Runs(few) => few.word(number).present,
        }
    }

    /// Changes and returns the cached pages of word `number`, which are undefined unless it was
    /// partial. Contents of words not in `used` may be discarded.
    #[inline(always)]
    pub fn change_present(
        &mut self,
        number: usize,
        used: LiveWords,
        change: impl FnOnce(u64) -> u64,
    ) -> u64 {
        if let Words::Slots(row) = self {
            if let Some(place) = row.slot_for_present(number) {
                return row.change_present(number, place, change);
            }
            self.expand();
        }
        match self {
            Words::All(words) => {
                let present = change(words.0[number].present);
                words.0[number].present = present;
                present
            }
            _ => self.change_runs(number, used, |word| {
                word.present = change(word.present);
                word.present
            }),
        }
    }

    /// Discards all contents; the chunk is empty.
    pub fn forget(&mut self) {
        match self {
            Words::Slots(row) => row.forget(),
            Words::All(_) => *self = Words::Slots(Box::default()),
            Words::Runs(few) => few.clear(),
        }
    }

    /// Sets the flags of the words `numbers`, which are not partial and not flagged before.
    pub fn fill(&mut self, numbers: Range<usize>, flags: Flags, used: LiveWords) {
        match self {
            Words::Runs(_) => self.set_words(numbers, &Word { present: 0, flags }, used),
            _ => numbers.for_each(|number| self.change(number, used, |of_word| *of_word = flags)),
        }
    }

    /// Heap memory used, in bytes.
    pub fn held_bytes(&self) -> u64 {
        match self {
            Words::Runs(few) => few.held_bytes(),
            Words::Slots(_) => size_of::<WordSlots<W>>() as u64,
            Words::All(_) => size_of::<AllWords<W>>() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::random::Rng;

    use super::super::lists::low_bits;
    use super::super::span::{CHUNK_WORDS, TINY_CHUNK_WORDS};
    use super::*;

    #[test]
    fn words_are_the_same_in_every_form() {
        same_in_every_form::<CHUNK_WORDS>();
        same_in_every_form::<TINY_CHUNK_WORDS>();
    }

    fn same_in_every_form<const W: usize>() {
        for seed in 0..2000 {
            let mut rng = Rng(seed);
            let (mut few, mut all) = (Words::<W>::UNSET, Words::<W>::UNSET);
            all.use_slots();
            let (mut words, mut flagged) = ([Word::default(); W], 0);
            let is_partial = |pages: u64| pages != 0 && pages != u64::MAX;
            for _ in 0..rng.below(40) {
                let number = rng.below(W as u64) as usize;
                if rng.chance(30) {
                    let number = rng.below(W as u64) as usize;
                    flagged &= !(1 << number);
                    words[number].flags = Flags::default();
                }
                if rng.chance(3) {
                    (words, flagged) = ([Word::default(); W], 0);
                    few.forget();
                    all.forget();
                }
                let first = rng.below(64) as u32;
                let mask = low_bits(1 + rng.below(u64::from(64 - first)) as u32) << first;
                let set = |bits: u64, sets: bool| if sets { bits | mask } else { bits & !mask };
                let was = words[number].present;
                words[number].present = set(was, rng.chance(70));
                let partial = |words: &[Word; W]| {
                    let bits = (0..W).map(|at| u64::from(is_partial(words[at].present)) << at);
                    bits.sum::<u64>()
                };
                let used = LiveWords { flagged, partial: partial(&words) | 1 << number };
                for kept in [&mut few, &mut all] {
                    let change = |before| {
                        let before = if is_partial(was) { before } else { was };
                        assert_eq!(before, was, "word {number} with seed {seed}");
                        words[number].present
                    };
                    kept.change_present(number, used, change);
                }
                let partial = partial(&words);
                let (kind, sets) = (rng.below(7) as usize + 1, rng.chance(70));
                let is_new = flagged >> number & 1 == 0;
                if is_new && partial >> number & 1 == 0 && rng.chance(40) {
                    let end = W.min(number + 1 + rng.below(20) as usize);
                    let plain = ((flagged | partial) >> number).trailing_zeros() as usize;
                    let numbers = number..end.min(number + plain);
                    let mut word = Word::default();
                    *word.masks_mut()[kind] = if sets { u64::MAX } else { 0 };
                    for number in numbers.clone() {
                        flagged |= 1 << number;
                        words[number].flags = word.flags;
                    }
                    for kept in [&mut few, &mut all] {
                        kept.fill(numbers.clone(), word.flags, LiveWords { flagged, partial });
                    }
                } else {
                    flagged |= 1 << number;
                    let change = |flags: &mut Flags| {
                        let mut word = Word {
                            present: 0,
                            flags: if is_new { Flags::default() } else { *flags },
                        };
                        let bits = &mut *word.masks_mut()[kind];
                        *bits = set(*bits, sets);
                        *flags = word.flags;
                        *flags
                    };
                    let used = LiveWords { flagged, partial };
                    words[number].flags = few.change(number, used, change);
                    all.change(number, used, change);
                }
                all.compact(LiveWords { flagged, partial });
                for at in (0..W).filter(|at| flagged >> at & 1 == 1) {
                    for alike in
                        (at..at + few.uniform_words(at)).filter(|at| flagged >> at & 1 == 1)
                    {
                        assert_eq!(words[alike].flags, words[at].flags, "{alike}, seed {seed}");
                    }
                }
                for (number, word) in words.iter().enumerate() {
                    for kept in [&few, &all] {
                        if is_partial(word.present) {
                            assert_eq!(kept.present(number), word.present, "{number}, seed {seed}");
                        }
                        if flagged >> number & 1 == 1 {
                            let flags = kept.get(number, |flags| *flags);
                            assert_eq!(flags, word.flags, "{number}, seed {seed}");
                        }
                    }
                }
            }
        }
    }
}
