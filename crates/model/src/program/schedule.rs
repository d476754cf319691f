//! Threads by virtual time: whose turn it is, and who has a CPU.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use filemap_core::decision::{Log, Wait};
use filemap_core::page_cache::PageCache;
use filemap_job::waits::Cause;

use super::cursor::Cursor;
use super::fair::{Entity, Queue, TICK_NS};
use super::running::{Running, Stopped};
use super::stream::Stream;
use crate::profile::Profile;
use crate::waiting::{Pause, Woken};

/// Runs the threads of a program. Returns what the steps of each did.
///
/// # Errors
/// As for [`Cursor::go_on`].
pub fn run<'p, C: PageCache, L: Log>(
    running: &mut Running<'p, '_, C, L>,
) -> Result<Vec<Cursor<'p>>, Stopped> {
    let job = running.job;
    let threads = job.threads.iter().enumerate();
    let threads = threads
        .map(|(number, thread)| Cursor::new(number, thread, thread.begins_ns(number, job.seed)));
    let mut cursors: Vec<_> = threads.collect();
    let cpus = job.cpus.map_or(cursors.len(), |cpus| cpus as usize);
    let mut schedule = Schedule::new(cursors.len(), cpus, running.world.profile);
    let mut left = cursors.len();
    let waits_for_cpu = (Cause::RunQueue, Some(Wait::Cpu));
    let mut idle = vec![Idle { since_ns: 0, waits: waits_for_cpu }; left];
    running.world.is_alone = left == 1;
    loop {
        for woken in running.world.waiting.take_woken() {
            let Idle { since_ns, waits: (cause, wait) } = idle[woken.task];
            if let Some(wait) = wait {
                let waited_ns = woken.at_ns.saturating_sub(since_ns);
                running.world.log.waited(woken.task, wait, waited_ns);
            }
            if let Some(spent) = &mut running.spent {
                spent.add(woken.task, cause, since_ns, woken.at_ns);
            }
            idle[woken.task] = Idle { since_ns: woken.at_ns, waits: waits_for_cpu };
            schedule.wake(&woken);
        }
        let is_first = |arrives_ns: &u64| schedule.next_ns().is_none_or(|ns| *arrives_ns <= ns);
        if let Some(arrives_ns) = running.world.awaited_ns().filter(is_first) {
            running.world.arrive(arrives_ns);
            continue;
        }
        if let Some(woken) = schedule.wakes_up() {
            running.world.waiting.wake(woken.task, woken.at_ns);
            continue;
        }
        let Some((thread, from_ns)) = schedule.take() else { break };
        let waited_ns = from_ns.saturating_sub(idle[thread].since_ns);
        if waited_ns > 0 {
            running.world.log.waited(thread, Wait::Cpu, waited_ns);
        }
        let slice_ends_ns = schedule.slice_ends_ns(thread, from_ns);
        let until_ns =
            schedule.until_ns().map_or(slice_ends_ns, |next_ns| next_ns.min(slice_ends_ns));
        running.world.begin_turn(thread, from_ns, until_ns, slice_ends_ns);
        let cursor = &mut cursors[thread];
        running.enter(cursor.process());
        running.world.holder_runs =
            running.holder(cursor.process()).is_some_and(|holder| schedule.has_cpu(holder));
        let pause = cursor.go_on(running);
        let pause = pause.map_err(|error| Stopped { error, thread, step: cursor.step() })?;
        let now_ns = running.world.now_ns();
        schedule.went_on(now_ns);
        if let Some(spent) = &mut running.spent {
            spent.add(thread, idle[thread].waits.0, idle[thread].since_ns, from_ns);
            if !matches!(pause, Some(Pause::StillLock(_))) {
                spent.has_lock(thread);
            }
            let reclaims_ns = now_ns.saturating_sub(running.world.reclaimed_ns).max(from_ns);
            spent.add(thread, Cause::Running, from_ns, reclaims_ns);
            spent.add(thread, Cause::Reclaim, reclaims_ns, now_ns);
        }
        idle[thread] = Idle { since_ns: now_ns, waits: pause.map_or(waits_for_cpu, waits) };
        match pause {
            Some(Pause::Turn) => schedule.push(thread, now_ns),
            Some(Pause::Answers) => {
                schedule.stream.iter_mut().for_each(Stream::spins);
                schedule.push(thread, now_ns);
            }
            Some(Pause::Spins) => {
                schedule.stream.iter_mut().for_each(Stream::spins);
                schedule.keeps[thread] = true;
                schedule.push(thread, now_ns);
            }
            Some(Pause::InKernel) => {
                schedule.keeps[thread] = !running.world.profile.voluntary_preemption;
                schedule.push(thread, now_ns);
            }
            Some(Pause::Folio(file, index)) => {
                running.world.waiting.add(thread, Some((file, index)));
                schedule.sleep(thread, now_ns);
            }
            Some(Pause::Room) => {
                running.world.waiting.add(thread, None);
                schedule.sleep(thread, now_ns);
            }
            Some(Pause::Step | Pause::Lock(_) | Pause::StillLock(_)) => {
                schedule.sleep(thread, now_ns)
            }
            Some(Pause::Sleep(until_ns) | Pause::Throttled(until_ns) | Pause::Direct(until_ns)) => {
                schedule.sleep(thread, now_ns);
                schedule.timers.push(Reverse((until_ns, thread)));
            }
            None => {
                left -= 1;
                running.world.is_alone = left == 1;
                schedule.end(thread, now_ns);
            }
        }
    }
    assert!(left == 0, "every thread that waits is woken");
    Ok(cursors)
}

/// What a thread waits for that has paused, and what a log calls that.
fn waits(pause: Pause) -> (Cause, Option<Wait>) {
    match pause {
        Pause::Turn | Pause::InKernel => (Cause::RunQueue, Some(Wait::Cpu)),
        // It spins.
        Pause::Spins | Pause::Answers => (Cause::Running, Some(Wait::Cpu)),
        Pause::Folio(file, index) => (Cause::Device, Some(Wait::Page(file, index))),
        Pause::Room => (Cause::Room, Some(Wait::Room)),
        Pause::Step => (Cause::Threads, Some(Wait::Step)),
        Pause::Lock(lock) | Pause::StillLock(lock) => (lock, Some(wait_for(lock))),
        Pause::Sleep(_) => (Cause::Asleep, None),
        Pause::Throttled(_) => (Cause::Throttled, None),
        Pause::Direct(_) => (Cause::Device, None),
    }
}

/// What a log calls the wait for `lock`.
fn wait_for(lock: Cause) -> Wait {
    match lock {
        Cause::MmapWrite => Wait::MmapWrite,
        Cause::VmaFaults => Wait::VmaFaults,
        _ => Wait::MmapRead,
    }
}

/// Since when a thread has not gone on, and what it waits for.
#[derive(Clone, Copy, Debug)]
struct Idle {
    since_ns: u64,
    waits: (Cause, Option<Wait>),
}

/// The CPUs, and the threads that have one: which goes on first is decided by time, and at the
/// same time by who came first.
#[derive(Debug)]
struct Schedule {
    /// When each thread that has a CPU goes on, its place among those of that time, and which.
    with_cpu: BinaryHeap<Reverse<(u64, u64, usize)>>,
    came: u64,
    /// When each thread that sleeps wakes up.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    cpus: Vec<Cpu>,
    entities: Vec<Entity>,
    /// The CPU that each thread has, waits for, or had last.
    cpu_of: Vec<usize>,
    /// Threads that have begun, or wait for a CPU to begin on.
    begun: usize,
    /// Threads that keep their CPU when they go on, as they are in the kernel.
    keeps: Vec<bool>,
    /// What it takes a CPU to change to another thread, and one that was idle to run one.
    switch_ns: u64,
    wake_latency_ns: u64,
    /// The instructions of all CPUs, where these run in turn.
    stream: Option<Stream>,
}

#[derive(Debug)]
struct Cpu {
    queue: Queue,
    /// The thread that has the CPU has to let the scheduler choose.
    chooses: bool,
    ticks_ns: u64,
    /// When it looks next whether others have more to do.
    balances_ns: u64,
}

/// A CPU that is busy looks so often, times the number of CPUs.
const BALANCE_NS: u64 = 16_000_000;

impl Schedule {
    /// All threads begin at time 0, in order: those for which there is no CPU each after the one
    /// before it, when that begins.
    fn new(threads: usize, cpus: usize, profile: &Profile) -> Schedule {
        let cpu =
            |_| Cpu { queue: Queue::new(cpus), chooses: false, ticks_ns: TICK_NS, balances_ns: 0 };
        let mut schedule = Schedule {
            with_cpu: BinaryHeap::with_capacity(cpus.min(threads)),
            came: 0,
            timers: BinaryHeap::new(),
            cpus: (0..cpus).map(cpu).collect(),
            entities: vec![Entity::default(); threads],
            cpu_of: (0..threads).map(|thread| thread % cpus).collect(),
            begun: 0,
            keeps: vec![false; threads],
            switch_ns: profile.cost.switch_ns,
            wake_latency_ns: profile.cost.wake_latency_ns,
            stream: profile.cpus_in_turn.then(|| Stream::new(cpus, profile.cost.switch_ns)),
        };
        while schedule.begun < threads.min(cpus) {
            schedule.begin_next(0);
        }
        schedule
    }

    /// When the next thread goes on, or wakes up.
    fn next_ns(&self) -> Option<u64> {
        self.goes_on_ns().into_iter().chain(self.wakes_up_ns()).min()
    }

    /// When something comes before what the thread does that was taken. Where CPUs run in turn, no
    /// other thread does.
    fn until_ns(&self) -> Option<u64> {
        match self.stream {
            Some(_) => self.wakes_up_ns(),
            None => self.next_ns(),
        }
    }

    fn goes_on_ns(&self) -> Option<u64> {
        match &self.stream {
            None => self.with_cpu.peek().map(|Reverse((now_ns, ..))| *now_ns),
            Some(stream) => stream.next_ns(),
        }
    }

    fn wakes_up_ns(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// The thread that was taken has done something until `now_ns`.
    fn went_on(&mut self, now_ns: u64) {
        if let Some(stream) = &mut self.stream {
            stream.went_on(now_ns);
        }
    }

    /// The thread that wakes up before another one goes on.
    fn wakes_up(&mut self) -> Option<Woken> {
        let Reverse((at_ns, task)) = *self.timers.peek()?;
        if self.goes_on_ns().is_some_and(|now_ns| now_ns < at_ns) {
            return None;
        }
        self.timers.pop();
        Some(Woken { task, at_ns, has_folio: true })
    }

    /// The next thread, and its time. One whose turn on its CPU is over waits for the next.
    fn take(&mut self) -> Option<(usize, u64)> {
        loop {
            let next = match &mut self.stream {
                None => self.with_cpu.pop().map(|Reverse((now_ns, _, thread))| (now_ns, thread)),
                Some(stream) => stream.take(),
            };
            let (now_ns, thread) = next?;
            let number = self.cpu_of[thread];
            let cpu = &mut self.cpus[number];
            if now_ns >= cpu.ticks_ns {
                cpu.ticks_ns = now_ns - now_ns % TICK_NS + TICK_NS;
                cpu.chooses |= cpu.queue.tick(now_ns, &mut self.entities);
                self.balance_if_due(number, now_ns);
            }
            let cpu = &mut self.cpus[number];
            let keeps = std::mem::take(&mut self.keeps[thread]);
            if !keeps && std::mem::take(&mut cpu.chooses) {
                let next = cpu.queue.schedule(now_ns, &mut self.entities);
                if let Some(next) = next.filter(|next| *next != thread) {
                    self.gets_cpu(next, now_ns.saturating_add(self.switch_ns));
                    continue;
                }
            }
            return Some((thread, now_ns));
        }
    }

    /// Whether `thread` has a CPU.
    fn has_cpu(&self, thread: usize) -> bool {
        self.cpus[self.cpu_of[thread]].queue.has_cpu(thread)
    }

    /// Until when `thread`, which was taken, has its CPU for itself.
    fn slice_ends_ns(&self, thread: usize, now_ns: u64) -> u64 {
        let cpu = &self.cpus[self.cpu_of[thread]];
        // It kept its CPU in the kernel, and loses it on its way out.
        if cpu.chooses {
            return now_ns;
        }
        let ends_ns = if cpu.queue.waiting() > 0 { cpu.ticks_ns } else { u64::MAX };
        self.stream.as_ref().map_or(ends_ns, |stream| ends_ns.min(stream.until_ns()))
    }

    /// A thread can go on that waited. One that waited for room would take it from those whose
    /// folio has arrived, if it took their CPU too.
    fn wake(&mut self, woken: &Woken) {
        self.find_cpu(woken.task, woken.at_ns, woken.has_folio, self.wake_latency_ns);
    }

    /// The thread that has a CPU has to wait for a device, from `now_ns` on.
    fn sleep(&mut self, thread: usize, now_ns: u64) {
        self.cpus[self.cpu_of[thread]].queue.sleep(now_ns, &mut self.entities);
        self.find_thread(self.cpu_of[thread], now_ns.saturating_add(self.switch_ns));
    }

    /// The thread that has a CPU has ended, at `now_ns`.
    fn end(&mut self, thread: usize, now_ns: u64) {
        self.cpus[self.cpu_of[thread]].queue.end(now_ns, &mut self.entities);
        self.find_thread(self.cpu_of[thread], now_ns.saturating_add(self.switch_ns));
    }

    /// The next thread that has not begun does so, on a CPU that is idle, or when it gets one.
    fn begin_next(&mut self, now_ns: u64) {
        self.begun += 1;
        self.find_cpu(self.begun - 1, now_ns, false, 0);
    }

    /// A thread that can run goes to the CPU that it had, or to one that is idle, on which it runs
    /// after `latency_ns`.
    fn find_cpu(&mut self, thread: usize, now_ns: u64, preempts: bool, latency_ns: u64) {
        let had = self.cpu_of[thread];
        let is_tied = Queue::is_delayed(thread, &self.entities);
        if !is_tied && !self.cpus[had].queue.is_idle() {
            let idle = self.cpus.iter().position(|cpu| cpu.queue.is_idle());
            self.cpu_of[thread] = idle.unwrap_or(had);
        }
        let cpu = &mut self.cpus[self.cpu_of[thread]];
        let is_idle = cpu.queue.is_idle();
        cpu.chooses |= cpu.queue.wake(thread, preempts, now_ns, &mut self.entities);
        if is_idle {
            self.find_thread(self.cpu_of[thread], now_ns.saturating_add(latency_ns));
        }
    }

    /// A CPU that is idle takes the thread whose turn it is, or one that waits for another CPU.
    fn find_thread(&mut self, cpu: usize, now_ns: u64) {
        let here = &mut self.cpus[cpu];
        here.chooses = false;
        if here.queue.is_idle() {
            here.ticks_ns = now_ns - now_ns % TICK_NS + TICK_NS;
        }
        if let Some(next) = here.queue.schedule(now_ns, &mut self.entities) {
            return self.gets_cpu(next, now_ns);
        }
        let longest = self.longest();
        if longest.is_some_and(|from| self.take_from(from, cpu, now_ns))
            && let Some(next) = self.cpus[cpu].queue.schedule(now_ns, &mut self.entities)
        {
            self.gets_cpu(next, now_ns);
        }
    }

    /// How many threads wait for `cpu`.
    fn awake(&self, cpu: usize) -> usize {
        self.cpus[cpu].queue.awake(&self.entities)
    }

    /// The CPU for which most threads wait.
    fn longest(&self) -> Option<usize> {
        (0..self.cpus.len()).max_by_key(|cpu| self.awake(*cpu))
    }

    /// `cpu` takes a thread that waits for the CPU `from`. Whether there is one.
    fn take_from(&mut self, from: usize, cpu: usize, now_ns: u64) -> bool {
        let given = self.cpus[from].queue.give_away(now_ns, &mut self.entities);
        if let Some(given) = given {
            self.cpu_of[given] = cpu;
            self.cpus[cpu].queue.wake(given, false, now_ns, &mut self.entities);
        }
        given.is_some()
    }

    /// From time to time a CPU takes a thread from the one for which most wait, where those are
    /// more than its own.
    ///
    /// Stands for `sched_balance_rq`, 6.12 and 6.18, in the interval of a CPU that is busy. Test:
    /// `tests/threads.rs`.
    fn balance_if_due(&mut self, cpu: usize, now_ns: u64) {
        let interval_ns = BALANCE_NS.saturating_mul(self.cpus.len() as u64);
        if now_ns < self.cpus[cpu].balances_ns {
            return;
        }
        self.cpus[cpu].balances_ns = now_ns.saturating_add(interval_ns);
        let has_more = |longest: &usize| self.awake(*longest) > self.awake(cpu) + 1;
        if let Some(longest) = self.longest().filter(has_more) {
            self.take_from(longest, cpu, now_ns);
        }
    }

    /// The CPU of `thread` is its own from `now_ns` on.
    fn gets_cpu(&mut self, thread: usize, now_ns: u64) {
        self.push(thread, now_ns);
        if thread + 1 == self.begun && self.begun < self.entities.len() {
            self.begin_next(now_ns);
        }
    }

    fn push(&mut self, thread: usize, now_ns: u64) {
        match &mut self.stream {
            Some(stream) => stream.add(self.cpu_of[thread], now_ns, thread),
            None => self.with_cpu.push(Reverse((now_ns, self.came, thread))),
        }
        self.came += 1;
    }
}
