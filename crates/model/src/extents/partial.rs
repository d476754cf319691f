//! The cached pages of the words of a chunk that are neither full nor empty.

/// So many such words lie together, in one cache line with their numbers: most chunks have no more.
const KEPT: usize = if cfg!(feature = "tiny-chunks") { 1 } else { 7 };

/// The lowest bit of a byte for each word that is kept.
const LOWEST: u64 = 0x0101_0101_0101_0101 >> (64 - 8 * KEPT);
/// The highest bit of each, which is set where a word is.
const HIGHEST: u64 = LOWEST << 7;

/// The cached pages of a few words, by the word's number.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Partial {
    /// The number of the word in each place, a byte each with the highest bit set; else 0.
    numbers: u64,
    pages: [u64; KEPT],
}

impl Partial {
    /// No word is kept.
    pub const NONE: Partial = Partial { numbers: 0, pages: [0; KEPT] };

    /// Of the highest bits that of the place of word `number`, or those of the free places; and
    /// whether it is kept.
    #[inline(always)]
    fn place(&self, number: usize) -> (u64, bool) {
        let unlike = self.numbers ^ (number as u64 * LOWEST | HIGHEST);
        // The lowest byte that is 0 is found, and perhaps others above it.
        let kept = unlike.wrapping_sub(LOWEST) & !unlike & HIGHEST;
        let free = !self.numbers & HIGHEST;
        (kept | free & u64::from(kept == 0).wrapping_neg(), kept != 0)
    }

    /// The pages of word `number`, if it is kept.
    #[inline(always)]
    pub fn get(&self, number: usize) -> Option<u64> {
        let (place, is_kept) = self.place(number);
        is_kept.then(|| self.pages[place.trailing_zeros() as usize / 8])
    }

    /// Changes the pages of word `number`, which are anything unless it `was_partial`. If it is
    /// partial then, it is kept where there is room, and else `elsewhere`, as it may have been.
    /// Returns its pages.
    // What is anybody's guess is calculated: a processor that guesses wrong waits.
    #[inline(always)]
    pub fn change(
        &mut self,
        number: usize,
        was_partial: bool,
        elsewhere: &mut u64,
        change: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let (place, is_kept) = self.place(number);
        if place == 0 {
            *elsewhere = change(*elsewhere);
            return *elsewhere;
        }
        let shift = place.trailing_zeros() & !7;
        let kept = &mut self.pages[shift as usize / 8];
        let before = if was_partial & !is_kept { *elsewhere } else { *kept };
        *kept = change(before);
        let is_partial = kept.wrapping_add(1) > 1;
        let byte = if is_partial { number as u64 | 0x80 } else { 0 };
        self.numbers = self.numbers & !(0xff << shift) | byte << shift;
        *kept
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::random::Rng;

    use super::*;

    #[test]
    fn words_are_kept_or_lie_elsewhere() {
        for seed in 0..1000 {
            let mut rng = Rng(seed);
            let mut partial = Partial::NONE;
            let (mut words, mut elsewhere) = ([0; 12], [0; 12]);
            for _ in 0..rng.below(200) {
                let number = rng.below(12) as usize;
                let was = words[number];
                let is_partial = |pages: u64| pages != 0 && pages != u64::MAX;
                words[number] = rng.pick(&[0, u64::MAX, rng.next(), was | 3, was & 3]);
                let after =
                    partial.change(number, is_partial(was), &mut elsewhere[number], |before| {
                        let before = if is_partial(was) { before } else { was };
                        assert_eq!(before, was, "word {number} with seed {seed}");
                        words[number]
                    });
                assert_eq!(after, words[number], "word {number} with seed {seed}");
                for (number, &pages) in words.iter().enumerate().filter(|word| is_partial(*word.1))
                {
                    let found = partial.get(number).unwrap_or(elsewhere[number]);
                    assert_eq!(found, pages, "word {number} with seed {seed}");
                }
            }
        }
    }
}
