//! Latencies, with percentiles that are right within a few percent.

use serde::{Deserialize, Serialize};

/// Buckets of each power of two, as an exponent of 2. A percentile is off by at most half of a
/// bucket, or 3 %.
const SPLIT_BITS: u32 = 4;

/// Buckets: one for each duration below 2^[`SPLIT_BITS`], then 2^[`SPLIT_BITS`] for each power.
const BUCKETS: usize = (65 - SPLIT_BITS as usize) << SPLIT_BITS;

/// A histogram of latencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyHistogram {
    buckets: Vec<u64>,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram { buckets: vec![0; BUCKETS], sum_ns: 0, max_ns: 0 }
    }
}

impl LatencyHistogram {
    /// Length of [`LatencyHistogram::words`].
    pub const WORDS: usize = BUCKETS + 2;

    /// Adds a latency.
    pub fn add(&mut self, ns: u64) {
        self.buckets[bucket(ns)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The `count` longest latencies.
    pub fn longest(&self, count: u64) -> LatencyHistogram {
        let mut longest = LatencyHistogram { max_ns: self.max_ns, ..LatencyHistogram::default() };
        let mut left = count;
        for (at, number) in self.buckets.iter().enumerate().rev() {
            let taken = left.min(*number);
            longest.buckets[at] = taken;
            longest.sum_ns = longest.sum_ns.saturating_add(taken.saturating_mul(middle_ns(at)));
            left -= taken;
        }
        if left == 0 && longest.count() == self.count() {
            longest.sum_ns = self.sum_ns;
        }
        longest
    }

    /// Adds all latencies of `other`.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(own, other)| *own += other);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The latency that `per_mille` of 1000 do not exceed, in the middle of its bucket.
    fn quantile_ns(&self, per_mille: u64) -> u64 {
        let wanted = (self.count() * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let at = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        at.map_or(0, |at| middle_ns(at).min(self.max_ns))
    }

    /// Serializes to words; the last one is the maximum, the others are sums.
    pub fn words(&self) -> Vec<u64> {
        self.buckets.iter().copied().chain([self.sum_ns, self.max_ns]).collect()
    }

    /// The inverse of [`LatencyHistogram::words`].
    ///
    /// # Panics
    /// If their number is another than [`LatencyHistogram::WORDS`].
    pub fn from_words(words: &[u64]) -> LatencyHistogram {
        assert_eq!(words.len(), LatencyHistogram::WORDS);
        let buckets = words[..BUCKETS].to_vec();
        LatencyHistogram { buckets, sum_ns: words[BUCKETS], max_ns: words[BUCKETS + 1] }
    }
}

/// The bucket of `ns`.
fn bucket(ns: u64) -> usize {
    match ns.checked_ilog2() {
        Some(power) if power >= SPLIT_BITS => {
            let shift = power - SPLIT_BITS;
            (((shift + 1) as usize) << SPLIT_BITS) + ((ns >> shift) as usize - (1 << SPLIT_BITS))
        }
        _ => ns as usize,
    }
}

/// The middle of bucket `at`.
fn middle_ns(at: usize) -> u64 {
    let split = 1 << SPLIT_BITS;
    if at < split {
        return at as u64;
    }
    let shift = (at >> SPLIT_BITS) - 1;
    let first = ((split + at % split) as u64) << shift;
    first + ((1 << shift) >> 1)
}

/// Latencies of one kind of access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Latency {
    /// Their number.
    pub count: u64,
    /// Sum in nanoseconds.
    pub sum_ns: u64,
    /// Median in nanoseconds. This and the following are off by at most 3 %.
    pub p50_ns: u64,
    /// 99th percentile in nanoseconds.
    pub p99_ns: u64,
    /// 99.9th percentile in nanoseconds.
    pub p999_ns: u64,
    /// Longest in nanoseconds.
    pub max_ns: u64,
}

impl Latency {
    /// The latencies in `histogram`; `None` if there are none.
    pub fn from_histogram(histogram: &LatencyHistogram) -> Option<Latency> {
        let count = histogram.count();
        (count > 0).then(|| Latency {
            count,
            sum_ns: histogram.sum_ns,
            p50_ns: histogram.quantile_ns(500),
            p99_ns: histogram.quantile_ns(990),
            p999_ns: histogram.quantile_ns(999),
            max_ns: histogram.max_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram_of(samples: impl IntoIterator<Item = u64>) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::default();
        samples.into_iter().for_each(|ns| histogram.add(ns));
        histogram
    }

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for ns in (0..4096).chain((12..64).map(|power| (1 << power) + (1 << (power - 2)))) {
            let at = bucket(ns);
            assert!(at >= last && at < BUCKETS, "{ns}");
            last = at;
            assert!(middle_ns(at).abs_diff(ns) * 32 <= ns, "{ns} {}", middle_ns(at));
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn percentiles_are_those_of_the_samples() {
        assert_eq!(Latency::from_histogram(&histogram_of([])), None);
        let latency = Latency::from_histogram(&histogram_of(1..=10_000)).unwrap();
        assert_eq!((latency.count, latency.max_ns, latency.sum_ns), (10_000, 10_000, 50_005_000));
        for (found, exact) in
            [(latency.p50_ns, 5000), (latency.p99_ns, 9900), (latency.p999_ns, 9990)]
        {
            assert!(found.abs_diff(exact) * 30 <= exact, "{found} {exact}");
        }
    }

    #[test]
    fn longest_are_kept_and_words_return() {
        let all = histogram_of((1..=90).map(|_| 50).chain([1000, 2000, 3000]));
        let faults = Latency::from_histogram(&all.longest(3)).unwrap();
        assert_eq!((faults.count, faults.max_ns), (3, 3000));
        assert!(faults.p50_ns.abs_diff(2000) < 70, "{faults:?}");
        assert_eq!(all.longest(93), all);
        assert_eq!(LatencyHistogram::from_words(&all.words()), all);
        let mut both = histogram_of([7]);
        both.merge(&histogram_of([9, 1 << 40]));
        assert_eq!(both, histogram_of([7, 9, 1 << 40]));
    }
}
