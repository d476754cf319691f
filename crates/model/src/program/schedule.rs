//! Threads by virtual time: whose turn it is, and who has a CPU.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use filemap_core::decision::{Log, Wait};
use filemap_core::page_cache::PageCache;
use filemap_job::program::Awaited;

use super::cursor::Cursor;
use super::fair::{Entity, Queue, TICK_NS};
use super::running::{Running, Stopped};
use crate::profile::Cost;
use crate::waiting::{Pause, Woken};

/// Runs the threads of a program. Returns what the steps of each did.
///
/// # Errors
/// As for [`Cursor::go_on`].
pub fn run<'p, C: PageCache, L: Log>(
    running: &mut Running<'p, '_, C, L>,
) -> Result<Vec<Cursor<'p>>, Stopped> {
    let threads = running.program.threads.iter().enumerate();
    let mut cursors: Vec<_> = threads.map(|(number, thread)| Cursor::new(number, thread)).collect();
    let cpus = running.program.cpus.map_or(cursors.len(), |cpus| cpus as usize);
    let cost = &running.world.profile.cost;
    let mut schedule = Schedule::new(cursors.len(), cpus, cost);
    let mut left = cursors.len();
    let mut idle = vec![Idle { since_ns: 0, wait: Some(Wait::Cpu) }; left];
    // The last wait of each thread for a lock, until it is known to have ended.
    let mut of_lock: Vec<Option<LockWait>> = vec![None; left];
    running.world.is_alone = left == 1;
    loop {
        for woken in running.world.waiting.take_woken() {
            let Idle { since_ns, wait } = idle[woken.task];
            let waited_ns = woken.at_ns.saturating_sub(since_ns);
            if let Some(wait) = wait {
                running.world.log.waited(woken.task, wait, waited_ns);
            }
            if let Some(lock) = wait.and_then(awaited) {
                let so_far = of_lock[woken.task].map_or(0, |wait| wait.ns);
                of_lock[woken.task] = Some(LockWait { lock, ns: so_far + waited_ns });
            }
            idle[woken.task] = Idle { since_ns: woken.at_ns, wait: Some(Wait::Cpu) };
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
        let Some((thread, now_ns)) = schedule.take() else { break };
        let waited_ns = now_ns.saturating_sub(idle[thread].since_ns);
        if waited_ns > 0 {
            running.world.log.waited(thread, Wait::Cpu, waited_ns);
        }
        let turn_ns = schedule.turn_ns(thread, now_ns);
        let until_ns = schedule.next_ns().map_or(turn_ns, |next_ns| next_ns.min(turn_ns));
        running.world.begin_turn(thread, now_ns, until_ns, turn_ns);
        let cursor = &mut cursors[thread];
        running.enter(cursor.process());
        let pause = cursor.go_on(running);
        let pause = pause.map_err(|error| Stopped { error, thread, step: cursor.step() })?;
        let now_ns = running.world.now_ns();
        if !matches!(pause, Some(Pause::StillLock(_)))
            && let Some(LockWait { lock, ns }) = of_lock[thread].take()
        {
            running.waits[lock as usize].add(ns);
        }
        let wait = match pause {
            Some(Pause::Folio(file, index)) => Some(Wait::Page(file, index)),
            Some(Pause::Room) => Some(Wait::Room),
            Some(Pause::Step) => Some(Wait::Step),
            Some(Pause::Lock(lock) | Pause::StillLock(lock)) => Some(wait_for(lock)),
            Some(Pause::Sleep(_)) => None,
            Some(Pause::Turn | Pause::InKernel) | None => Some(Wait::Cpu),
        };
        idle[thread] = Idle { since_ns: now_ns, wait };
        match pause {
            Some(Pause::Turn) => schedule.push(thread, now_ns),
            Some(Pause::InKernel) => {
                schedule.keeps[thread] = true;
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
            Some(Pause::Sleep(until_ns)) => {
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

/// The wait for `lock`.
fn wait_for(lock: Awaited) -> Wait {
    match lock {
        Awaited::MmapRead => Wait::MmapRead,
        Awaited::MmapWrite => Wait::MmapWrite,
        Awaited::VmaFaults => Wait::VmaFaults,
    }
}

/// The lock that a task waited for, if it was one.
fn awaited(wait: Wait) -> Option<Awaited> {
    Awaited::ALL.into_iter().find(|lock| wait_for(*lock) == wait)
}

/// A wait for a lock, which a thread may be woken from more than once.
#[derive(Clone, Copy, Debug)]
struct LockWait {
    lock: Awaited,
    ns: u64,
}

/// Since when a thread has not gone on, and what it waits for, where it does not sleep.
#[derive(Clone, Copy, Debug)]
struct Idle {
    since_ns: u64,
    wait: Option<Wait>,
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
}

#[derive(Debug)]
struct Cpu {
    queue: Queue,
    /// The thread that has the CPU has to let the scheduler choose.
    chooses: bool,
    ticks_ns: u64,
}

impl Schedule {
    /// All threads begin at time 0, in order: those for which there is no CPU each behind the one
    /// before it, when that begins.
    fn new(threads: usize, cpus: usize, cost: &Cost) -> Schedule {
        let cpu = |_| Cpu { queue: Queue::default(), chooses: false, ticks_ns: TICK_NS };
        let mut schedule = Schedule {
            with_cpu: BinaryHeap::with_capacity(cpus.min(threads)),
            came: 0,
            timers: BinaryHeap::new(),
            cpus: (0..cpus).map(cpu).collect(),
            entities: vec![Entity::default(); threads],
            cpu_of: (0..threads).map(|thread| thread % cpus).collect(),
            begun: 0,
            keeps: vec![false; threads],
            switch_ns: cost.switch_ns,
            wake_latency_ns: cost.wake_latency_ns,
        };
        while schedule.begun < threads.min(cpus) {
            schedule.begin_next(0);
        }
        schedule
    }

    /// When the next thread goes on, or wakes up.
    fn next_ns(&self) -> Option<u64> {
        let goes_on = self.with_cpu.peek().map(|Reverse((now_ns, ..))| *now_ns);
        let wakes_up = self.timers.peek().map(|Reverse((at_ns, _))| *at_ns);
        goes_on.into_iter().chain(wakes_up).min()
    }

    /// The thread that wakes up before another one goes on.
    fn wakes_up(&mut self) -> Option<Woken> {
        let Reverse((at_ns, task)) = *self.timers.peek()?;
        if self.with_cpu.peek().is_some_and(|Reverse((now_ns, ..))| *now_ns < at_ns) {
            return None;
        }
        self.timers.pop();
        Some(Woken { task, at_ns, has_folio: true })
    }

    /// The next thread, and its time. One whose turn on its CPU is over waits for the next.
    fn take(&mut self) -> Option<(usize, u64)> {
        loop {
            let Reverse((now_ns, _, thread)) = self.with_cpu.pop()?;
            let cpu = &mut self.cpus[self.cpu_of[thread]];
            if now_ns >= cpu.ticks_ns {
                cpu.ticks_ns = now_ns - now_ns % TICK_NS + TICK_NS;
                cpu.chooses |= cpu.queue.tick(now_ns, &mut self.entities);
            }
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

    /// Until when `thread`, which was taken, has its CPU for itself.
    fn turn_ns(&self, thread: usize, now_ns: u64) -> u64 {
        let cpu = &self.cpus[self.cpu_of[thread]];
        // It kept its CPU in the kernel, and loses it on its way out.
        if cpu.chooses {
            return now_ns;
        }
        if cpu.queue.waiting() > 0 { cpu.ticks_ns } else { u64::MAX }
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
        let longest =
            (0..self.cpus.len()).max_by_key(|other| self.cpus[*other].queue.awake(&self.entities));
        let given = longest
            .and_then(|longest| self.cpus[longest].queue.give_away(now_ns, &mut self.entities));
        if let Some(given) = given {
            self.cpu_of[given] = cpu;
            let queue = &mut self.cpus[cpu].queue;
            queue.wake(given, false, now_ns, &mut self.entities);
            if let Some(next) = queue.schedule(now_ns, &mut self.entities) {
                self.gets_cpu(next, now_ns);
            }
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
        self.with_cpu.push(Reverse((now_ns, self.came, thread)));
        self.came += 1;
    }
}
