//! How long threads thought between two things that they did.
//!
//! The processor time between two touches is what the program computed, and what the kernel took
//! for the fault and its report. The latter is much the same each time, and the shortest times
//! between touches are hardly more. So the twentieth part that is shortest says what it is.

/// Which part of the times is taken to have no thinking in it: one in so many.
const SHORTEST_PART: u64 = 20;

/// Steps of the table of times for each doubling.
const STEPS: u32 = 8;

const ENTRIES: usize = 64 * STEPS as usize;

/// Times between touches so far.
pub struct Waits {
    /// How many were as long, in steps of an eighth of a doubling.
    times: Box<[u64; ENTRIES]>,
    count: u64,
    /// The cost of a touch, in nanoseconds.
    cost_ns: u64,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits { times: Box::new([0; ENTRIES]), count: 0, cost_ns: 0 }
    }
}

/// The step of a time.
fn step(ns: u64) -> usize {
    let doublings = (ns | 1).ilog2();
    let rest = (ns | 1) - (1 << doublings);
    let within = if doublings >= 3 { rest >> (doublings - 3) } else { 0 };
    ((doublings * STEPS) as usize + within as usize).min(ENTRIES - 1)
}

/// The shortest time of a step.
fn shortest(step: usize) -> u64 {
    let (doublings, within) = (step as u32 / STEPS, step as u64 % u64::from(STEPS));
    let whole = 1_u64 << doublings;
    if doublings >= 3 { whole + (within << (doublings - 3)) } else { whole }
}

impl Waits {
    /// How much of the processor time `spent_ns` before an entry the program thought, where the
    /// entry is a touch or not.
    pub fn of(&mut self, spent_ns: u64, is_touch: bool) -> u64 {
        if !is_touch {
            return spent_ns;
        }
        self.times[step(spent_ns)] += 1;
        self.count += 1;
        // Seldom, and often in the beginning.
        if self.count.is_power_of_two() || self.count.is_multiple_of(4096) {
            self.cost_ns = self.cost();
        }
        spent_ns.saturating_sub(self.cost_ns)
    }

    fn cost(&self) -> u64 {
        let mut left = self.count / SHORTEST_PART;
        let found = self.times.iter().position(|&count| {
            let is_here = count > left;
            left = left.saturating_sub(count);
            is_here
        });
        found.map_or(0, shortest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_touches_cost_is_no_wait() {
        let mut waits = Waits::default();
        let mut last = 0;
        for number in 0..100_000_u64 {
            // Three quarters think for 10 us.
            let thinks = if number.is_multiple_of(4) { 0 } else { 10_000 };
            last = waits.of(40_000 + number % 7 * 100 + thinks, true).abs_diff(thinks);
        }
        assert!(last < 5_000, "{last}");
        assert_eq!(waits.of(123, false), 123);
    }

    #[test]
    fn steps_are_in_order_and_an_eighth_apart() {
        for ns in 1..100_000 {
            let step = step(ns);
            assert!(shortest(step) <= ns, "{ns}");
            assert!(ns < 8 || ns <= shortest(step) + shortest(step) / 8, "{ns}");
        }
    }
}
