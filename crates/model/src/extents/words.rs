//! The words of a chunk: as runs of pages that are alike where there are few, else one by one.

use super::lists::bits;
use super::row::Row;

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

/// Pages of one word that lie one behind the other and are alike: the word, the first page in it,
/// one less than their number, and one bit for each of [`Word::masks`]; highest bits first.
#[derive(Clone, Copy, Debug)]
pub struct Run(u32);

impl Run {
    fn new(word: usize, first: u32, pages: u32, bits: u32) -> Run {
        Run((word as u32) << 20 | first << 14 | (pages - 1) << 8 | bits)
    }

    fn word(self) -> usize {
        (self.0 >> 20) as usize
    }

    fn mask(self) -> u64 {
        bits((self.0 >> 8 & 63) + 1) << (self.0 >> 14 & 63)
    }
}

/// Where there would be more runs, the words are kept one by one.
const MOST_RUNS: usize = if cfg!(feature = "tiny-chunks") { 4 } else { 20 };

/// The words of a chunk.
#[derive(Debug)]
pub enum Words {
    /// Pages that are anything at all, by word. Words of which nothing is kept are anything.
    Few(Vec<Run>),
    /// All words.
    All(Box<Row>),
}

/// The words of which something counts, one bit each: flags, and cached pages that are neither all
/// nor none.
#[derive(Clone, Copy)]
pub struct Used {
    pub flagged: u64,
    pub partial: u64,
}

impl Words {
    /// Words that are anything.
    pub const ANY: Words = Words::Few(Vec::new());

    /// Keeps all words, which are anything.
    pub fn keep_all(&mut self) {
        if let Words::Few(_) = self {
            *self = Words::All(Box::default());
        }
    }

    /// What `of` takes of the flags of word `number`, which has some.
    #[inline(always)]
    pub fn get<R>(&self, number: usize, of: impl FnOnce(&Flags) -> R) -> R {
        match self {
            Words::All(row) => of(row.flags(number)),
            Words::Few(runs) => of_few(runs, number, of),
        }
    }

    /// Changes the flags of word `number`, which are anything if it `is_new` among the flagged
    /// ones. What is kept of words that are not `used` counts no more.
    #[inline(always)]
    pub fn change<R>(
        &mut self,
        number: usize,
        is_new: bool,
        used: Used,
        change: impl FnOnce(&mut Flags) -> R,
    ) -> R {
        match self {
            Words::All(row) => change(row.flags_mut(number, is_new, used.flagged)),
            Words::Few(_) => self.change_few(number, used, |word| {
                word.present &= (used.partial >> number & 1).wrapping_neg();
                change(&mut word.flags)
            }),
        }
    }

    // What is done where all words are kept stays small without it.
    #[inline(never)]
    fn change_few<R>(
        &mut self,
        number: usize,
        used: Used,
        change: impl FnOnce(&mut Word) -> R,
    ) -> R {
        let Words::Few(runs) = self else { unreachable!("only a few are put") };
        let mut word = gathered(runs, number);
        let changed = change(&mut word);
        self.put(number, &word, used);
        changed
    }

    /// The cached pages of word `number`, which is partial.
    #[inline(always)]
    pub fn present(&self, number: usize) -> u64 {
        match self {
            Words::All(row) => row.present(number),
            Words::Few(runs) => gathered(runs, number).present,
        }
    }

    /// Changes the cached pages of word `number`, which are anything unless it `was_partial`.
    /// Returns them. What is kept of words that are not `used` counts no more.
    #[inline(always)]
    pub fn change_present(
        &mut self,
        number: usize,
        was_partial: bool,
        used: Used,
        change: impl FnOnce(u64) -> u64,
    ) -> u64 {
        match self {
            Words::All(row) => row.change_present(number, was_partial, change),
            Words::Few(_) => self.change_few(number, used, |word| {
                word.present = change(word.present);
                word.present
            }),
        }
    }

    /// No word is partial any more.
    pub fn forget_present(&mut self) {
        if let Words::All(row) = self {
            row.forget_present();
        }
    }

    #[inline(never)]
    fn put(&mut self, number: usize, word: &Word, used: Used) {
        let used = used.flagged | used.partial;
        let Words::Few(runs) = self else { unreachable!("only a few are put") };
        runs.retain(|run| run.word() != number && used >> run.word() & 1 == 1);
        runs.extend(runs_of(number, word));
        if runs.len() > MOST_RUNS {
            let words = std::array::from_fn(|number| gathered(runs, number));
            *self = Words::All(Box::new(Row::of(words)));
        }
    }

    /// Bytes of memory that they take beside themselves.
    pub fn held_bytes(&self) -> u64 {
        match self {
            Words::Few(runs) => (runs.capacity() * size_of::<Run>()) as u64,
            Words::All(row) => row.held_bytes(),
        }
    }
}

#[inline(never)]
fn of_few<R>(runs: &[Run], number: usize, of: impl FnOnce(&Flags) -> R) -> R {
    of(&gathered(runs, number).flags)
}

#[inline(never)]
fn gathered(runs: &[Run], number: usize) -> Word {
    let mut word = Word::default();
    for run in runs.iter().filter(|run| run.word() == number) {
        let mask = run.mask();
        for (bit, of_word) in word.masks_mut().into_iter().enumerate() {
            *of_word |= if run.0 >> bit & 1 == 1 { mask } else { 0 };
        }
    }
    word
}

/// The runs of pages of a word that are anything.
fn runs_of(number: usize, word: &Word) -> impl Iterator<Item = Run> {
    let masks = word.masks();
    let any = masks.iter().fold(0, |any, mask| any | mask);
    let mut left = any;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let first = left.trailing_zeros();
        let unlike = |mask: &u64| mask ^ (mask >> first & 1).wrapping_neg();
        let others = masks.iter().fold(!any, |others, mask| others | unlike(mask)) >> first;
        let pages = others.trailing_zeros().min(u64::BITS - first);
        left &= !(bits(pages) << first);
        let kinds =
            masks.iter().rev().fold(0, |kinds, mask| kinds << 1 | (mask >> first & 1) as u32);
        Some(Run::new(number, first, pages, kinds))
    })
}

#[cfg(test)]
mod tests {
    use filemap_job::random::Rng;

    use super::*;

    #[test]
    fn few_words_are_what_all_are() {
        for seed in 0..2000 {
            let mut rng = Rng(seed);
            let (mut few, mut all) = (Words::ANY, Words::ANY);
            all.keep_all();
            let mut used = 0;
            for _ in 0..rng.below(40) {
                let number = rng.below(CHUNK_WORDS as u64) as usize;
                used |= 1 << number;
                let first = rng.below(64) as u32;
                let mask = bits(1 + rng.below(u64::from(64 - first)) as u32) << first;
                let (kind, sets) = (rng.below(8) as usize, rng.chance(70));
                for words in [&mut few, &mut all] {
                    words.change(
                        number,
                        || used,
                        |word| {
                            let bits = &mut *word.masks_mut()[kind];
                            *bits = if sets { *bits | mask } else { *bits & !mask };
                        },
                    );
                }
                for number in (0..CHUNK_WORDS).filter(|number| used >> number & 1 == 1) {
                    let found = [&few, &all].map(|words| words.get(number, Word::masks));
                    assert_eq!(found[0], found[1], "word {number} with seed {seed}");
                }
            }
        }
    }
}
