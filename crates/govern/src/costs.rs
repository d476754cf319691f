//! What a fault and a page cost on this machine.

use filemap_policy::Costs;

/// What reads cost on a usual solid-state disk, for pages of 4 KiB.
pub const DEFAULT_COSTS: Costs = Costs { fault_ns: 80_000, page_ns: 3_000 };

/// Intervals that are looked at.
const MAX_INTERVALS: usize = 256;

/// Fewer say nothing.
const MIN_INTERVALS: usize = 32;

/// Threads of which the last fault is known.
const MAX_THREADS: usize = 64;

/// What reads cost, as it is measured. The time from one major fault of a thread to its next is an
/// upper bound of what a fault costs, and the shorter ones are close to it, unless the program does
/// much in between: so what reading a page took bounds it too.
#[derive(Debug)]
pub struct CostEstimator {
    expected: Costs,
    fault_ns: u64,
    /// Threads and when their last fault ended, in no order.
    last: Vec<(u32, u64)>,
    /// The least of what it took to read a page.
    page_read_ns: Option<u64>,
    intervals_ns: Vec<u64>,
    next: usize,
}

impl CostEstimator {
    /// What is `expected`, until something is measured.
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

    /// What reads cost.
    pub fn costs(&self) -> Costs {
        Costs { fault_ns: self.fault_ns, ..self.expected }
    }

    /// What a page costs that the kernel reads around a fault: where a fault takes longer than was
    /// expected, so does that.
    pub fn window_page_ns(&self) -> u64 {
        let Costs { fault_ns, page_ns } = self.expected;
        page_ns.saturating_mul(self.fault_ns) / fault_ns.max(1)
    }

    /// Hears that it took so long to read a page.
    pub fn on_page_read(&mut self, took_ns: u64) {
        self.page_read_ns = Some(self.page_read_ns.map_or(took_ns, |least| least.min(took_ns)));
        self.update();
    }

    /// Hears that the thread `tid` had a major fault at `at_ns`.
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

    /// Takes the cost of a fault from what was heard. Until there were some faults, it is what
    /// reading a page took, and at most what was expected: that page may have come after much
    /// that the program had read. After that it is what faults took, from a half of the lesser of
    /// both up to one and a half of what reading a page took.
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
    fn short_intervals_tell_what_a_fault_costs() {
        let mut cost = CostEstimator::new(DEFAULT_COSTS);
        let measured = |cost: &mut CostEstimator| {
            cost.update();
            cost.costs().fault_ns
        };
        assert_eq!(measured(&mut cost), 80_000);
        for fault in 0..1000_u64 {
            // Another thread faults in between, and every second interval is long.
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
    fn a_page_that_took_long_to_read_does_not_make_faults_dear() {
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
