//! User times of threads. They are sampled at intervals, and each interval is distributed evenly
//! over what the thread did in it.

use std::collections::HashMap;

use filemap_attach::process::thread_user_ns;
use filemap_recording::assembly::Observation;

/// The user time of each thread at the last sample.
#[derive(Default)]
pub struct CpuTimes(HashMap<u32, u64>);

impl CpuTimes {
    /// Sets `user_ns` of the observations since the last call.
    pub fn distribute(&mut self, observations: &mut [Observation]) {
        let mut intervals: HashMap<u32, Interval> = HashMap::new();
        for observation in observations.iter() {
            let interval = intervals.entry(observation.thread);
            interval.or_insert_with(|| Interval::new(observation.process.0)).events += 1;
        }
        for (tid, interval) in &mut intervals {
            let sample = thread_user_ns(interval.pid, *tid);
            let last = self.0.entry(*tid).or_insert_with(|| sample.unwrap_or(0));
            interval.start_ns = *last;
            interval.length_ns = sample.map_or(0, |now| now.saturating_sub(*last));
            *last += interval.length_ns;
        }
        for observation in observations {
            let interval = intervals.get_mut(&observation.thread).expect("it was counted");
            interval.done += 1;
            let part = u128::from(interval.length_ns) * u128::from(interval.done);
            observation.user_ns = interval.start_ns + (part / u128::from(interval.events)) as u64;
        }
    }
}

/// The user time of a thread between two samples, and the events in it.
struct Interval {
    pid: u32,
    events: u64,
    done: u64,
    start_ns: u64,
    length_ns: u64,
}

impl Interval {
    fn new(pid: u32) -> Interval {
        Interval { pid, events: 0, done: 0, start_ns: 0, length_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use filemap_recording::assembly::Action;

    use super::*;

    #[test]
    fn distributes_time_evenly() {
        let pid = std::process::id();
        let observation =
            || Observation { process: (pid, 0), thread: pid, user_ns: 0, action: Action::Exit };
        let mut times = CpuTimes(HashMap::from([(pid, 0)]));
        let mut all = [observation(), observation(), observation(), observation()];
        times.distribute(&mut all);
        let sample = times.0[&pid];
        let each: Vec<u64> = all.iter().map(|observation| observation.user_ns).collect();
        assert_eq!(each, [sample / 4, sample / 2, sample * 3 / 4, sample]);
    }
}
