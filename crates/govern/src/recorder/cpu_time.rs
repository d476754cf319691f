//! User times of threads. They are sampled at intervals, and each interval is distributed evenly
//! over what the thread did in it.

use std::collections::HashMap;

use filemap_attach::process::{ThreadTimes, thread_times};
use filemap_recording::assembly::Observation;

/// The user time of each thread at the last sample.
pub struct CpuTimes {
    samples: HashMap<u32, u64>,
    /// When this process started, in clock ticks since boot. All user time of threads that started
    /// later, such as those of the program that it starts, belongs to the recording.
    began_ticks: u64,
}

impl CpuTimes {
    /// No samples yet.
    pub fn new() -> CpuTimes {
        let own = std::process::id();
        let began_ticks = thread_times(own, own).map_or(u64::MAX, |times| times.started_ticks);
        CpuTimes { samples: HashMap::new(), began_ticks }
    }

    /// Sets `user_ns` of the observations since the last call.
    pub fn distribute(&mut self, observations: &mut [Observation]) {
        let mut intervals: HashMap<u32, Interval> = HashMap::new();
        for observation in observations.iter() {
            let interval = intervals.entry(observation.thread);
            interval.or_insert_with(|| Interval::new(observation.process.0)).events += 1;
        }
        for (tid, interval) in &mut intervals {
            let times = thread_times(interval.pid, *tid);
            let before_ns = |times: ThreadTimes| {
                if times.started_ticks >= self.began_ticks { 0 } else { times.user_ns }
            };
            let last = self.samples.entry(*tid).or_insert_with(|| times.map_or(0, before_ns));
            interval.start_ns = *last;
            interval.length_ns = times.map_or(0, |now| now.user_ns.saturating_sub(*last));
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
        let mut times = CpuTimes::new();
        let mut all = [observation(), observation(), observation(), observation()];
        times.distribute(&mut all);
        // A thread of this process did not start before it.
        let sample = times.samples[&pid];
        let each: Vec<u64> = all.iter().map(|observation| observation.user_ns).collect();
        assert_eq!(each, [sample / 4, sample / 2, sample * 3 / 4, sample]);
    }

    #[test]
    fn time_before_the_recorder_is_not_in_a_recording() {
        let pid = std::process::id();
        let began_ticks = thread_times(pid, pid).unwrap().started_ticks + 1;
        let mut times = CpuTimes { samples: HashMap::new(), began_ticks };
        let mut all =
            [Observation { process: (pid, 0), thread: pid, user_ns: 0, action: Action::Exit }];
        let user_ns = || thread_times(pid, pid).unwrap().user_ns;
        let start_ns = user_ns();
        times.distribute(&mut all);
        assert!((start_ns..=user_ns()).contains(&all[0].user_ns), "nothing is attributed to it");
        assert_eq!(all[0].user_ns, times.samples[&pid]);
    }
}
