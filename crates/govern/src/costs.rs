//! Estimates the cost of a major fault and of an additional page on this machine.

use filemap_policy::Costs;

/// Costs on a typical solid-state disk, for 4 KiB pages.
pub const DEFAULT_COSTS: Costs = Costs { fault_ns: 80_000, page_ns: 3_000 };

/// Capacity of the ring buffer of fault intervals.
const MAX_INTERVALS: usize = 256;

/// With fewer intervals the quantile is too noisy to use.
const MIN_INTERVALS: usize = 32;

/// Maximum number of threads whose last fault is tracked; the least recent is replaced.
const MAX_THREADS: usize = 64;

/// Online estimate of read costs. The interval between consecutive major faults of one thread is an
/// upper bound on the cost of a fault; the short intervals come close to it unless the program
/// computes between faults. Measured read times of single pages therefore bound the estimate too.
#[derive(Debug)]
pub struct CostEstimator {
    expected: Costs,
    fault_ns: u64,
    /// Thread and time of its last major fault, unordered.
    last: Vec<(u32, u64)>,
    /// The shortest measured read of a single page.
    page_read_ns: Option<u64>,
    intervals_ns: Vec<u64>,
    next: usize,
}

impl CostEstimator {
    /// Starts from `expected`, which holds until there are measurements.
    pub fn new(expected: Costs) -> CostEstimator {
        CostEstimator {
            expected,
            fault_ns: expected.fault_ns,
            last: Vec::new(),
            page_read_ns: None,
            intervals_ns: Vec::new(),
            next: 0,
        }
    }

    /// The current estimate.
    pub fn costs(&self) -> Costs {
        Costs { fault_ns: self.fault_ns, ..self.expected }
    }

    /// Cost of one page of the kernel's read-around window: the expected page cost, scaled by how
    /// much slower or faster a fault is than expected.
    pub fn window_page_ns(&self) -> u64 {
        let Costs { fault_ns, page_ns } = self.expected;
        page_ns.saturating_mul(self.fault_ns) / fault_ns.max(1)
    }

    /// Adds a measured read of a single page.
    pub fn on_page_read(&mut self, took_ns: u64) {
        self.page_read_ns = Some(self.page_read_ns.map_or(took_ns, |least| least.min(took_ns)));
        self.update();
    }

    /// Adds a major fault of thread `tid` at `at_ns`.
    pub fn on_major_fault(&mut self, tid: u32, at_ns: u64) {
        if let Some((_, last)) = self.last.iter_mut().find(|(own, _)| *own == tid) {
            let interval = at_ns.saturating_sub(*last);
            *last = at_ns;
            if self.intervals_ns.len() < MAX_INTERVALS {
                self.intervals_ns.push(interval);
            } else {
                self.intervals_ns[self.next % MAX_INTERVALS] = interval;
                self.next = self.next.wrapping_add(1);
            }
            return;
        }
        if self.last.len() < MAX_THREADS {
            self.last.push((tid, at_ns));
        } else if let Some(oldest) = self.last.iter_mut().min_by_key(|(_, at)| *at) {
            *oldest = (tid, at_ns);
        }
    }

    /// Recomputes the cost of a fault.
    ///
    /// With fewer than `MIN_INTERVALS` intervals it is the measured page read, clamped to between a
    /// quarter of the expected cost and the expected cost: that read may have queued behind other
    /// I/O. With enough intervals it is their 12.5 % quantile, clamped to between half the smaller
    /// of page read and expected cost and 1.5 page reads; without a page read, to between a quarter
    /// of and four times the expected cost.
    pub fn update(&mut self) {
        let expected_ns = self.expected.fault_ns;
        let (least_ns, most_ns) = (expected_ns / 4, expected_ns.saturating_mul(4));
        if self.intervals_ns.len() < MIN_INTERVALS {
            let single_ns = self.page_read_ns.map(|took_ns| took_ns.clamp(least_ns, expected_ns));
            self.fault_ns = single_ns.unwrap_or(self.fault_ns);
            return;
        }
        let mut sorted = self.intervals_ns.clone();
        sorted.sort_unstable();
        let interval_ns = sorted[sorted.len() / 8];
        self.fault_ns = match self.page_read_ns {
            Some(single_ns) => {
                let most_ns = single_ns.saturating_mul(3) / 2;
                interval_ns.clamp((single_ns.min(expected_ns) / 2).min(most_ns), most_ns)
            }
            None => interval_ns.clamp(least_ns, most_ns),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_intervals_estimate_fault_cost() {
        let mut cost = CostEstimator::new(DEFAULT_COSTS);
        let measured = |cost: &mut CostEstimator| {
            cost.update();
            cost.costs().fault_ns
        };
        assert_eq!(measured(&mut cost), 80_000);
        for fault in 0..1000_u64 {
            // Intervals alternate between 60 us and 940 us; a second thread faults in between.
            cost.on_major_fault(1, fault * 500_000 + fault % 2 * 440_000);
            cost.on_major_fault(2, fault * 1_000_000_000);
        }
        assert_eq!(measured(&mut cost), 60_000);
        cost.on_page_read(300_000);
        cost.on_page_read(30_000);
        assert_eq!(measured(&mut cost), 45_000, "it does much between two faults");
        for tid in 0..1000 {
            cost.on_major_fault(tid, 1 << 50);
        }
        assert_eq!((cost.last.len(), cost.intervals_ns.len()), (MAX_THREADS, MAX_INTERVALS));
        let mut far = CostEstimator::new(Costs { fault_ns: 400_000, ..DEFAULT_COSTS });
        (0..1000_u64).for_each(|fault| far.on_major_fault(1, fault * 60_000));
        assert_eq!(measured(&mut far), 100_000, "far from what is expected");
        assert_eq!(far.window_page_ns(), 750);
    }

    #[test]
    fn slow_reads_do_not_raise_fault_cost() {
        let mut busy = CostEstimator::new(DEFAULT_COSTS);
        busy.on_page_read(12_000_000);
        assert_eq!(busy.costs().fault_ns, 80_000, "it came behind something");
        (0..100_u64).for_each(|fault| busy.on_major_fault(1, fault * 90_000));
        busy.update();
        assert_eq!(busy.costs().fault_ns, 90_000);
        let mut slow = CostEstimator::new(DEFAULT_COSTS);
        slow.on_page_read(8_000_000);
        (0..100_u64).for_each(|fault| slow.on_major_fault(1, fault * 9_000_000));
        slow.update();
        assert_eq!(slow.costs().fault_ns, 9_000_000, "each of them takes so long");
    }
}
