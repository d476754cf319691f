//! The user time of threads, looked at now and then, and shared out among what they did meanwhile.

use std::collections::HashMap;
use std::fs;

use filemap_recording::assembly::Told;

/// The user times of threads.
#[derive(Default)]
pub struct UserTimes {
    ticks_ns: u64,
    /// As it was found last.
    of: HashMap<u32, u64>,
}

impl UserTimes {
    pub fn new() -> UserTimes {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        UserTimes { ticks_ns: 1_000_000_000 / ticks, of: HashMap::new() }
    }

    /// Puts into `all`, which is what was done since this was asked last, how much of its own time
    /// each thread had taken by then.
    pub fn share_out(&mut self, all: &mut [Told]) {
        let mut shares: HashMap<u32, Share> = HashMap::new();
        for told in all.iter() {
            shares.entry(told.thread).or_insert_with(|| Share::of(told.process.0)).events += 1;
        }
        for (tid, share) in &mut shares {
            let found = self.user_ns(share.pid, *tid);
            let before = self.of.entry(*tid).or_insert_with(|| found.unwrap_or(0));
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

    /// The user time of a thread until now; `None` where it is gone.
    fn user_ns(&self, pid: u32, tid: u32) -> Option<u64> {
        let stat = fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
        Some(user_ticks(&stat)? * self.ticks_ns)
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

/// The user time in what `/proc` says of a thread. Its name, in parentheses, may have any bytes.
fn user_ticks(stat: &[u8]) -> Option<u64> {
    const BEHIND_NAME: usize = 11;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(end + 2..)?).ok()?;
    fields.split_ascii_whitespace().nth(BEHIND_NAME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use filemap_recording::assembly::Did;

    use super::*;

    #[test]
    fn user_time_is_the_fourteenth_field() {
        let stat = b"77 (a b) 9 ) S 1 77 77 0 -1 4194560 1 2 3 4 55 66 7 8 20 0 1 0 9 9 9";
        assert_eq!(user_ticks(stat), Some(55));
        assert_eq!(user_ticks(b"77 (a"), None);
    }

    #[test]
    fn time_is_shared_out_evenly() {
        let pid = std::process::id();
        let told = || Told { process: (pid, 0), thread: pid, user_ns: 0, did: Did::End };
        let mut times = UserTimes { ticks_ns: 1000, of: HashMap::from([(pid, 0)]) };
        let mut all = [told(), told(), told(), told()];
        times.share_out(&mut all);
        let found = times.of[&pid];
        let each: Vec<u64> = all.iter().map(|told| told.user_ns).collect();
        assert_eq!(each, [found / 4, found / 2, found * 3 / 4, found]);
    }
}
