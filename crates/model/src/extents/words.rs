//! The words of a chunk, in as little memory as what differs needs.

mod few;
mod row;

use std::ops::Range;

use self::few::Few;
use self::row::Row;

/// What 64 pages are, one bit a page. An absent page is nothing but `copied`.
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
    /// Forgets the cached pages of `mask`.
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

/// 64 pages, in as many bytes.
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
    /// Few runs of pages that are alike.
    Few(Few<W>),
    /// As many words as a row has room for.
    Some(Box<Row<W>>),
    /// All words.
    All(Box<AllWords<W>>),
}

/// The words of which something counts, one bit each: flags, and cached pages that are neither all
/// nor none.
#[derive(Clone, Copy)]
pub struct Counted {
    pub flagged: u64,
    pub partial: u64,
}

/// Words one after the other, each in a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub struct AllWords<const W: usize>([Word; W]);

impl<const W: usize> Words<W> {
    /// Words whose contents do not count yet.
    pub const ANY: Words<W> = Words::Few(Few::NONE);

    /// The most memory that they take beside themselves, in bytes.
    pub const MOST_BYTES: u64 = if size_of::<AllWords<W>>() > size_of::<Row<W>>() {
        size_of::<AllWords<W>>() as u64
    } else {
        size_of::<Row<W>>() as u64
    };

    /// Keeps words in a row from now on; they are anything.
    pub fn keep_in_row(&mut self) {
        if let Words::Few(_) = self {
            *self = Words::Some(Box::default());
        }
    }

    /// What `of` takes of the flags of word `number`, which has some.
    #[inline(always)]
    pub fn get<R>(&self, number: usize, of: impl FnOnce(&Flags) -> R) -> R {
        match self {
            Words::Some(row) => of(row.flags(number)),
            Words::All(words) => of(&words.0[number].flags),
            Words::Few(few) => of(&few.word(number).flags),
        }
    }

    /// Changes the flags of word `number`, which are anything if it is new among the flagged ones.
    /// What is kept of words that are not `used` counts no more.
    #[inline(always)]
    pub fn change<R>(
        &mut self,
        number: usize,
        used: Counted,
        change: impl FnOnce(&mut Flags) -> R,
    ) -> R {
        if let Words::Some(row) = self {
            if let Some(place) = row.place_of_flags(number, used.flagged) {
                return change(row.flags_mut(place));
            }
            self.spread();
        }
        match self {
            Words::All(words) => change(&mut words.0[number].flags),
            _ => self.change_few(number, used, |word| {
                word.present &= (used.partial >> number & 1).wrapping_neg();
                change(&mut word.flags)
            }),
        }
    }

    /// Keeps all words, as there is no room in a row for one more.
    #[inline(never)]
    fn spread(&mut self) {
        if let Words::Some(row) = self {
            let mut words = Box::new(AllWords([Word::default(); W]));
            row.spread(&mut words.0);
            *self = Words::All(words);
        }
    }

    /// Keeps what is `used` in a row again where it has become little.
    #[inline(always)]
    pub fn gather(&mut self, used: Counted) {
        let is_few = |words: u64| words.count_ones() <= Row::<W>::FEW;
        if let Words::All(words) = self
            && is_few(used.flagged)
            && is_few(used.partial)
        {
            *self = Words::Some(Box::new(Row::of(&words.0, used)));
        }
    }

    // What is done where all words are kept stays small without it.
    #[inline(never)]
    fn change_few<R>(
        &mut self,
        number: usize,
        used: Counted,
        change: impl FnOnce(&mut Word) -> R,
    ) -> R {
        let Words::Few(few) = self else { unreachable!("only a few are put") };
        let mut word = few.word(number);
        let changed = change(&mut word);
        self.put(number..number + 1, &word, used);
        changed
    }

    /// Puts a word, or several whose pages are all alike, where few are kept.
    fn put(&mut self, numbers: Range<usize>, word: &Word, used: Counted) {
        if let Words::Few(few) = self
            && let Some(words) = few.put(numbers, word, used)
        {
            *self = Words::All(Box::new(AllWords(words)));
        }
    }

    /// How many words from `number` on are known to be alike, all pages of each.
    #[inline]
    pub fn alike(&self, number: usize) -> usize {
        if let Words::Few(few) = self { few.alike(number) } else { 0 }
    }

    /// The cached pages of word `number`, which is partial.
    #[inline(always)]
    pub fn present(&self, number: usize) -> u64 {
        match self {
            Words::Some(row) => row.present(number),
            Words::All(words) => words.0[number].present,
            Words::Few(few) => few.word(number).present,
        }
    }

    /// Changes the cached pages of word `number`, which are anything unless it was partial. Returns
    /// them. What is kept of words that are not `used` counts no more.
    #[inline(always)]
    pub fn change_present(
        &mut self,
        number: usize,
        used: Counted,
        change: impl FnOnce(u64) -> u64,
    ) -> u64 {
        if let Words::Some(row) = self {
            if let Some(place) = row.place(number) {
                return row.change_present(number, place, change);
            }
            self.spread();
        }
        match self {
            Words::All(words) => {
                let present = change(words.0[number].present);
                words.0[number].present = present;
                present
            }
            _ => self.change_few(number, used, |word| {
                word.present = change(word.present);
                word.present
            }),
        }
    }

    /// The chunk is empty: nothing counts any more.
    pub fn forget(&mut self) {
        match self {
            Words::Some(row) => row.forget(),
            Words::All(_) => *self = Words::Some(Box::default()),
            Words::Few(few) => few.clear(),
        }
    }

    /// The words `numbers`, which are not partial and new among the flagged ones, have these flags
    /// from now on.
    pub fn fill(&mut self, numbers: Range<usize>, flags: Flags, used: Counted) {
        match self {
            Words::Few(_) => self.put(numbers, &Word { present: 0, flags }, used),
            _ => numbers.for_each(|number| self.change(number, used, |of_word| *of_word = flags)),
        }
    }

    /// Bytes of memory that they take beside themselves.
    pub fn held_bytes(&self) -> u64 {
        match self {
            Words::Few(few) => few.held_bytes(),
            Words::Some(_) => size_of::<Row<W>>() as u64,
            Words::All(_) => size_of::<AllWords<W>>() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::random::Rng;

    use super::super::lists::bits;
    use super::super::span::{CHUNK_WORDS, FEW_WORDS};
    use super::*;

    #[test]
    fn words_are_the_same_in_every_form() {
        same_in_every_form::<CHUNK_WORDS>();
        same_in_every_form::<FEW_WORDS>();
    }

    fn same_in_every_form<const W: usize>() {
        for seed in 0..2000 {
            let mut rng = Rng(seed);
            let (mut few, mut all) = (Words::<W>::ANY, Words::<W>::ANY);
            all.keep_in_row();
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
                let mask = bits(1 + rng.below(u64::from(64 - first)) as u32) << first;
                let set = |bits: u64, sets: bool| if sets { bits | mask } else { bits & !mask };
                let was = words[number].present;
                words[number].present = set(was, rng.chance(70));
                let partial = |words: &[Word; W]| {
                    let bits = (0..W).map(|at| u64::from(is_partial(words[at].present)) << at);
                    bits.sum::<u64>()
                };
                let used = Counted { flagged, partial: partial(&words) | 1 << number };
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
                        kept.fill(numbers.clone(), word.flags, Counted { flagged, partial });
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
                    let used = Counted { flagged, partial };
                    words[number].flags = few.change(number, used, change);
                    all.change(number, used, change);
                }
                all.gather(Counted { flagged, partial });
                for at in (0..W).filter(|at| flagged >> at & 1 == 1) {
                    for alike in (at..at + few.alike(at)).filter(|at| flagged >> at & 1 == 1) {
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
