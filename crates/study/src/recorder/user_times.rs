//! The user time of threads, looked at now and then, and shared out among what they did meanwhile.

use std::collections::HashMap;

use filemap_attach::process::user_ns;
use filemap_recording::assembly::Told;

/// The user times of threads, as they were found last.
#[derive(Default)]
pub struct UserTimes(HashMap<u32, u64>);

impl UserTimes {
    /// Puts into `all`, which is what was done since this was asked last, how much of its own time
    /// each thread had taken by then.
    pub fn share_out(&mut self, all: &mut [Told]) {
        let mut shares: HashMap<u32, Share> = HashMap::new();
        for told in all.iter() {
            shares.entry(told.thread).or_insert_with(|| Share::of(told.process.0)).events += 1;
        }
        for (tid, share) in &mut shares {
            let found = user_ns(share.pid, *tid);
            let before = self.0.entry(*tid).or_insert_with(|| found.unwrap_or(0));
            share.from_ns = *before;
            share.added_ns = found.map_or(0, |now| now.saturating_sub(*before));
            *before += share.added_ns;
        }
        for told in all {
            let share = shares.get_mut(&told.thread).expect("it was counted");
            share.told += 1;
            let part = u128::from(share.added_ns) * u128::from(share.told);
            told.user_ns = share.from_ns + (part / u128::from(share.events)) as u64;
        }
    }
}

/// What a thread gets of its time.
struct Share {
    pid: u32,
    events: u64,
    told: u64,
    from_ns: u64,
    added_ns: u64,
}

impl Share {
    fn of(pid: u32) -> Share {
        Share { pid, events: 0, told: 0, from_ns: 0, added_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use filemap_recording::assembly::Did;

    use super::*;

    #[test]
    fn time_is_shared_out_evenly() {
        let pid = std::process::id();
        let told = || Told { process: (pid, 0), thread: pid, user_ns: 0, did: Did::End };
        let mut times = UserTimes(HashMap::from([(pid, 0)]));
        let mut all = [told(), told(), told(), told()];
        times.share_out(&mut all);
        let found = times.0[&pid];
        let each: Vec<u64> = all.iter().map(|told| told.user_ns).collect();
        assert_eq!(each, [found / 4, found / 2, found * 3 / 4, found]);
    }
}
