//! The queue of a CPU, as the kernel's fair scheduler keeps it: EEVDF, with all threads of one
//! weight.
//!
//! Each thread has run for some time, and has a deadline one slice after the time at which it
//! asked for it. A thread is eligible while it has not run longer than the mean of its queue. Of
//! the eligible ones that with the earliest deadline runs. It is not interrupted before its
//! deadline while it is eligible.

use std::collections::BTreeSet;

/// The slice that a thread asks for on one CPU.
const BASE_SLICE_NS: i64 = 700_000;

/// With more CPUs than these it does not grow any more.
const MOST_CPUS: usize = 8;

/// The slice that a thread asks for on one of so many CPUs.
///
/// Mirrors `get_update_sysctl_factor`, 6.18. Test: `tests/threads.rs`.
fn slice_ns(cpus: usize) -> i64 {
    BASE_SLICE_NS * (1 + i64::from(cpus.clamp(1, MOST_CPUS).ilog2()))
}

/// Period of the timer tick with HZ=250.
pub const TICK_NS: u64 = 4_000_000;

/// The most that a thread keeps of what it did not get, or got too much.
const MOST_LAG_NS: i64 = TICK_NS as i64;

/// A thread, as the queue of its CPU sees it. All times are those of its queue, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entity {
    ran_ns: i64,
    deadline_ns: i64,
    /// Which came first, of two with the same deadline.
    came: u64,
    /// How far it was behind the mean when it went to sleep.
    lag_ns: i64,
    /// It sleeps, but had run longer than the mean: it stays in the queue until it is chosen.
    is_delayed: bool,
}

/// A CPU's run queue (`cfs_rq`).
#[derive(Debug, Default)]
pub struct Queue {
    slice_ns: i64,
    current: Option<usize>,
    /// Since when the current thread's time is not counted yet.
    since_ns: u64,
    /// Until when the current thread is not interrupted while it is eligible.
    protected_ns: i64,
    /// The others, by deadline.
    waiting: BTreeSet<(i64, u64, usize)>,
    waiting_ran_ns: i64,
    /// The mean when the queue was last looked at, from which an empty one goes on.
    mean_ns: i64,
    came: u64,
}

impl Queue {
    /// Nobody waits for one of so many CPUs.
    pub fn new(cpus: usize) -> Queue {
        Queue { slice_ns: slice_ns(cpus), ..Queue::default() }
    }

    /// Whether the CPU has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Whether `thread` has the CPU.
    pub fn has_cpu(&self, thread: usize) -> bool {
        self.current == Some(thread)
    }

    /// How many threads are in the queue beside the current one. Those that sleep may be among
    /// them.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many threads wait for the CPU.
    pub fn awake(&self, entities: &[Entity]) -> usize {
        let awake = |(_, _, thread): &&(i64, u64, usize)| !entities[*thread].is_delayed;
        self.waiting.iter().filter(awake).count()
    }

    /// Whether a thread sleeps that is still in its queue, where it is woken.
    pub fn is_delayed(thread: usize, entities: &[Entity]) -> bool {
        entities[thread].is_delayed
    }

    /// `thread` can run from `now_ns` on. Whether the current one has to let the scheduler choose.
    /// A thread that `preempts` nobody waits until the scheduler chooses anyway.
    pub fn wake(
        &mut self,
        thread: usize,
        preempts: bool,
        now_ns: u64,
        entities: &mut [Entity],
    ) -> bool {
        let is_over = self.tick(now_ns, entities);
        if !entities[thread].is_delayed {
            let lag_ns = entities[thread].lag_ns;
            self.place(thread, lag_ns, entities);
        } else {
            entities[thread].is_delayed = false;
            if entities[thread].ran_ns < self.mean_ns {
                self.remove(thread, entities);
                self.place(thread, 0, entities);
            }
        }
        is_over || preempts && self.choose(entities) == Some(thread)
    }

    /// The scheduler looks at the current thread at `now_ns`, as it does when the timer ticks.
    /// Whether that thread has to let it choose.
    pub fn tick(&mut self, now_ns: u64, entities: &mut [Entity]) -> bool {
        self.advance(now_ns, entities);
        let is_over = self.is_over(entities);
        if let Some(current) = self.current {
            let entity = &mut entities[current];
            if entity.ran_ns >= entity.deadline_ns {
                entity.deadline_ns = entity.ran_ns + self.slice_ns;
            }
        }
        is_over
    }

    /// The current thread goes to sleep at `now_ns`.
    pub fn sleep(&mut self, now_ns: u64, entities: &mut [Entity]) {
        self.advance(now_ns, entities);
        let Some(current) = self.current.take() else { return };
        let entity = &mut entities[current];
        let lag_ns = (self.mean_ns - entity.ran_ns).clamp(-MOST_LAG_NS, MOST_LAG_NS);
        entity.lag_ns = lag_ns;
        entity.is_delayed = lag_ns < 0 && !self.waiting.is_empty();
        if entity.is_delayed {
            self.insert(current, entities);
        }
    }

    /// The current thread has ended, at `now_ns`.
    pub fn end(&mut self, now_ns: u64, entities: &mut [Entity]) {
        self.advance(now_ns, entities);
        self.current = None;
    }

    /// Gives the CPU at `now_ns` to the thread whose turn it is, if there is one. Whoever has it
    /// now waits for it after that, or keeps it.
    pub fn schedule(&mut self, now_ns: u64, entities: &mut [Entity]) -> Option<usize> {
        self.advance(now_ns, entities);
        loop {
            let thread = self.choose(entities)?;
            if self.current == Some(thread) {
                return Some(thread);
            }
            self.remove(thread, entities);
            if entities[thread].is_delayed {
                entities[thread].is_delayed = false;
                entities[thread].lag_ns = 0;
                self.advance(now_ns, entities);
                continue;
            }
            if let Some(current) = self.current {
                self.insert(current, entities);
            }
            self.current = Some(thread);
            self.since_ns = now_ns;
            self.protected_ns = entities[thread].deadline_ns;
            self.find_mean(entities);
            return Some(thread);
        }
    }

    /// Takes a thread that waits, for a CPU that has less to do.
    pub fn give_away(&mut self, now_ns: u64, entities: &mut [Entity]) -> Option<usize> {
        self.advance(now_ns, entities);
        let awake = |(_, _, thread): &&(i64, u64, usize)| !entities[*thread].is_delayed;
        let thread = self.waiting.iter().find(awake)?.2;
        // In its new queue it is neither ahead nor behind.
        self.remove(thread, entities);
        Some(thread)
    }

    /// Counts the time of the current thread, and finds the mean.
    fn advance(&mut self, now_ns: u64, entities: &mut [Entity]) {
        if let Some(current) = self.current {
            let passed_ns = now_ns.saturating_sub(self.since_ns);
            self.since_ns += passed_ns;
            entities[current].ran_ns += passed_ns as i64;
        }
        self.find_mean(entities);
    }

    fn find_mean(&mut self, entities: &[Entity]) {
        let current_ns = self.current.map_or(0, |current| entities[current].ran_ns);
        if let Some(members) = self.members() {
            self.mean_ns = (self.waiting_ran_ns + current_ns).div_euclid(members);
        }
    }

    fn members(&self) -> Option<i64> {
        let members = self.waiting.len() + usize::from(self.current.is_some());
        (members > 0).then_some(members as i64)
    }

    /// Whether the current thread has had what it may have while others wait.
    fn is_over(&self, entities: &[Entity]) -> bool {
        let ran_ns = |current: usize| entities[current].ran_ns;
        let is_over = |current| {
            ran_ns(current) >= entities[current].deadline_ns || ran_ns(current) >= self.protected_ns
        };
        !self.waiting.is_empty() && self.current.is_some_and(is_over)
    }

    /// The thread whose turn it is: the current one keeps its turn while it is protected.
    fn choose(&self, entities: &[Entity]) -> Option<usize> {
        let is_eligible = |&thread: &usize| entities[thread].ran_ns <= self.mean_ns;
        let current = self.current.filter(is_eligible);
        if let Some(current) = current
            && entities[current].ran_ns < self.protected_ns
        {
            return Some(current);
        }
        let mut others = self.waiting.iter().map(|(_, _, thread)| *thread);
        let other = others.find(is_eligible);
        let deadline_ns = |thread: usize| entities[thread].deadline_ns;
        match (current, other) {
            (Some(current), Some(other)) if deadline_ns(other) <= deadline_ns(current) => {
                Some(other)
            }
            (Some(current), _) => Some(current),
            (None, other) => other.or(self.current),
        }
    }

    fn place(&mut self, thread: usize, lag_ns: i64, entities: &mut [Entity]) {
        // What is added moves the mean: its lag is to hold after that.
        let lag_ns = self.members().map_or(0, |members| lag_ns * (members + 1) / members);
        self.came += 1;
        let ran_ns = self.mean_ns - lag_ns;
        let deadline_ns = ran_ns + self.slice_ns;
        entities[thread] =
            Entity { ran_ns, deadline_ns, came: self.came, lag_ns: 0, is_delayed: false };
        self.insert(thread, entities);
    }

    fn insert(&mut self, thread: usize, entities: &[Entity]) {
        let entity = &entities[thread];
        self.waiting.insert((entity.deadline_ns, entity.came, thread));
        self.waiting_ran_ns += entity.ran_ns;
        self.find_mean(entities);
    }

    fn remove(&mut self, thread: usize, entities: &[Entity]) {
        let entity = &entities[thread];
        self.waiting.remove(&(entity.deadline_ns, entity.came, thread));
        self.waiting_ran_ns -= entity.ran_ns;
        self.find_mean(entities);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A queue with a thread for each of `ran_ms`, of which the first has the CPU.
    fn queue(ran_ms: &[i64]) -> (Queue, Vec<Entity>) {
        let mut entities = vec![Entity::default(); ran_ms.len()];
        let mut queue = Queue::new(2);
        for (thread, ran_ms) in ran_ms.iter().enumerate() {
            queue.wake(thread, false, 0, &mut entities);
            if thread == 0 {
                assert_eq!(queue.schedule(0, &mut entities), Some(0));
            } else {
                queue.remove(thread, &entities);
                entities[thread].ran_ns = ran_ms * MS as i64;
                entities[thread].deadline_ns = entities[thread].ran_ns + queue.slice_ns;
                queue.insert(thread, &entities);
            }
        }
        (queue, entities)
    }

    #[test]
    fn a_slice_that_is_over_ends_with_the_next_tick() {
        let (mut queue, mut entities) = queue(&[0, 0]);
        assert!(!queue.tick(MS, &mut entities), "its deadline is 0.4 ms away");
        assert!(queue.tick(2 * MS, &mut entities));
        assert_eq!(queue.schedule(2 * MS, &mut entities), Some(1));
        assert!(queue.tick(4 * MS, &mut entities), "both had 2 ms");
        assert_eq!(queue.schedule(4 * MS, &mut entities), Some(0));
    }

    #[test]
    fn who_is_alone_keeps_the_cpu() {
        let (mut queue, mut entities) = queue(&[0]);
        assert!(!queue.tick(40 * MS, &mut entities));
        assert_eq!(queue.schedule(40 * MS, &mut entities), Some(0));
    }

    #[test]
    fn who_slept_with_something_due_to_it_takes_the_cpu_when_it_wakes() {
        for (lag_ns, preempts) in [(500_000, true), (0, false)] {
            let (mut queue, mut entities) = queue(&[0, 0]);
            queue.remove(1, &entities);
            entities[1].lag_ns = lag_ns;
            assert_eq!(queue.wake(1, true, MS, &mut entities), preempts, "{lag_ns}");
            assert_eq!(queue.schedule(MS, &mut entities), Some(usize::from(preempts)));
        }
    }

    #[test]
    fn who_is_modest_does_not_take_the_cpu_when_it_wakes() {
        let (mut queue, mut entities) = queue(&[0, 0]);
        queue.remove(1, &entities);
        entities[1].lag_ns = 500_000;
        assert!(!queue.wake(1, false, MS, &mut entities));
    }

    #[test]
    fn who_had_more_than_its_share_stays_in_the_queue_while_it_sleeps() {
        let (mut queue, mut entities) = queue(&[0, 0]);
        queue.sleep(MS, &mut entities);
        assert!(Queue::is_delayed(0, &entities));
        assert_eq!(queue.schedule(MS, &mut entities), Some(1));
        // The other one has caught up: what it had too much is forgotten.
        queue.tick(3 * MS, &mut entities);
        assert_eq!(queue.schedule(3 * MS, &mut entities), Some(1));
        assert!(!Queue::is_delayed(0, &entities));
        assert_eq!(entities[0].lag_ns, 0);
    }

    #[test]
    fn who_had_less_than_its_share_keeps_what_is_due_to_it() {
        let (mut queue, mut entities) = queue(&[0, 3]);
        queue.sleep(MS, &mut entities);
        assert!(!Queue::is_delayed(0, &entities));
        assert_eq!(entities[0].lag_ns, MS as i64);
        queue.schedule(MS, &mut entities);
        assert!(queue.wake(0, true, 2 * MS, &mut entities));
        // The other one has had 4 ms, and the mean of both is 1 ms behind that of before.
        assert_eq!(queue.mean_ns - entities[0].ran_ns, MS as i64);
    }

    #[test]
    fn of_the_eligible_ones_the_earliest_deadline_runs() {
        for ran_ms in [[0, 5, 1, 3], [0, 1, 5, 3], [0, 3, 5, 1]] {
            let (mut queue, mut entities) = queue(&ran_ms);
            let least = (1..4).min_by_key(|&thread| ran_ms[thread]).unwrap();
            queue.end(8 * MS, &mut entities);
            assert_eq!(queue.schedule(8 * MS, &mut entities), Some(least), "{ran_ms:?}");
        }
    }
}
