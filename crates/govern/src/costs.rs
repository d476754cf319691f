//! What a fault and a page cost on this machine.

use filemap_policy::Costs;

/// What reads cost on a usual solid-state disk, for pages of 4 KiB.
pub const USUAL: Costs = Costs { fault_ns: 80_000, page_ns: 3_000 };

/// Intervals that are looked at.
const INTERVALS: usize = 256;

/// Fewer say nothing.
const FEWEST: usize = 32;

/// Threads of which the last fault is known.
const THREADS: usize = 64;

/// The fault's cost as it is measured. The time from one major fault of a thread to its next is an
/// upper bound of it, and the shorter ones are close to it, unless the program does much in
/// between: so what reading a page takes bounds it too.
#[derive(Debug, Default)]
pub struct FaultCost {
    /// Threads and when their last fault ended, in no order.
    last: Vec<(u32, u64)>,
    /// What it took to read a page, at the least.
    sample_ns: Option<u64>,
    intervals_ns: Vec<u64>,
    next: usize,
}

impl FaultCost {
    /// Hears that it took so long to read a page.
    pub fn sample(&mut self, took_ns: u64) {
        self.sample_ns = Some(self.sample_ns.map_or(took_ns, |least| least.min(took_ns)));
    }

    /// Hears that the thread `tid` had a major fault at `at_ns`.
    pub fn major(&mut self, tid: u32, at_ns: u64) {
        if let Some((_, last)) = self.last.iter_mut().find(|(own, _)| *own == tid) {
            let interval = at_ns.saturating_sub(*last);
            *last = at_ns;
            if self.intervals_ns.len() < INTERVALS {
                self.intervals_ns.push(interval);
            } else {
                self.intervals_ns[self.next % INTERVALS] = interval;
                self.next = self.next.wrapping_add(1);
            }
            return;
        }
        if self.last.len() < THREADS {
            self.last.push((tid, at_ns));
        } else if let Some(oldest) = self.last.iter_mut().min_by_key(|(_, at)| *at) {
            *oldest = (tid, at_ns);
        }
    }

    /// The cost. It is from a half of what reading a page took to one and a half of that, or within
    /// a factor of 4 of what was `expected` where none was read.
    pub fn measured_ns(&self, expected_ns: u64) -> Option<u64> {
        if self.intervals_ns.len() < FEWEST {
            return self.sample_ns;
        }
        let mut sorted = self.intervals_ns.clone();
        sorted.sort_unstable();
        let interval_ns = sorted[sorted.len() / 8];
        Some(match self.sample_ns {
            Some(sample_ns) => interval_ns.clamp(sample_ns / 2, sample_ns.saturating_mul(3) / 2),
            None => interval_ns.clamp(expected_ns / 4, expected_ns.saturating_mul(4)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_intervals_tell_what_a_fault_costs() {
        let mut cost = FaultCost::default();
        assert_eq!(cost.measured_ns(80_000), None);
        for fault in 0..1000_u64 {
            // Another thread faults in between, and every second interval is long.
            cost.major(1, fault * 500_000 + fault % 2 * 440_000);
            cost.major(2, fault * 1_000_000_000);
        }
        assert_eq!(cost.measured_ns(80_000), Some(60_000));
        assert_eq!(cost.measured_ns(400_000), Some(100_000), "far from what is expected");
        cost.sample(300_000);
        cost.sample(30_000);
        assert_eq!(cost.measured_ns(80_000), Some(45_000), "it does much between two faults");
        for tid in 0..1000 {
            cost.major(tid, 1 << 50);
        }
        assert_eq!((cost.last.len(), cost.intervals_ns.len()), (THREADS, INTERVALS));
    }
}
