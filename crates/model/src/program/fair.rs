//! The run queue of a CPU under the kernel's fair scheduler: EEVDF with equal weights.
//!
//! Each thread has a virtual runtime, and a deadline one slice after it was placed. A thread is
//! eligible while its runtime is at most the average of its queue. The eligible thread with the
//! earliest deadline runs; it is not preempted before its deadline while it is eligible.

use std::collections::BTreeSet;

/// Base slice of a single CPU.
const BASE_SLICE_NS: i64 = 700_000;

/// The slice does not grow beyond this number of CPUs.
const MAX_SCALED_CPUS: usize = 8;

/// The slice on a machine of `cpus` CPUs.
///
/// Mirrors `get_update_sysctl_factor`, 6.18. Test: `tests/threads.rs`.
fn slice_ns(cpus: usize) -> i64 {
    BASE_SLICE_NS * (1 + i64::from(cpus.clamp(1, MAX_SCALED_CPUS).ilog2()))
}

/// Period of the timer tick with HZ=250.
pub const TICK_NS: u64 = 4_000_000;

/// Limit of the lag that a sleeping thread keeps.
const MAX_LAG_NS: i64 = TICK_NS as i64;

/// Scheduling state of a thread (`sched_entity`). All times are virtual times of its queue, in
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct SchedEntity {
    vruntime_ns: i64,
    deadline_ns: i64,
    /// Order of arrival, to break ties of deadlines.
    sequence: u64,
    /// Lag behind the average when it went to sleep.
    vlag_ns: i64,
    /// It sleeps with negative lag, and stays queued until it is picked (`sched_delayed`).
    is_sched_delayed: bool,
}

/// A CPU's run queue (`cfs_rq`).
#[derive(Debug, Default)]
pub struct RunQueue {
    slice_ns: i64,
    current: Option<usize>,
    /// Start of the current thread's unaccounted time.
    exec_start_ns: u64,
    /// Virtual time up to which an eligible current thread is protected from preemption.
    vprot_ns: i64,
    /// The other threads, by deadline.
    waiting: BTreeSet<(i64, u64, usize)>,
    waiting_vruntime_ns: i64,
    /// Average virtual runtime when last updated; an empty queue continues from it.
    avg_vruntime_ns: i64,
    sequence: u64,
}

impl RunQueue {
    /// An empty queue of a machine with `cpus` CPUs.
    pub fn new(cpus: usize) -> RunQueue {
        RunQueue { slice_ns: slice_ns(cpus), ..RunQueue::default() }
    }

    /// Whether the CPU is idle.
    pub fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Whether `thread` is running.
    pub fn has_cpu(&self, thread: usize) -> bool {
        self.current == Some(thread)
    }

    /// Number of queued threads besides the running one. Delayed sleepers are included.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Number of runnable threads waiting for the CPU.
    pub fn awake(&self, entities: &[SchedEntity]) -> usize {
        let awake = |(_, _, thread): &&(i64, u64, usize)| !entities[*thread].is_sched_delayed;
        self.waiting.iter().filter(awake).count()
    }

    /// Whether a thread sleeps but is still queued.
    pub fn is_sched_delayed(thread: usize, entities: &[SchedEntity]) -> bool {
        entities[thread].is_sched_delayed
    }

    /// Wakes `thread` at `now_ns`. Returns whether the running thread has to reschedule. A thread
    /// that does not preempt waits for the next regular scheduling decision.
    pub fn wake(
        &mut self,
        thread: usize,
        preempts: bool,
        now_ns: u64,
        entities: &mut [SchedEntity],
    ) -> bool {
        let is_over = self.tick(now_ns, entities);
        if !entities[thread].is_sched_delayed {
            let lag_ns = entities[thread].vlag_ns;
            self.place_entity(thread, lag_ns, entities);
        } else {
            entities[thread].is_sched_delayed = false;
            if entities[thread].vruntime_ns < self.avg_vruntime_ns {
                self.dequeue(thread, entities);
                self.place_entity(thread, 0, entities);
            }
        }
        is_over || preempts && self.pick_eevdf(entities) == Some(thread)
    }

    /// Timer tick at `now_ns`. Returns whether the running thread has to reschedule.
    pub fn tick(&mut self, now_ns: u64, entities: &mut [SchedEntity]) -> bool {
        self.update_curr(now_ns, entities);
        let is_over = self.should_resched(entities);
        if let Some(current) = self.current {
            let entity = &mut entities[current];
            if entity.vruntime_ns >= entity.deadline_ns {
                entity.deadline_ns = entity.vruntime_ns + self.slice_ns;
            }
        }
        is_over
    }

    /// The running thread goes to sleep.
    pub fn sleep(&mut self, now_ns: u64, entities: &mut [SchedEntity]) {
        self.update_curr(now_ns, entities);
        let Some(current) = self.current.take() else { return };
        let entity = &mut entities[current];
        let lag_ns = (self.avg_vruntime_ns - entity.vruntime_ns).clamp(-MAX_LAG_NS, MAX_LAG_NS);
        entity.vlag_ns = lag_ns;
        entity.is_sched_delayed = lag_ns < 0 && !self.waiting.is_empty();
        if entity.is_sched_delayed {
            self.enqueue(current, entities);
        }
    }

    /// The running thread exits.
    pub fn end(&mut self, now_ns: u64, entities: &mut [SchedEntity]) {
        self.update_curr(now_ns, entities);
        self.current = None;
    }

    /// Picks the thread to run at `now_ns`, if there is one. The previous one is queued or keeps
    /// running.
    pub fn schedule(&mut self, now_ns: u64, entities: &mut [SchedEntity]) -> Option<usize> {
        self.update_curr(now_ns, entities);
        loop {
            let thread = self.pick_eevdf(entities)?;
            if self.current == Some(thread) {
                return Some(thread);
            }
            self.dequeue(thread, entities);
            if entities[thread].is_sched_delayed {
                entities[thread].is_sched_delayed = false;
                entities[thread].vlag_ns = 0;
                self.update_curr(now_ns, entities);
                continue;
            }
            if let Some(current) = self.current {
                self.enqueue(current, entities);
            }
            self.current = Some(thread);
            self.exec_start_ns = now_ns;
            self.vprot_ns = entities[thread].deadline_ns;
            self.update_avg_vruntime(entities);
            return Some(thread);
        }
    }

    /// Removes a waiting thread, to be migrated to another CPU.
    pub fn detach_waiting(&mut self, now_ns: u64, entities: &mut [SchedEntity]) -> Option<usize> {
        self.update_curr(now_ns, entities);
        let awake = |(_, _, thread): &&(i64, u64, usize)| !entities[*thread].is_sched_delayed;
        let thread = self.waiting.iter().find(awake)?.2;
        // It starts without lag on the new queue.
        self.dequeue(thread, entities);
        Some(thread)
    }

    /// Accounts the runtime of the running thread and updates the average.
    fn update_curr(&mut self, now_ns: u64, entities: &mut [SchedEntity]) {
        if let Some(current) = self.current {
            let passed_ns = now_ns.saturating_sub(self.exec_start_ns);
            self.exec_start_ns += passed_ns;
            entities[current].vruntime_ns += passed_ns as i64;
        }
        self.update_avg_vruntime(entities);
    }

    fn update_avg_vruntime(&mut self, entities: &[SchedEntity]) {
        let current_ns = self.current.map_or(0, |current| entities[current].vruntime_ns);
        if let Some(members) = self.members() {
            self.avg_vruntime_ns = (self.waiting_vruntime_ns + current_ns).div_euclid(members);
        }
    }

    fn members(&self) -> Option<i64> {
        let members = self.waiting.len() + usize::from(self.current.is_some());
        (members > 0).then_some(members as i64)
    }

    /// Whether the running thread has used up its slice while others wait.
    fn should_resched(&self, entities: &[SchedEntity]) -> bool {
        let ran_ns = |current: usize| entities[current].vruntime_ns;
        let is_over = |current| {
            ran_ns(current) >= entities[current].deadline_ns || ran_ns(current) >= self.vprot_ns
        };
        !self.waiting.is_empty() && self.current.is_some_and(is_over)
    }

    /// The thread to run next; the running one while it is protected.
    fn pick_eevdf(&self, entities: &[SchedEntity]) -> Option<usize> {
        let is_eligible = |&thread: &usize| entities[thread].vruntime_ns <= self.avg_vruntime_ns;
        let current = self.current.filter(is_eligible);
        if let Some(current) = current
            && entities[current].vruntime_ns < self.vprot_ns
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

    fn place_entity(&mut self, thread: usize, lag_ns: i64, entities: &mut [SchedEntity]) {
        // Enqueueing moves the average, so the lag is scaled to hold afterwards.
        let lag_ns = self.members().map_or(0, |members| lag_ns * (members + 1) / members);
        self.sequence += 1;
        let ran_ns = self.avg_vruntime_ns - lag_ns;
        let deadline_ns = ran_ns + self.slice_ns;
        entities[thread] = SchedEntity {
            vruntime_ns: ran_ns,
            deadline_ns,
            sequence: self.sequence,
            vlag_ns: 0,
            is_sched_delayed: false,
        };
        self.enqueue(thread, entities);
    }

    fn enqueue(&mut self, thread: usize, entities: &[SchedEntity]) {
        let entity = &entities[thread];
        self.waiting.insert((entity.deadline_ns, entity.sequence, thread));
        self.waiting_vruntime_ns += entity.vruntime_ns;
        self.update_avg_vruntime(entities);
    }

    fn dequeue(&mut self, thread: usize, entities: &[SchedEntity]) {
        let entity = &entities[thread];
        self.waiting.remove(&(entity.deadline_ns, entity.sequence, thread));
        self.waiting_vruntime_ns -= entity.vruntime_ns;
        self.update_avg_vruntime(entities);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A queue with one thread per entry of `ran_ms`; the first one is running.
    fn queue(ran_ms: &[i64]) -> (RunQueue, Vec<SchedEntity>) {
        let mut entities = vec![SchedEntity::default(); ran_ms.len()];
        let mut queue = RunQueue::new(2);
        for (thread, ran_ms) in ran_ms.iter().enumerate() {
            queue.wake(thread, false, 0, &mut entities);
            if thread == 0 {
                assert_eq!(queue.schedule(0, &mut entities), Some(0));
            } else {
                queue.dequeue(thread, &entities);
                entities[thread].vruntime_ns = ran_ms * MS as i64;
                entities[thread].deadline_ns = entities[thread].vruntime_ns + queue.slice_ns;
                queue.enqueue(thread, &entities);
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
            queue.dequeue(1, &entities);
            entities[1].vlag_ns = lag_ns;
            assert_eq!(queue.wake(1, true, MS, &mut entities), preempts, "{lag_ns}");
            assert_eq!(queue.schedule(MS, &mut entities), Some(usize::from(preempts)));
        }
    }

    #[test]
    fn who_is_modest_does_not_take_the_cpu_when_it_wakes() {
        let (mut queue, mut entities) = queue(&[0, 0]);
        queue.dequeue(1, &entities);
        entities[1].vlag_ns = 500_000;
        assert!(!queue.wake(1, false, MS, &mut entities));
    }

    #[test]
    fn who_had_more_than_its_share_stays_in_the_queue_while_it_sleeps() {
        let (mut queue, mut entities) = queue(&[0, 0]);
        queue.sleep(MS, &mut entities);
        assert!(RunQueue::is_sched_delayed(0, &entities));
        assert_eq!(queue.schedule(MS, &mut entities), Some(1));
        // The other thread has caught up: the excess is forgiven.
        queue.tick(3 * MS, &mut entities);
        assert_eq!(queue.schedule(3 * MS, &mut entities), Some(1));
        assert!(!RunQueue::is_sched_delayed(0, &entities));
        assert_eq!(entities[0].vlag_ns, 0);
    }

    #[test]
    fn who_had_less_than_its_share_keeps_what_is_due_to_it() {
        let (mut queue, mut entities) = queue(&[0, 3]);
        queue.sleep(MS, &mut entities);
        assert!(!RunQueue::is_sched_delayed(0, &entities));
        assert_eq!(entities[0].vlag_ns, MS as i64);
        queue.schedule(MS, &mut entities);
        assert!(queue.wake(0, true, 2 * MS, &mut entities));
        // The other thread has had 4 ms, so the average of both is 1 ms behind the one before.
        assert_eq!(queue.avg_vruntime_ns - entities[0].vruntime_ns, MS as i64);
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
