//! CPUs emulated by a single host thread.

use super::fair::TICK_NS;

/// Virtual CPUs that run one at a time.
///
/// A CPU runs until a timer interrupt, until it is idle, or until it spins; then the next one in
/// order runs. After a timer interrupt that is the first CPU with work. A CPU that waits for
/// acknowledgements of other CPUs (TLB flush) spins until each of them has run.
///
/// Stands for the virtual CPUs of QEMU 7.2 in one thread that counts instructions. Test:
/// `tests/thrash_grid.rs`.
#[derive(Debug)]
pub(super) struct EmulatedCpus {
    cpus: Vec<EmulatedCpu>,
    /// The CPU running, and when it stops.
    holder: usize,
    free_ns: u64,
    /// Time of the next timer interrupt.
    until_ns: u64,
    /// The first candidate when the CPU running stops.
    next_candidate: usize,
    /// Number of switches between CPUs.
    turn: u64,
    /// Cost of a context switch.
    switch_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct EmulatedCpu {
    /// When its thread continues, and which one.
    ready: Option<(u64, usize)>,
    /// The turn in which it last ran.
    last_turn: u64,
    /// It spins until all other CPUs have run after this turn.
    spinning_since: Option<u64>,
}

impl EmulatedCpus {
    /// All CPUs are idle.
    pub(super) fn new(cpus: usize, switch_ns: u64) -> EmulatedCpus {
        let cpus = vec![EmulatedCpu::default(); cpus];
        let (holder, free_ns, first, turn) = (0, 0, 0, 0);
        EmulatedCpus {
            cpus,
            holder,
            free_ns,
            until_ns: TICK_NS,
            next_candidate: first,
            turn,
            switch_ns,
        }
    }

    /// `thread` continues on `cpu` at `now_ns`, once that CPU runs.
    pub(super) fn add(&mut self, cpu: usize, now_ns: u64, thread: usize) {
        self.cpus[cpu].ready = Some((now_ns, thread));
    }

    /// The CPU running waits for acknowledgements of the others.
    pub(super) fn spin(&mut self) {
        self.cpus[self.holder].spinning_since = Some(self.turn);
        self.next_candidate = self.holder + 1;
    }

    /// The CPU running has executed until `now_ns`.
    pub(super) fn record_progress(&mut self, now_ns: u64) {
        self.free_ns = now_ns;
        if self.take_timer(now_ns) {
            self.next_candidate = self.holder + 1;
        }
    }

    /// Whether a timer interrupt occurred by `now_ns`.
    fn take_timer(&mut self, now_ns: u64) -> bool {
        let has_come = now_ns >= self.until_ns;
        if has_come {
            self.until_ns = self.next_timer_ns(now_ns);
        }
        has_come
    }

    /// How long the CPU running may continue, if others have work.
    pub(super) fn until_ns(&self) -> u64 {
        if self.cpus.iter().any(|cpu| cpu.ready.is_some()) { self.until_ns } else { u64::MAX }
    }

    /// When the next thread continues.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let ready = self.cpus.iter().filter_map(|cpu| cpu.ready);
        Some(ready.map(|(now_ns, _)| now_ns).min()?.max(self.free_ns))
    }

    /// The next thread, and its time.
    pub(super) fn next_thread(&mut self) -> Option<(u64, usize)> {
        let now_ns = self.next_ns()?;
        let next = self.next_cpu(now_ns);
        let Some((ready_ns, thread)) = self.cpus[next].ready.take() else {
            unreachable!("it is ready")
        };
        let now_ns = now_ns.max(ready_ns);
        self.turn += u64::from(next != self.holder || self.cpus[next].spinning_since.is_some());
        self.take_timer(now_ns);
        (self.holder, self.next_candidate) = (next, next);
        let cpu = &mut self.cpus[next];
        (cpu.last_turn, cpu.spinning_since) = (self.turn, None);
        Some((now_ns, thread))
    }

    /// The CPU that runs at `now_ns`. A CPU that spins runs just long enough to acknowledge.
    fn next_cpu(&mut self, now_ns: u64) -> usize {
        let count = self.cpus.len();
        for cpu in (self.next_candidate..self.next_candidate + 2 * count).map(|cpu| cpu % count) {
            let latest_ns = now_ns + if cpu == self.holder { self.switch_ns } else { 0 };
            if self.cpus[cpu].ready.is_none_or(|(ready_ns, _)| ready_ns > latest_ns) {
                continue;
            }
            if self.is_acknowledged(cpu) {
                return cpu;
            }
            self.turn += 1;
            self.cpus[cpu].last_turn = self.turn;
        }
        let ready = |cpu: &usize| self.cpus[*cpu].ready.map_or(u64::MAX, |(ready_ns, _)| ready_ns);
        (0..count).min_by_key(ready).unwrap_or(0)
    }

    fn is_acknowledged(&self, cpu: usize) -> bool {
        let Some(since) = self.cpus[cpu].spinning_since else { return true };
        let mut others = self.cpus.iter().enumerate().filter(|(other, _)| *other != cpu);
        others.all(|(_, state)| state.ready.is_none() || state.last_turn > since)
    }

    /// Next timer interrupt after `now_ns`. Each CPU has one per tick, staggered evenly.
    fn next_timer_ns(&self, now_ns: u64) -> u64 {
        let apart_ns = TICK_NS / 2 / self.cpus.len() as u64;
        let next_ns = |cpu: u64| {
            let offset_ns = apart_ns * cpu;
            (now_ns + TICK_NS - offset_ns) / TICK_NS * TICK_NS + offset_ns
        };
        let next = (0..self.cpus.len() as u64).map(next_ns).filter(|ns| *ns > now_ns);
        next.min().unwrap_or(now_ns + TICK_NS)
    }
}
