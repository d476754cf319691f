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

/// What reads cost, as it is measured. The time from one major fault of a thread to its next is an
/// upper bound of what a fault costs, and the shorter ones are close to it, unless the program does
/// much in between: so what reading a page took bounds it too.
#[derive(Debug)]
pub struct Cost {
    expected: Costs,
    fault_ns: u64,
    /// Threads and when their last fault ended, in no order.
    last: Vec<(u32, u64)>,
    /// The least of what it took to read a page.
    single_ns: Option<u64>,
    intervals_ns: Vec<u64>,
    next: usize,
}

impl Cost {
    /// What is `expected`, until something is measured.
    pub fn new(expected: Costs) -> Cost {
        Cost {
            expected,
            fault_ns: expected.fault_ns,
            last: Vec::new(),
            single_ns: None,
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
    pub fn sample(&mut self, took_ns: u64) {
        self.single_ns = Some(self.single_ns.map_or(took_ns, |least| least.min(took_ns)));
        self.measure();
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

    /// Takes the cost of a fault from what was heard. Until there were some faults, it is what
    /// reading a page took, and at most what was expected: that page may have come after much
    /// that the program had read. After that it is what faults took, from a half of the lesser of
    /// both up to one and a half of what reading a page took.
    pub fn measure(&mut self) {
        let expected_ns = self.expected.fault_ns;
        let (least_ns, most_ns) = (expected_ns / 4, expected_ns.saturating_mul(4));
        if self.intervals_ns.len() < FEWEST {
            let single_ns = self.single_ns.map(|took_ns| took_ns.clamp(least_ns, expected_ns));
            self.fault_ns = single_ns.unwrap_or(self.fault_ns);
            return;
        }
        let mut sorted = self.intervals_ns.clone();
        sorted.sort_unstable();
        let interval_ns = sorted[sorted.len() / 8];
        self.fault_ns = match self.single_ns {
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
        let mut cost = Cost::new(USUAL);
        let measured = |cost: &mut Cost| {
            cost.measure();
            cost.costs().fault_ns
        };
        assert_eq!(measured(&mut cost), 80_000);
        for fault in 0..1000_u64 {
            // Another thread faults in between, and every second interval is long.
            cost.major(1, fault * 500_000 + fault % 2 * 440_000);
            cost.major(2, fault * 1_000_000_000);
        }
        assert_eq!(measured(&mut cost), 60_000);
        cost.sample(300_000);
        cost.sample(30_000);
        assert_eq!(measured(&mut cost), 45_000, "it does much between two faults");
        for tid in 0..1000 {
            cost.major(tid, 1 << 50);
        }
        assert_eq!((cost.last.len(), cost.intervals_ns.len()), (THREADS, INTERVALS));
        let mut far = Cost::new(Costs { fault_ns: 400_000, ..USUAL });
        (0..1000_u64).for_each(|fault| far.major(1, fault * 60_000));
        assert_eq!(measured(&mut far), 100_000, "far from what is expected");
        assert_eq!(far.window_page_ns(), 750);
    }

    #[test]
    fn a_page_that_took_long_to_read_does_not_make_faults_dear() {
        let mut busy = Cost::new(USUAL);
        busy.sample(12_000_000);
        assert_eq!(busy.costs().fault_ns, 80_000, "it came behind something");
        (0..100_u64).for_each(|fault| busy.major(1, fault * 90_000));
        busy.measure();
        assert_eq!(busy.costs().fault_ns, 90_000);
        let mut slow = Cost::new(USUAL);
        slow.sample(8_000_000);
        (0..100_u64).for_each(|fault| slow.major(1, fault * 9_000_000));
        slow.measure();
        assert_eq!(slow.costs().fault_ns, 9_000_000, "each of them takes so long");
    }
}
