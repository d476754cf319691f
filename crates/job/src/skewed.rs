//! Skewed random page numbers.

use std::convert::Infallible;

use rand_core::TryRng;
use rand_distr::{Distribution, Zipf};

use crate::xorshift::xorshift64;

/// Draws pages of a mapping by rank.
///
/// The page of a rank does not depend on the seed. Adjacent ranks are far apart: rank r is page r x
/// step modulo the number of pages, where step is the first number coprime to the number of pages
/// from 0.618 times that number.
#[derive(Clone, Debug)]
pub struct Skewed {
    by: By,
    state: u64,
    pages: u64,
    step: u64,
}

#[derive(Clone, Debug)]
enum By {
    Zipf(Zipf<f64>),
    Hot { percent: u64, hot: u64 },
}

impl Skewed {
    /// Draws rank r, from 1, with a probability proportional to 1/r^(`thousandths` / 1000), out of
    /// `pages` pages (not 0). `seed` is not 0.
    pub fn zipf(thousandths: u32, pages: u64, seed: u64) -> Skewed {
        let exponent = f64::from(thousandths) / 1000.0;
        let zipf = Zipf::new(pages as f64, exponent).expect("at least one page, and no sign");
        Skewed::new(By::Zipf(zipf), pages, seed)
    }

    /// Draws from the `hot_percent` percent hot pages (at least one page) with a probability of
    /// `percent` percent, and otherwise from the others.
    pub fn hot(percent: u8, hot_percent: u8, pages: u64, seed: u64) -> Skewed {
        let hot = (u128::from(pages) * u128::from(hot_percent) / 100).max(1) as u64;
        Skewed::new(By::Hot { percent: percent.into(), hot }, pages, seed)
    }

    fn new(by: By, pages: u64, state: u64) -> Skewed {
        Skewed { by, state, pages, step: step(pages) }
    }

    /// The next page.
    pub fn draw(&mut self) -> u64 {
        let rank = match &self.by {
            By::Zipf(zipf) => {
                let drawn = zipf.sample(&mut Draws(&mut self.state)) as u64;
                drawn.clamp(1, self.pages) - 1
            }
            By::Hot { percent, hot } => {
                let (percent, hot) = (*percent, *hot);
                let cold = self.pages - hot;
                let is_hot = self.next() % 100 < percent || cold == 0;
                if is_hot { self.next() % hot } else { hot + self.next() % cold }
            }
        };
        (u128::from(rank) * u128::from(self.step) % u128::from(self.pages)) as u64
    }

    fn next(&mut self) -> u64 {
        self.state = xorshift64(self.state);
        self.state
    }
}

/// Distance between adjacent ranks.
fn step(pages: u64) -> u64 {
    let from = (u128::from(pages) * 618 / 1000).max(1) as u64;
    (from..).find(|step| divisor(*step, pages) == 1).expect("one below twice the number")
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Adapter of xorshift64 for the distributions of `rand`.
struct Draws<'a>(&'a mut u64);

impl TryRng for Draws<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|drawn| (drawn >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        *self.0 = xorshift64(*self.0);
        Ok(*self.0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for part in bytes.chunks_mut(8) {
            let drawn = self.try_next_u64()?.to_le_bytes();
            part.copy_from_slice(&drawn[..part.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use super::*;
    use crate::xorshift::DEFAULT_SEED;

    #[test]
    fn each_rank_is_a_page() {
        for pages in 1..300 {
            let step = step(pages);
            let places: BTreeSet<u64> = (0..pages).map(|rank| rank * step % pages).collect();
            assert_eq!(places.len() as u64, pages, "{pages} pages, {step}");
        }
        for pages in [1 << 48, (1 << 48) - 1, 1 << 40] {
            assert_eq!(divisor(step(pages), pages), 1);
        }
    }

    fn counted(mut drawn: Skewed, draws: u64) -> HashMap<u64, u64> {
        let mut counts = HashMap::new();
        (0..draws).for_each(|_| *counts.entry(drawn.draw()).or_default() += 1);
        counts
    }

    /// The shares of ranks 1, 2, 10 and 100 of 1000, computed by summing all powers.
    #[test]
    fn ranks_are_drawn_as_often_as_their_powers_say() {
        for thousandths in [0, 500, 990, 1000, 1200, 3000] {
            let (pages, draws) = (1000_u64, 400_000);
            let counts = counted(Skewed::zipf(thousandths, pages, DEFAULT_SEED), draws);
            let weight = |rank: u64| (rank as f64).powf(-f64::from(thousandths) / 1000.0);
            let all: f64 = (1..=pages).map(weight).sum();
            let place = |rank: u64| (rank - 1) * step(pages) % pages;
            for rank in [1, 2, 10, 100] {
                let expected = weight(rank) / all * draws as f64;
                let found = counts.get(&place(rank)).copied().unwrap_or(0) as f64;
                let most = 5.0 * expected.sqrt() + 1.0;
                assert!((found - expected).abs() < most, "{thousandths}, {rank}: {found}");
            }
        }
    }

    #[test]
    fn hot_pages_are_drawn_at_their_rate() {
        let (pages, draws) = (1000, 100_000);
        let counts = counted(Skewed::hot(90, 10, pages, DEFAULT_SEED), draws);
        let hot: BTreeSet<u64> = (0..100).map(|rank| rank * step(pages) % pages).collect();
        let of_hot: u64 = hot.iter().filter_map(|page| counts.get(page)).sum();
        assert!((89_500..90_500).contains(&of_hot), "{of_hot}");
        assert!(counts.len() > 990, "the others are drawn too");
    }

    #[test]
    fn one_page_is_drawn_alone() {
        for mut drawn in [Skewed::zipf(990, 1, 7), Skewed::hot(50, 1, 1, 7)] {
            assert!((0..100).all(|_| drawn.draw() == 0));
        }
        let mut most = Skewed::zipf(990, 1 << 48, DEFAULT_SEED);
        assert!((0..1000).all(|_| most.draw() < 1 << 48));
    }
}
