//! Threads by virtual time: whose turn it is, and who has a CPU.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;

use super::cursor::Cursor;
use super::record::Done;
use super::running::Running;
use crate::Error;
use crate::waiting::Pause;

/// How long a thread keeps its CPU while others wait for one. The scheduler's base slice (EEVDF,
/// 0.7 ms times 1 + log2 of the CPUs) is shorter, but whether it is over is looked at when the
/// timer ticks: every 4 ms with HZ=250. Two busy threads on one CPU of a 6.18 with 2 CPUs were
/// measured to alternate every 3.9 to 4.0 ms.
const SLICE_NS: u64 = 4_000_000;

/// Runs the threads of a program. Returns what the steps of each did.
///
/// # Errors
/// As for [`Cursor::go_on`].
pub fn run<C: PageCache, L: Log>(
    running: &mut Running<'_, '_, C, L>,
) -> Result<Vec<Vec<Done>>, Error> {
    let threads = running.program.threads.iter().enumerate();
    let mut cursors: Vec<_> =
        threads.map(|(number, thread)| Cursor::new(number, &thread.steps)).collect();
    let cpus = running.program.cpus.map_or(cursors.len(), |cpus| cpus as usize);
    let mut schedule = Schedule::new(cursors.len(), cpus);
    let mut left = cursors.len();
    let is_short = cpus < left;
    running.world.is_alone = left == 1;
    loop {
        for (thread, woken_ns) in running.world.waiting.take_woken() {
            schedule.start(thread, woken_ns);
        }
        let is_first = |arrives_ns: &u64| schedule.next_ns().is_none_or(|ns| *arrives_ns <= ns);
        if let Some(arrives_ns) = running.world.awaited_ns().filter(is_first) {
            running.world.arrive(arrives_ns);
            continue;
        }
        let Some((thread, now_ns)) = schedule.take() else { break };
        let slice_ends_ns = if is_short { schedule.slice_ends_ns[thread] } else { u64::MAX };
        running.world.begin_turn(now_ns, schedule.until_ns(thread), slice_ends_ns);
        let cursor = &mut cursors[thread];
        let pause = cursor.go_on(running);
        let pause = pause.map_err(|error| running.told(error, thread, cursor.done.len()))?;
        let now_ns = running.world.now_ns();
        match pause {
            Some(Pause::Turn) => schedule.push(thread, now_ns),
            Some(Pause::Folio(file, index)) => {
                running.world.waiting.add(thread, Some((file, index)));
                schedule.leave(now_ns);
            }
            Some(Pause::Room) => {
                running.world.waiting.add(thread, None);
                schedule.leave(now_ns);
            }
            None => {
                left -= 1;
                running.world.is_alone = left == 1;
                schedule.leave(now_ns);
            }
        }
    }
    assert!(left == 0, "every thread that waits is woken");
    Ok(cursors.into_iter().map(|cursor| cursor.done).collect())
}

/// The threads that do not wait for a device. Which one goes on is decided by time, and at the
/// same time by who came first.
#[derive(Debug)]
struct Schedule {
    /// Those that have a CPU: when each goes on, its place among those of that time, and which.
    with_cpu: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// Those that wait for a CPU, in the order in which they came.
    without_cpu: VecDeque<usize>,
    free_cpus: usize,
    /// When the slice of each thread ends, which matters while others wait for a CPU.
    slice_ends_ns: Vec<u64>,
    came: u64,
}

impl Schedule {
    /// All threads begin at time 0, in order.
    fn new(threads: usize, cpus: usize) -> Schedule {
        let mut schedule = Schedule {
            with_cpu: BinaryHeap::with_capacity(threads),
            without_cpu: VecDeque::new(),
            free_cpus: cpus,
            slice_ends_ns: vec![0; threads],
            came: 0,
        };
        (0..threads).for_each(|thread| schedule.start(thread, 0));
        schedule
    }

    /// When the next thread goes on.
    fn next_ns(&self) -> Option<u64> {
        self.with_cpu.peek().map(|Reverse((now_ns, ..))| *now_ns)
    }

    /// The next thread, and its time. One whose slice is over waits where another does.
    fn take(&mut self) -> Option<(usize, u64)> {
        loop {
            let Reverse((now_ns, _, thread)) = self.with_cpu.pop()?;
            if now_ns >= self.slice_ends_ns[thread] {
                if !self.without_cpu.is_empty() {
                    self.without_cpu.push_back(thread);
                    self.leave(now_ns);
                    continue;
                }
                self.slice_ends_ns[thread] = now_ns.saturating_add(SLICE_NS);
            }
            return Some((thread, now_ns));
        }
    }

    /// Until when `thread`, which was taken, may go on.
    fn until_ns(&self, thread: usize) -> u64 {
        let until_ns = self.next_ns().unwrap_or(u64::MAX);
        match self.without_cpu.is_empty() {
            true => until_ns,
            false => until_ns.min(self.slice_ends_ns[thread]),
        }
    }

    /// A thread can go on that waited for a device, or begins.
    fn start(&mut self, thread: usize, now_ns: u64) {
        if self.free_cpus == 0 {
            self.without_cpu.push_back(thread);
        } else {
            self.free_cpus -= 1;
            self.begin_slice(thread, now_ns);
        }
    }

    /// A thread gives up its CPU.
    fn leave(&mut self, now_ns: u64) {
        match self.without_cpu.pop_front() {
            Some(thread) => self.begin_slice(thread, now_ns),
            None => self.free_cpus += 1,
        }
    }

    fn begin_slice(&mut self, thread: usize, now_ns: u64) {
        self.slice_ends_ns[thread] = now_ns.saturating_add(SLICE_NS);
        self.push(thread, now_ns);
    }

    fn push(&mut self, thread: usize, now_ns: u64) {
        self.with_cpu.push(Reverse((now_ns, self.came, thread)));
        self.came += 1;
    }
}
