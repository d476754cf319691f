//! Tasks on CPUs: who runs and who waits, and where the time of both goes.

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;

use super::events::Event;
use super::machine::Machine;
use super::task::{Busy, Flow, Kind};
use super::turns::Turn;
use super::waits::Cause;
use crate::mm::mmap_lock::TaskId;

impl<C: PageCache, L: Log> Machine<'_, C, L> {
    /// Lets `task` go on until something else comes first.
    pub fn turn(&mut self, task: TaskId) {
        self.end_busy(task);
        loop {
            let of = &self.tasks[task];
            if self.now_ns >= of.slice_ends_ns && of.may_yield() && self.is_preempted(task) {
                return;
            }
            let flow = self.advance(task);
            if self.ending.is_some() {
                return;
            }
            let (ns, cause) = match flow {
                Flow::Goes => continue,
                Flow::Takes(ns, cause) => (ns, cause),
                Flow::Tells(cause) => {
                    if self.job.costs.in_turn {
                        return self.spin(task);
                    }
                    (
                        self.job.costs.answer_ns * (self.job.cpus - self.cpus.idle() - 1) as u64,
                        cause,
                    )
                }
                Flow::Waits(cause) => return self.leave(task, cause),
                Flow::Sleeps(ns, cause) => {
                    self.wake_at(self.now_ns + ns, task);
                    return self.leave(task, cause);
                }
            };
            self.counts.events += 1;
            let (extra_ns, spun_ns) = (self.extra_ns, self.spun_ns);
            (self.extra_ns, self.spun_ns) = (0, 0);
            let spins_from_ns = self.now_ns + ns + extra_ns;
            let to_ns = spins_from_ns + spun_ns;
            let busy = Busy { cause, from_ns: self.now_ns, spins_from_ns, to_ns };
            if to_ns >= self.events.next_ns() || self.checks {
                self.tasks[task].busy = Some(busy);
                self.run_at(to_ns, task);
                return;
            }
            self.now_ns = to_ns;
            self.was_busy(task, busy);
        }
    }

    /// The slice of `task` is over: it begins another, or lets the next one run.
    fn is_preempted(&mut self, task: TaskId) -> bool {
        let Some(next) = self.cpus.yield_to_next(task) else {
            self.tasks[task].slice_ends_ns = self.now_ns + self.job.costs.slice_ns;
            return false;
        };
        let cpu = self.tasks[task].cpu.take().expect("who runs has a CPU");
        self.tasks[task].waits = Some((Cause::RunQueue, self.now_ns));
        self.run_on(cpu, next, self.job.costs.switch_ns);
        true
    }

    /// `task` gives its CPU up to wait for `cause`.
    fn leave(&mut self, task: TaskId, cause: Cause) {
        self.counts.events += 1;
        (self.extra_ns, self.spun_ns) = (0, 0);
        self.tasks[task].waits = Some((cause, self.now_ns));
        let cpu = self.tasks[task].cpu.take().expect("who runs has a CPU");
        match self.cpus.leave(cpu) {
            Some(next) => self.run_on(cpu, next, self.job.costs.switch_ns),
            None if self.job.costs.in_turn => {
                let turn = self.turns.idles(cpu, self.now_ns);
                self.begin_turn(turn);
            }
            None => {}
        }
    }

    /// `task` can run.
    pub fn wake(&mut self, task: TaskId) {
        self.end_wait(task);
        match self.cpus.ask(task) {
            Some(cpu) => self.run_on(cpu, task, self.job.costs.wake_latency_ns),
            None => self.tasks[task].waits = Some((Cause::RunQueue, self.now_ns)),
        }
    }

    /// `task` has `cpu`, and runs after so long.
    fn run_on(&mut self, cpu: usize, task: TaskId, after_ns: u64) {
        self.end_wait(task);
        let at_ns = self.now_ns + after_ns;
        self.tasks[task].cpu = Some(cpu);
        self.tasks[task].slice_ends_ns = at_ns + self.job.costs.slice_ns;
        let (cause, from_ns) = (Cause::RunQueue, self.now_ns);
        self.tasks[task].busy = Some(Busy { cause, from_ns, spins_from_ns: at_ns, to_ns: at_ns });
        self.run_at(at_ns, task);
    }

    /// What `task` did on its CPU is over, or counts until now.
    pub fn end_busy(&mut self, task: TaskId) {
        if let Some(busy) = self.tasks[task].busy.take() {
            self.was_busy(task, busy);
        }
    }

    fn was_busy(&mut self, task: TaskId, busy: Busy) {
        let [spins_from_ns, to_ns] = [busy.spins_from_ns, busy.to_ns].map(|ns| ns.min(self.now_ns));
        self.spent(task, busy.cause, busy.from_ns, spins_from_ns - busy.from_ns);
        self.spent(task, Cause::ListLock, spins_from_ns, to_ns - spins_from_ns);
    }

    /// What `task` waited for is over, or counts until now.
    pub fn end_wait(&mut self, task: TaskId) {
        if let Some((cause, since_ns)) = self.tasks[task].waits.take() {
            self.spent(task, cause, since_ns, self.now_ns - since_ns);
        }
    }

    /// `ns` from `from_ns` on went into `cause`.
    fn spent(&mut self, task: TaskId, cause: Cause, from_ns: u64, ns: u64) {
        if self.tasks[task].kind == Kind::Reader {
            self.waits.add(cause, from_ns, ns);
        }
    }

    /// Lets the other CPUs answer.
    fn spin(&mut self, task: TaskId) {
        let cpu = self.tasks[task].cpu.expect("who runs has a CPU");
        let turn = self.turns.spins(cpu, task, self.now_ns);
        self.begin_turn(turn);
    }

    /// The next event of CPUs that run in turn.
    pub fn begin_turn(&mut self, turn: Option<Turn>) {
        if let Some(Turn { turn, done_ns }) = turn {
            self.live += 1;
            self.events.add(done_ns, Event::Turn(turn));
        }
    }

    /// `task` goes on at `at_ns`.
    fn run_at(&mut self, at_ns: u64, task: TaskId) {
        if self.job.costs.in_turn {
            let cpu = self.tasks[task].cpu.expect("who runs has a CPU");
            let turn = self.turns.needs(cpu, task, at_ns - self.now_ns, self.now_ns);
            return self.begin_turn(turn);
        }
        self.live += 1;
        self.events.add(at_ns, Event::Run(task));
    }

    /// `task` is woken at `at_ns`.
    pub fn wake_at(&mut self, at_ns: u64, task: TaskId) {
        self.live += 1;
        self.events.add(at_ns, Event::Wake(task));
    }
}
