//! How long runs of adjacent pages are, as far as they were seen.

/// Lengths below this have a bucket each.
const EXACT: u64 = 16;

/// Buckets of each power of two above.
const PARTS_SHIFT: u32 = 3;

/// Powers of two that have such parts: up to 2^20 pages, 4 GiB of pages of 4 KiB.
const OCTAVES: u64 = 16;

/// The bucket of all that is longer.
const LONGEST: usize = 144;

/// Runs after which what was counted before is worth half.
const HALVED_AFTER: u16 = 256;

/// Runs that have to have come as far as a stream, for them to say anything about it.
const EVIDENCE: u32 = 3;

/// What was learned of runs.
#[derive(Clone, Debug)]
pub struct Lengths {
    /// Runs by bucket.
    counts: [u16; LONGEST + 1],
    /// Runs counted since the counts were halved.
    counted: u16,
}

impl Lengths {
    pub const NEW: Lengths = Lengths { counts: [0; LONGEST + 1], counted: 0 };

    /// Counts a run of `pages` pages.
    pub fn count(&mut self, pages: u64) {
        if let Some(count) = self.counts.get_mut(bucket(pages)) {
            *count = count.saturating_add(1);
        }
        self.counted = self.counted.saturating_add(1);
        if self.counted >= HALVED_AFTER {
            self.halve();
        }
    }

    /// Takes back a run of `pages` pages: it goes on.
    pub fn discount(&mut self, pages: u64) {
        if let Some(count) = self.counts.get_mut(bucket(pages)) {
            *count = count.saturating_sub(1);
        }
    }

    /// The length that a run of at least `pages` pages reaches in half of all cases, rounded up to
    /// its bucket; `u64::MAX` where it is beyond all buckets. `None` where too few were as long.
    pub fn reach(&self, pages: u64) -> Option<u64> {
        let own = bucket(pages);
        let counts = self.counts.get(own..)?;
        let as_long: u32 = counts.iter().map(|&count| u32::from(count)).sum();
        if as_long < EVIDENCE {
            return None;
        }
        // From the short ones on, of which random accesses have most.
        let (mut reach, mut shorter) = (own, 0_u32);
        for (number, &count) in counts.iter().enumerate() {
            if shorter.saturating_mul(2) > as_long {
                break;
            }
            reach = own.saturating_add(number);
            shorter = shorter.saturating_add(u32::from(count));
        }
        Some(last_of(reach))
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
    if pages < EXACT {
        return pages as usize;
    }
    let octave = pages.ilog2().saturating_sub(EXACT.ilog2());
    if u64::from(octave) >= OCTAVES {
        return LONGEST;
    }
    // The leading bit and those of the part: 8 to 15.
    let leading = pages.checked_shr(octave.saturating_add(1)).unwrap_or(0) as usize;
    let before = (octave as usize).saturating_mul(1 << PARTS_SHIFT);
    before.saturating_add(leading).saturating_add(1 << PARTS_SHIFT).min(LONGEST)
}

/// The greatest length of a bucket.
fn last_of(bucket: usize) -> u64 {
    let bucket_number = bucket as u64;
    if bucket_number < EXACT {
        return bucket_number;
    }
    if bucket >= LONGEST {
        return u64::MAX;
    }
    let behind = bucket_number.saturating_sub(EXACT);
    let octave = (behind >> PARTS_SHIFT) as u32;
    let leading = (behind & ((1 << PARTS_SHIFT) - 1)).saturating_add(1 << PARTS_SHIFT);
    let next = leading.saturating_add(1).checked_shl(octave.saturating_add(1));
    next.unwrap_or(u64::MAX).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_exact_then_eighths_and_cover_everything() {
        for pages in 0..5000 {
            let (number, last) = (bucket(pages), last_of(bucket(pages)));
            assert!(last >= pages && (number == 0 || last_of(number - 1) < pages), "{pages}");
            let is_near = last <= pages + pages / 8;
            assert!(is_near && last != u64::MAX, "{pages}: to {last}");
        }
        assert_eq!((bucket(15), bucket(16), bucket(4095), bucket(4096)), (15, 16, 79, 80));
        assert_eq!((bucket((1 << 20) - 1), bucket(1 << 20), bucket(u64::MAX)), (143, 144, LONGEST));
        assert_eq!(last_of(LONGEST), u64::MAX);
    }

    #[test]
    fn half_of_all_runs_that_came_as_far_decide() {
        let mut lengths = Lengths::NEW;
        for pages in [1, 1, 1, 1, 8, 8] {
            lengths.count(pages);
        }
        // Two of six go on; of those that did, too few are known.
        assert_eq!((lengths.reach(1), lengths.reach(2)), (Some(1), None));
        lengths.count(8);
        lengths.count(8);
        assert_eq!((lengths.reach(1), lengths.reach(2)), (Some(8), Some(8)));
        assert_eq!(lengths.reach(9), None);
    }

    #[test]
    fn what_is_old_counts_half() {
        let mut lengths = Lengths::NEW;
        for _ in 0..255 {
            lengths.count(5);
        }
        assert_eq!(lengths.counts[5], 255);
        lengths.count(5);
        assert_eq!(lengths.counts[5], 128);
    }
}
