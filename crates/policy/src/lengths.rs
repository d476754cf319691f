//! What finished streams show: the lengths of runs, and how much was read past their ends.

/// Lengths below this have buckets of their own.
const EXACT_LENGTHS: u64 = 16;

/// Buckets per power of two above, as a shift.
const PARTS_SHIFT: u32 = 3;

/// Number of powers of two with such buckets: up to 2^20 pages, 4 GiB of 4 KiB pages.
const OCTAVES: u64 = 16;

/// The bucket of all longer runs.
const LAST_BUCKET: usize = 144;

/// The counts are halved after this many runs.
const HALVE_AFTER_RUNS: u16 = 256;

/// Minimum number of runs at least as long as a stream, to predict its length.
const MIN_EVIDENCE: u32 = 3;

/// A histogram of run lengths.
#[derive(Clone, Debug)]
pub struct RunLengths {
    /// Runs by bucket.
    counts: [u16; LAST_BUCKET + 1],
    /// Runs counted since the last halving.
    counted: u16,
}

impl RunLengths {
    pub const NEW: RunLengths = RunLengths { counts: [0; LAST_BUCKET + 1], counted: 0 };

    /// Counts a run of `pages` pages.
    pub fn count(&mut self, pages: u64) {
        if let Some(count) = self.counts.get_mut(bucket(pages)) {
            *count = count.saturating_add(1);
        }
        self.counted = self.counted.saturating_add(1);
        if self.counted >= HALVE_AFTER_RUNS {
            self.halve();
        }
    }

    /// Undoes the count of a run of `pages` pages, as it continues.
    pub fn discount(&mut self, pages: u64) {
        if let Some(count) = self.counts.get_mut(bucket(pages)) {
            *count = count.saturating_sub(1);
        }
    }

    /// Median length of the runs with at least `pages` pages, rounded up to its bucket; `u64::MAX`
    /// beyond all buckets. `None` if there are too few.
    pub fn median_length(&self, pages: u64) -> Option<u64> {
        let own = bucket(pages);
        let counts = self.counts.get(own..)?;
        let as_long: u32 = counts.iter().map(|&count| u32::from(count)).sum();
        if as_long < MIN_EVIDENCE {
            return None;
        }
        // Random accesses have mostly short runs, so counting starts there.
        let (mut reach, mut shorter) = (own, 0_u32);
        for (number, &count) in counts.iter().enumerate() {
            if shorter.saturating_mul(2) > as_long {
                break;
            }
            reach = own.saturating_add(number);
            shorter = shorter.saturating_add(u32::from(count));
        }
        Some(last_length(reach))
    }

    fn halve(&mut self) {
        for count in &mut self.counts {
            *count /= 2;
        }
        self.counted = 0;
    }
}

/// The bucket of a length.
fn bucket(pages: u64) -> usize {
    if pages < EXACT_LENGTHS {
        return pages as usize;
    }
    let octave = pages.ilog2().saturating_sub(EXACT_LENGTHS.ilog2());
    if u64::from(octave) >= OCTAVES {
        return LAST_BUCKET;
    }
    // The leading bit and the bits of the sub-bucket: 8 to 15.
    let leading = pages.checked_shr(octave.saturating_add(1)).unwrap_or(0) as usize;
    let before = (octave as usize).saturating_mul(1 << PARTS_SHIFT);
    before.saturating_add(leading).saturating_add(1 << PARTS_SHIFT).min(LAST_BUCKET)
}

/// The greatest length in a bucket.
fn last_length(bucket: usize) -> u64 {
    let bucket_number = bucket as u64;
    if bucket_number < EXACT_LENGTHS {
        return bucket_number;
    }
    if bucket >= LAST_BUCKET {
        return u64::MAX;
    }
    let after = bucket_number.saturating_sub(EXACT_LENGTHS);
    let octave = (after >> PARTS_SHIFT) as u32;
    let leading = (after & ((1 << PARTS_SHIFT) - 1)).saturating_add(1 << PARTS_SHIFT);
    let next = leading.saturating_add(1).checked_shl(octave.saturating_add(1));
    next.unwrap_or(u64::MAX).saturating_sub(1)
}

/// Windows up to this size are always allowed.
const FREE_PAGES: u64 = 64;

/// Larger windows are limited to this fraction of the stream so far, so that a run of unknown
/// length does not read a multiple of it.
const WINDOW_FRACTION: u64 = 4;

/// The limits while streams read too much.
const FREE_PAGES_IN_DEBT: u64 = 16;
const WINDOW_FRACTION_IN_DEBT: u64 = 16;

/// Streams read too much if the unused pages exceed this fraction of the used ones.
const DEBT_FRACTION: u64 = 8;

/// The counts are halved after this many pages.
const HALVE_AFTER_PAGES: u64 = 1 << 16;

/// Pages that streams used, and pages they only requested.
#[derive(Clone, Debug, Default)]
pub struct Overread {
    used: u64,
    unused: u64,
}

impl Overread {
    /// Counts a finished stream that used `known` pages and requested them up to `end`.
    pub const fn count(&mut self, known: u64, end: u64) {
        self.used = self.used.saturating_add(known);
        self.unused = self.unused.saturating_add(end.saturating_sub(known));
        if self.used.saturating_add(self.unused) > HALVE_AFTER_PAGES {
            self.used /= 2;
            self.unused /= 2;
        }
    }

    /// Undoes [`Overread::count`].
    pub const fn discount(&mut self, known: u64, end: u64) {
        self.used = self.used.saturating_sub(known);
        self.unused = self.unused.saturating_sub(end.saturating_sub(known));
    }

    /// Maximum window of a stream of `pages` pages so far; `is_short` if memory is short.
    pub fn max_window(&self, pages: u64, is_short: bool) -> u64 {
        if is_short || self.unused > self.used / DEBT_FRACTION {
            return (pages / WINDOW_FRACTION_IN_DEBT).max(FREE_PAGES_IN_DEBT);
        }
        (pages / WINDOW_FRACTION).max(FREE_PAGES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_exact_then_eighths_and_cover_everything() {
        for pages in 0..5000 {
            let (number, last) = (bucket(pages), last_length(bucket(pages)));
            assert!(last >= pages && (number == 0 || last_length(number - 1) < pages), "{pages}");
            let is_near = last <= pages + pages / 8;
            assert!(is_near && last != u64::MAX, "{pages}: to {last}");
        }
        assert_eq!((bucket(15), bucket(16), bucket(4095), bucket(4096)), (15, 16, 79, 80));
        assert_eq!(
            (bucket((1 << 20) - 1), bucket(1 << 20), bucket(u64::MAX)),
            (143, 144, LAST_BUCKET)
        );
        assert_eq!(last_length(LAST_BUCKET), u64::MAX);
    }

    #[test]
    fn half_of_all_runs_that_came_as_far_decide() {
        let mut lengths = RunLengths::NEW;
        for pages in [1, 1, 1, 1, 8, 8] {
            lengths.count(pages);
        }
        // Two of six go on; too few are known to be longer.
        assert_eq!((lengths.median_length(1), lengths.median_length(2)), (Some(1), None));
        lengths.count(8);
        lengths.count(8);
        assert_eq!((lengths.median_length(1), lengths.median_length(2)), (Some(8), Some(8)));
        assert_eq!(lengths.median_length(9), None);
    }

    #[test]
    fn what_is_old_counts_half() {
        let mut lengths = RunLengths::NEW;
        for _ in 0..255 {
            lengths.count(5);
        }
        assert_eq!(lengths.counts[5], 255);
        lengths.count(5);
        assert_eq!(lengths.counts[5], 128);
    }
}
