//! What threads did in the course of a run, by cause, in intervals.

use serde::{Deserialize, Serialize};

/// Most intervals of a course.
const INTERVALS: usize = 60;

/// The first intervals of a course are about as long, in nanoseconds: short enough for a run that
/// ends at once, and long enough that few spans lie in two of them.
const FINEST_NS: u64 = 100_000;

/// Where the time of the threads went in the course of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitCourse {
    /// Length of each interval in nanoseconds. The first begins with what is counted; the last ends
    /// with it, and may be shorter.
    pub interval_ns: u64,
    /// Each cause that took any time.
    pub causes: Vec<CauseCourse>,
}

/// The time that one cause took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseCourse {
    /// What the threads did or waited for.
    pub cause: String,
    /// What that took of all threads in each interval, in nanoseconds: divided by the length of the
    /// interval, the mean number of threads.
    pub spent_ns: Vec<u64>,
}

/// Collects a [`WaitCourse`] of so many causes, which are numbered. It takes the same memory
/// whatever the run: when its intervals are all used, each becomes twice as long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course<const CAUSES: usize> {
    from_ns: u64,
    to_ns: u64,
    interval_ns: u64,
    intervals: Vec<[u64; CAUSES]>,
    /// The interval of the last span, and where it begins and ends: most spans lie where the one
    /// before did.
    current: usize,
    current_from_ns: u64,
    current_to_ns: u64,
}

impl<const CAUSES: usize> Course<CAUSES> {
    /// A course of what happens from `from_ns` to `to_ns`. If something happens until then, it has
    /// 60 intervals.
    pub fn new(from_ns: u64, to_ns: u64) -> Self {
        let (mut interval_ns, most) = (to_ns.saturating_sub(from_ns), INTERVALS as u64);
        let mut parts = most;
        while interval_ns / parts >= 2 * FINEST_NS {
            parts *= 2;
        }
        interval_ns = interval_ns.div_ceil(parts).max(1);
        Course {
            from_ns,
            to_ns,
            interval_ns,
            intervals: vec![[0; CAUSES]; INTERVALS],
            current: 0,
            current_from_ns: from_ns,
            current_to_ns: from_ns,
        }
    }

    /// What of a span from `from_ns` to `to_ns` lies between the ends of the course: where that
    /// begins and ends. Nothing of it does where it does not end later than it begins.
    pub fn clip(&self, from_ns: u64, to_ns: u64) -> (u64, u64) {
        (from_ns.max(self.from_ns), to_ns.min(self.to_ns))
    }

    /// Adds a span from `from_ns` to `to_ns` of the cause numbered `cause`, as far as it lies
    /// between the ends of the course.
    pub fn add(&mut self, cause: usize, from_ns: u64, to_ns: u64) {
        if from_ns >= self.current_from_ns && to_ns <= self.current_to_ns {
            self.intervals[self.current][cause] += to_ns - from_ns;
        } else {
            let (from_ns, to_ns) = self.clip(from_ns, to_ns);
            self.spread(cause, from_ns, to_ns);
        }
    }

    /// [`Course::add`] of what may lie in several intervals, or behind the last one.
    fn spread(&mut self, cause: usize, mut from_ns: u64, to_ns: u64) {
        while from_ns < to_ns {
            let at = ((from_ns - self.from_ns) / self.interval_ns) as usize;
            if at >= INTERVALS {
                self.double();
                continue;
            }
            self.current = at;
            self.current_from_ns = self.from_ns + at as u64 * self.interval_ns;
            self.current_to_ns = (self.current_from_ns + self.interval_ns).min(self.to_ns);
            let until_ns = to_ns.min(self.current_to_ns);
            self.intervals[at][cause] += until_ns - from_ns;
            from_ns = until_ns;
        }
    }

    /// Makes each interval twice as long.
    fn double(&mut self) {
        for at in 0..INTERVALS {
            let pair = self.intervals.get(2 * at).zip(self.intervals.get(2 * at + 1));
            self.intervals[at] = match pair {
                Some((one, other)) => std::array::from_fn(|cause| one[cause] + other[cause]),
                None => [0; CAUSES],
            };
        }
        self.interval_ns *= 2;
    }

    /// What was added until `end_ns`, with the names of the causes; `None` where that is nothing.
    pub fn until(&self, end_ns: u64, names: [&str; CAUSES]) -> Option<WaitCourse> {
        let length_ns = end_ns.min(self.to_ns).saturating_sub(self.from_ns);
        let count = (length_ns.div_ceil(self.interval_ns) as usize).min(INTERVALS);
        let shown = &self.intervals[..count];
        let course = |(cause, name): (usize, &str)| CauseCourse {
            cause: name.to_string(),
            spent_ns: shown.iter().map(|interval| interval[cause]).collect(),
        };
        let causes = names.into_iter().enumerate().map(course);
        let causes: Vec<CauseCourse> =
            causes.filter(|course| course.spent_ns.iter().any(|&ns| ns > 0)).collect();
        (!causes.is_empty()).then_some(WaitCourse { interval_ns: self.interval_ns, causes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["work", "device"];

    fn spent(course: &WaitCourse, cause: &str) -> Vec<u64> {
        course.causes.iter().find(|of| of.cause == cause).unwrap().spent_ns.clone()
    }

    #[test]
    fn spans_are_spread_over_the_intervals_in_which_they_lie() {
        let mut course = Course::new(100, 100 + 60 * 10);
        course.add(0, 100, 105);
        course.add(0, 105, 109);
        course.add(1, 105, 131);
        course.add(0, 95, 102);
        course.add(0, 95, 99);
        course.add(0, 690, 900);
        course.add(0, 695, 705);
        let told = course.until(700, NAMES).unwrap();
        assert_eq!((told.interval_ns, told.causes.len()), (10, 2));
        let (work, device) = (spent(&told, "work"), spent(&told, "device"));
        assert_eq!((work.len(), work[0], work[1], work[59]), (60, 11, 0, 15));
        assert_eq!((&device[..4], device[4]), (&[5, 10, 10, 1][..], 0));
        let early = course.until(121, NAMES).unwrap();
        assert_eq!(spent(&early, "device"), [5, 10, 10]);
        assert_eq!(course.until(100, NAMES), None);
        assert_eq!(Course::<2>::new(0, 10).until(10, NAMES), None);
    }

    #[test]
    fn a_course_has_as_many_intervals_however_long_the_run_is() {
        for (length_ns, ends_ns) in [
            (60, 60),
            (10_000_000_000, 10_000_000_000),
            (3_600_000_000_000, 17),
            (3_600_000_000_000, 3_000_000),
            (3_600_000_000_000, 777_000_000_001),
        ] {
            let mut course = Course::new(0, length_ns);
            // One thread, in spans of all lengths.
            let (mut at_ns, mut step_ns) = (0, 1);
            while at_ns < ends_ns {
                let to_ns = (at_ns + step_ns).min(ends_ns);
                course.add((step_ns % 2) as usize, at_ns, to_ns);
                (at_ns, step_ns) = (to_ns, step_ns * 3 % 1_000_000_007);
            }
            let told = course.until(ends_ns, NAMES).unwrap();
            let all: Vec<u64> = (0..told.causes[0].spent_ns.len())
                .map(|at| told.causes.iter().map(|of| of.spent_ns[at]).sum())
                .collect();
            let (last, full) = all.split_last().unwrap();
            assert!(full.iter().all(|&ns| ns == told.interval_ns), "{length_ns}: {all:?}");
            assert_eq!(full.len() as u64 * told.interval_ns + last, ends_ns);
            assert!(all.len() <= 60);
            assert!(all.len() > 29 || ends_ns < 30 * 2 * FINEST_NS, "{}", all.len());
            assert!(length_ns != ends_ns || all.len() == 60, "{}", all.len());
        }
    }
}
