//! Histograms of durations.

/// A histogram of durations with power-of-two buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    classes: [u64; 64],
    /// Number of durations.
    pub count: u64,
    /// Sum of all durations.
    pub sum_ns: u64,
    /// Longest duration.
    pub max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { classes: [0; 64], count: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Length of [`Histogram::words`].
    pub const WORDS: usize = 67;

    /// Adds a duration. 0 is not counted.
    pub fn add(&mut self, ns: u64) {
        if ns == 0 {
            return;
        }
        self.classes[ns.ilog2() as usize] += 1;
        self.count += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    /// The `percent`-th percentile: the end of its bucket, or the longest duration if that is less.
    pub fn percentile_ns(&self, percent: u64) -> u64 {
        let wanted = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return ((1u64 << class) - 1 + (1 << class)).min(self.max_ns);
            }
        }
        0
    }

    /// Serializes to words; the last one is the maximum, the others are sums.
    pub fn words(&self) -> [u64; Histogram::WORDS] {
        let mut words = [0; Histogram::WORDS];
        words[..64].copy_from_slice(&self.classes);
        words[64..].copy_from_slice(&[self.count, self.sum_ns, self.max_ns]);
        words
    }

    /// The inverse of [`Histogram::words`].
    pub fn from_words(words: [u64; Histogram::WORDS]) -> Histogram {
        let [count, sum_ns, max_ns] = [words[64], words[65], words[66]];
        Histogram { classes: std::array::from_fn(|class| words[class]), count, sum_ns, max_ns }
    }

    /// The non-empty buckets: shortest duration and count of each.
    pub fn classes(&self) -> impl Iterator<Item = (u64, u64)> {
        let classes = self.classes.into_iter().enumerate();
        classes.filter(|(_, count)| *count > 0).map(|(class, count)| (1 << class, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_classes() {
        let mut spans = Histogram::default();
        assert_eq!((spans.percentile_ns(50), spans.classes().count()), (0, 0));
        for ns in [0, 1, 5, 6, 7, 1000] {
            spans.add(ns);
        }
        assert_eq!((spans.count, spans.sum_ns, spans.max_ns), (5, 1019, 1000));
        assert_eq!((spans.percentile_ns(50), spans.percentile_ns(99)), (7, 1000));
        assert_eq!(spans.classes().collect::<Vec<_>>(), [(1, 1), (4, 3), (512, 1)]);
        assert_eq!(Histogram::from_words(spans.words()), spans);
    }
}
