//! Schedules threads in virtual time, on CPUs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use filemap_core::decision::{Log, TaskWait};
use filemap_core::page_cache::PageCache;
use filemap_job::waits::Cause;

use super::cursor::Cursor;
use super::fair::{RunQueue, SchedEntity, TICK_NS};
use super::run::{ProgramRun, StepError};
use super::stream::EmulatedCpus;
use crate::profile::Profile;
use crate::wait_queue::{Pause, TaskWakeup, WaitedFor};

/// Runs the threads of a program. Returns their final state.
///
/// # Errors
/// As for [`Cursor::run`].
pub fn run<'p, C: PageCache>(
    running: &mut ProgramRun<'p, '_, C>,
) -> Result<Vec<Cursor<'p>>, StepError> {
    let job = running.job;
    let threads = job.threads.iter().enumerate();
    let threads = threads
        .map(|(number, thread)| Cursor::new(number, thread, thread.begins_ns(number, job.seed)));
    let mut cursors: Vec<_> = threads.collect();
    let cpus = job.cpus.map_or(cursors.len(), |cpus| cpus as usize);
    let mut schedule = Scheduler::new(cursors.len(), cpus, running.world.profile);
    let mut left = cursors.len();
    let waits_for_cpu = (Cause::RunQueue, Some(TaskWait::Cpu));
    let mut idle = vec![IdleSince { since_ns: 0, waits: waits_for_cpu }; left];
    running.world.is_single_task = left == 1;
    loop {
        for woken in running.world.waiting.take_woken() {
            let IdleSince { since_ns, waits: (cause, wait) } = idle[woken.task];
            if let Some(wait) = wait {
                let until_ns = woken.at_ns.max(since_ns);
                running.world.log.waited(woken.task, wait, since_ns, until_ns);
            }
            if let Some(spent) = &mut running.wait_times {
                spent.add(woken.task, cause, since_ns, woken.at_ns);
            }
            idle[woken.task] = IdleSince { since_ns: woken.at_ns, waits: waits_for_cpu };
            schedule.wake(&woken);
        }
        let is_first = |arrives_ns: &u64| schedule.next_ns().is_none_or(|ns| *arrives_ns <= ns);
        if let Some(arrives_ns) = running.world.awaited_ns().filter(is_first) {
            running.world.advance_to(arrives_ns);
            continue;
        }
        if let Some(woken) = schedule.pop_timer() {
            running.world.waiting.wake(woken.task, woken.at_ns);
            continue;
        }
        let Some((thread, from_ns)) = schedule.next_thread() else { break };
        if from_ns > idle[thread].since_ns {
            running.world.log.waited(thread, TaskWait::Cpu, idle[thread].since_ns, from_ns);
        }
        let slice_ends_ns = schedule.slice_ends_ns(thread, from_ns);
        let until_ns =
            schedule.until_ns().map_or(slice_ends_ns, |next_ns| next_ns.min(slice_ends_ns));
        running.world.begin_turn(thread, from_ns, until_ns, slice_ends_ns);
        let cursor = &mut cursors[thread];
        running.switch_process(cursor.process());
        running.world.owner_on_cpu = running
            .mmap_lock_writer(cursor.process())
            .is_some_and(|holder| schedule.has_cpu(holder));
        let pause = cursor.run(running);
        let pause = pause.map_err(|error| StepError { error, thread, step: cursor.step() })?;
        let now_ns = running.world.now_ns();
        schedule.record_progress(now_ns);
        if let Some(spent) = &mut running.wait_times {
            spent.add(thread, idle[thread].waits.0, idle[thread].since_ns, from_ns);
            if !matches!(pause, Some(Pause::LockRetry(_))) {
                spent.end_lock_wait(thread);
            }
            let reclaims_ns = now_ns.saturating_sub(running.world.reclaimed_ns).max(from_ns);
            spent.add(thread, Cause::Running, from_ns, reclaims_ns);
            spent.add(thread, Cause::Reclaim, reclaims_ns, now_ns);
        }
        idle[thread] =
            IdleSince { since_ns: now_ns, waits: pause.map_or(waits_for_cpu, wait_cause) };
        match pause {
            Some(Pause::Yield) => schedule.push(thread, now_ns),
            Some(Pause::TlbShootdown) => {
                schedule.stream.iter_mut().for_each(EmulatedCpus::spin);
                schedule.push(thread, now_ns);
            }
            Some(Pause::Spin) => {
                schedule.stream.iter_mut().for_each(EmulatedCpus::spin);
                schedule.keeps_cpu[thread] = true;
                schedule.push(thread, now_ns);
            }
            Some(Pause::YieldInKernel) => {
                schedule.keeps_cpu[thread] = !running.world.profile.voluntary_preemption;
                schedule.push(thread, now_ns);
            }
            Some(Pause::Folio(file, index)) => {
                running.world.waiting.sleep(thread, Some((file, index)));
                schedule.sleep(thread, now_ns);
            }
            Some(Pause::Memory) => {
                running.world.waiting.sleep(thread, None);
                schedule.sleep(thread, now_ns);
            }
            Some(Pause::Dependency | Pause::Lock(_) | Pause::LockRetry(_)) => {
                schedule.sleep(thread, now_ns)
            }
            Some(
                Pause::Sleep(until_ns) | Pause::Throttled(until_ns) | Pause::DirectIo(until_ns),
            ) => {
                schedule.sleep(thread, now_ns);
                schedule.timers.push(Reverse((until_ns, thread)));
            }
            None => {
                left -= 1;
                running.world.is_single_task = left == 1;
                schedule.end(thread, now_ns);
            }
        }
    }
    assert!(left == 0, "every thread that waits is woken");
    Ok(cursors)
}

/// What a paused thread waits for, as a cause and as a log entry.
fn wait_cause(pause: Pause) -> (Cause, Option<TaskWait>) {
    match pause {
        Pause::Yield | Pause::YieldInKernel => (Cause::RunQueue, Some(TaskWait::Cpu)),
        // Spinning counts as running.
        Pause::Spin | Pause::TlbShootdown => (Cause::Running, Some(TaskWait::Cpu)),
        Pause::Folio(file, index) => (Cause::Device, Some(TaskWait::Page(file, index))),
        Pause::Memory => (Cause::Room, Some(TaskWait::Room)),
        Pause::Dependency => (Cause::Threads, Some(TaskWait::Step)),
        Pause::Lock(lock) | Pause::LockRetry(lock) => (lock, Some(lock_wait(lock))),
        Pause::Sleep(_) => (Cause::Asleep, None),
        Pause::Throttled(_) => (Cause::Throttled, None),
        Pause::DirectIo(_) => (Cause::Device, None),
    }
}

/// The log entry for a wait for `lock`.
fn lock_wait(lock: Cause) -> TaskWait {
    match lock {
        Cause::MmapWrite => TaskWait::MmapWrite,
        Cause::VmaFaults => TaskWait::VmaFaults,
        _ => TaskWait::MmapRead,
    }
}

/// When a thread last ran, and what it has been waiting for.
#[derive(Clone, Copy, Debug)]
struct IdleSince {
    since_ns: u64,
    waits: (Cause, Option<TaskWait>),
}

/// The CPUs and their threads. Threads run in order of time, ties in order of arrival.
#[derive(Debug)]
struct Scheduler {
    /// Threads on CPUs by the time at which they continue and order of arrival.
    with_cpu: BinaryHeap<Reverse<(u64, u64, usize)>>,
    sequence: u64,
    /// Wake-up times of sleeping threads.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    cpus: Vec<ScheduledCpu>,
    entities: Vec<SchedEntity>,
    /// The CPU of each thread: where it runs, waits, or ran last.
    cpu_of: Vec<usize>,
    /// Threads that have been started.
    begun: usize,
    /// Threads that are not preempted when they continue, since they are in the kernel.
    keeps_cpu: Vec<bool>,
    /// Cost of a context switch, and latency of waking an idle CPU.
    switch_ns: u64,
    wake_latency_ns: u64,
    /// The latency for a thread whose page has arrived.
    page_wake_latency_ns: u64,
    /// Present if CPUs are emulated one at a time.
    stream: Option<EmulatedCpus>,
}

#[derive(Debug)]
struct ScheduledCpu {
    queue: RunQueue,
    /// The running thread has to reschedule (`TIF_NEED_RESCHED`).
    need_resched: bool,
    next_tick_ns: u64,
    /// Time of the next load balancing.
    next_balance_ns: u64,
}

/// Interval of load balancing on a busy CPU, per CPU of the machine.
const BALANCE_INTERVAL_NS: u64 = 16_000_000;

impl Scheduler {
    /// All threads start at time 0, in order. If there are more threads than CPUs, each further one
    /// starts when the one before it gets a CPU.
    fn new(threads: usize, cpus: usize, profile: &Profile) -> Scheduler {
        let cpu = |_| ScheduledCpu {
            queue: RunQueue::new(cpus),
            need_resched: false,
            next_tick_ns: TICK_NS,
            next_balance_ns: 0,
        };
        let mut schedule = Scheduler {
            with_cpu: BinaryHeap::with_capacity(cpus.min(threads)),
            sequence: 0,
            timers: BinaryHeap::new(),
            cpus: (0..cpus).map(cpu).collect(),
            entities: vec![SchedEntity::default(); threads],
            cpu_of: (0..threads).map(|thread| thread % cpus).collect(),
            begun: 0,
            keeps_cpu: vec![false; threads],
            switch_ns: profile.cost.switch_ns,
            wake_latency_ns: profile.cost.wake_latency_ns,
            page_wake_latency_ns: profile.cost.page_wake_latency_ns(),
            stream: profile.cpus_in_turn.then(|| EmulatedCpus::new(cpus, profile.cost.switch_ns)),
        };
        while schedule.begun < threads.min(cpus) {
            schedule.begin_next(0);
        }
        schedule
    }

    /// Time of the next event: a thread continues or a timer expires.
    fn next_ns(&self) -> Option<u64> {
        self.next_run_ns().into_iter().chain(self.next_timer_ns()).min()
    }

    /// Time at which the running thread must yield to the next event. Emulated CPUs do not yield to
    /// other threads.
    fn until_ns(&self) -> Option<u64> {
        match self.stream {
            Some(_) => self.next_timer_ns(),
            None => self.next_ns(),
        }
    }

    fn next_run_ns(&self) -> Option<u64> {
        match &self.stream {
            None => self.with_cpu.peek().map(|Reverse((now_ns, ..))| *now_ns),
            Some(stream) => stream.next_ns(),
        }
    }

    fn next_timer_ns(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// The thread taken has run until `now_ns`.
    fn record_progress(&mut self, now_ns: u64) {
        if let Some(stream) = &mut self.stream {
            stream.record_progress(now_ns);
        }
    }

    /// The sleeping thread whose timer expires before any other thread continues.
    fn pop_timer(&mut self) -> Option<TaskWakeup> {
        let Reverse((at_ns, task)) = *self.timers.peek()?;
        if self.next_run_ns().is_some_and(|now_ns| now_ns < at_ns) {
            return None;
        }
        self.timers.pop();
        Some(TaskWakeup { task, at_ns, waited_for: WaitedFor::Other })
    }

    /// The next thread and its time. A thread that has to reschedule gives up its CPU here.
    fn next_thread(&mut self) -> Option<(usize, u64)> {
        loop {
            let next = match &mut self.stream {
                None => self.with_cpu.pop().map(|Reverse((now_ns, _, thread))| (now_ns, thread)),
                Some(stream) => stream.next_thread(),
            };
            let (now_ns, thread) = next?;
            let number = self.cpu_of[thread];
            let cpu = &mut self.cpus[number];
            if now_ns >= cpu.next_tick_ns {
                cpu.next_tick_ns = now_ns - now_ns % TICK_NS + TICK_NS;
                cpu.need_resched |= cpu.queue.tick(now_ns, &mut self.entities);
                self.balance_if_due(number, now_ns);
            }
            let cpu = &mut self.cpus[number];
            let keeps = std::mem::take(&mut self.keeps_cpu[thread]);
            if !keeps && std::mem::take(&mut cpu.need_resched) {
                let next = cpu.queue.schedule(now_ns, &mut self.entities);
                if let Some(next) = next.filter(|next| *next != thread) {
                    self.assign_cpu(next, now_ns.saturating_add(self.switch_ns));
                    continue;
                }
            }
            return Some((thread, now_ns));
        }
    }

    /// Whether `thread` is on a CPU.
    fn has_cpu(&self, thread: usize) -> bool {
        self.cpus[self.cpu_of[thread]].queue.has_cpu(thread)
    }

    /// End of the time slice of `thread`.
    fn slice_ends_ns(&self, thread: usize, now_ns: u64) -> u64 {
        let cpu = &self.cpus[self.cpu_of[thread]];
        // It was not preempted in the kernel, and is on return to user mode.
        if cpu.need_resched {
            return now_ns;
        }
        let ends_ns = if cpu.queue.waiting() > 0 { cpu.next_tick_ns } else { u64::MAX };
        self.stream.as_ref().map_or(ends_ns, |stream| ends_ns.min(stream.until_ns()))
    }

    /// Wakes a thread. One that waited for memory does not preempt, or it would take the memory
    /// from threads whose folios have just arrived.
    fn wake(&mut self, woken: &TaskWakeup) {
        let latency_ns = match woken.waited_for {
            WaitedFor::Page => self.page_wake_latency_ns,
            WaitedFor::Memory | WaitedFor::Other => self.wake_latency_ns,
        };
        let preempts = woken.waited_for != WaitedFor::Memory;
        self.select_cpu(woken.task, woken.at_ns, preempts, latency_ns);
    }

    /// The running thread blocks at `now_ns`.
    fn sleep(&mut self, thread: usize, now_ns: u64) {
        self.cpus[self.cpu_of[thread]].queue.sleep(now_ns, &mut self.entities);
        self.pick_next(self.cpu_of[thread], now_ns.saturating_add(self.switch_ns));
    }

    /// The running thread exits at `now_ns`.
    fn end(&mut self, thread: usize, now_ns: u64) {
        self.cpus[self.cpu_of[thread]].queue.end(now_ns, &mut self.entities);
        self.pick_next(self.cpu_of[thread], now_ns.saturating_add(self.switch_ns));
    }

    /// Starts the next thread, on an idle CPU or waiting for one.
    fn begin_next(&mut self, now_ns: u64) {
        self.begun += 1;
        self.select_cpu(self.begun - 1, now_ns, false, 0);
    }

    /// Queues a runnable thread on its previous CPU or an idle one, where it starts after
    /// `latency_ns`.
    fn select_cpu(&mut self, thread: usize, now_ns: u64, preempts: bool, latency_ns: u64) {
        let had = self.cpu_of[thread];
        let is_tied = RunQueue::is_sched_delayed(thread, &self.entities);
        if !is_tied && !self.cpus[had].queue.is_idle() {
            let idle = self.cpus.iter().position(|cpu| cpu.queue.is_idle());
            self.cpu_of[thread] = idle.unwrap_or(had);
        }
        let cpu = &mut self.cpus[self.cpu_of[thread]];
        let is_idle = cpu.queue.is_idle();
        cpu.need_resched |= cpu.queue.wake(thread, preempts, now_ns, &mut self.entities);
        if is_idle {
            self.pick_next(self.cpu_of[thread], now_ns.saturating_add(latency_ns));
        }
    }

    /// An idle CPU picks the next thread, pulling one from another CPU if its own queue is empty.
    fn pick_next(&mut self, cpu: usize, now_ns: u64) {
        let here = &mut self.cpus[cpu];
        here.need_resched = false;
        if here.queue.is_idle() {
            here.next_tick_ns = now_ns - now_ns % TICK_NS + TICK_NS;
        }
        if let Some(next) = here.queue.schedule(now_ns, &mut self.entities) {
            return self.assign_cpu(next, now_ns);
        }
        let longest = self.busiest_cpu();
        if longest.is_some_and(|from| self.pull_task(from, cpu, now_ns))
            && let Some(next) = self.cpus[cpu].queue.schedule(now_ns, &mut self.entities)
        {
            self.assign_cpu(next, now_ns);
        }
    }

    /// Runnable threads waiting for `cpu`.
    fn waiting_threads(&self, cpu: usize) -> usize {
        self.cpus[cpu].queue.awake(&self.entities)
    }

    /// The CPU with most waiting threads.
    fn busiest_cpu(&self) -> Option<usize> {
        (0..self.cpus.len()).max_by_key(|cpu| self.waiting_threads(*cpu))
    }

    /// Pulls a waiting thread from the CPU `from`. Returns whether there was one.
    fn pull_task(&mut self, from: usize, cpu: usize, now_ns: u64) -> bool {
        let pulled = self.cpus[from].queue.detach_waiting(now_ns, &mut self.entities);
        if let Some(pulled) = pulled {
            self.cpu_of[pulled] = cpu;
            self.cpus[cpu].queue.wake(pulled, false, now_ns, &mut self.entities);
        }
        pulled.is_some()
    }

    /// Periodic load balancing: pulls a thread from the busiest CPU if more threads wait there.
    ///
    /// Stands for `sched_balance_rq`, 6.12 and 6.18, in the interval of a CPU that is busy. Test:
    /// `tests/threads.rs`.
    fn balance_if_due(&mut self, cpu: usize, now_ns: u64) {
        let interval_ns = BALANCE_INTERVAL_NS.saturating_mul(self.cpus.len() as u64);
        if now_ns < self.cpus[cpu].next_balance_ns {
            return;
        }
        self.cpus[cpu].next_balance_ns = now_ns.saturating_add(interval_ns);
        let has_more =
            |longest: &usize| self.waiting_threads(*longest) > self.waiting_threads(cpu) + 1;
        if let Some(longest) = self.busiest_cpu().filter(has_more) {
            self.pull_task(longest, cpu, now_ns);
        }
    }

    /// `thread` gets its CPU at `now_ns`.
    fn assign_cpu(&mut self, thread: usize, now_ns: u64) {
        self.push(thread, now_ns);
        if thread + 1 == self.begun && self.begun < self.entities.len() {
            self.begin_next(now_ns);
        }
    }

    fn push(&mut self, thread: usize, now_ns: u64) {
        match &mut self.stream {
            Some(stream) => stream.add(self.cpu_of[thread], now_ns, thread),
            None => self.with_cpu.push(Reverse((now_ns, self.sequence, thread))),
        }
        self.sequence += 1;
    }
}
