//! CPUs that share one stream of instructions, as those of an emulator in one thread.

use super::fair::TICK_NS;

/// CPUs of which one runs at a time.
///
/// A CPU has the stream until a timer interrupts it, it has nothing to do, or it spins: then the
/// next one in order has it. A timer gives it to the first CPU that has something to do. A CPU that
/// waits for the others to answer (TLB flush) spins until each of them has had the stream.
///
/// Stands for the virtual CPUs of QEMU 7.2 in one thread that counts instructions. Test:
/// `tests/thrash_grid.rs`.
#[derive(Debug)]
pub(super) struct Stream {
    cpus: Vec<Cpu>,
    /// Who has it, and when it is free again.
    holder: usize,
    free_ns: u64,
    /// When a timer interrupts next.
    until_ns: u64,
    /// Who is asked first when it is free.
    first: usize,
    /// How often it has changed hands.
    turn: u64,
    /// What it takes a CPU to change to another thread.
    switch_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// When its thread goes on, and which.
    ready: Option<(u64, usize)>,
    /// When it had the stream last, in turns.
    had: u64,
    /// It waits until all others have had the stream after this turn.
    spins: Option<u64>,
}

impl Stream {
    /// All CPUs idle.
    pub(super) fn new(cpus: usize, switch_ns: u64) -> Stream {
        let cpus = vec![Cpu::default(); cpus];
        let (holder, free_ns, first, turn) = (0, 0, 0, 0);
        Stream { cpus, holder, free_ns, until_ns: TICK_NS, first, turn, switch_ns }
    }

    /// `thread` goes on, on `cpu` and at `now_ns`, when that has the stream.
    pub(super) fn add(&mut self, cpu: usize, now_ns: u64, thread: usize) {
        self.cpus[cpu].ready = Some((now_ns, thread));
    }

    /// The CPU that has the stream waits for the answers of the others.
    pub(super) fn spins(&mut self) {
        self.cpus[self.holder].spins = Some(self.turn);
        self.first = self.holder + 1;
    }

    /// The CPU that has the stream has done something until `now_ns`.
    pub(super) fn went_on(&mut self, now_ns: u64) {
        self.free_ns = now_ns;
        if self.interrupts(now_ns) {
            self.first = self.holder + 1;
        }
    }

    /// Whether a timer has interrupted by `now_ns`.
    fn interrupts(&mut self, now_ns: u64) -> bool {
        let has_come = now_ns >= self.until_ns;
        if has_come {
            self.until_ns = self.interrupts_ns(now_ns);
        }
        has_come
    }

    /// Until when the CPU that has the stream keeps it, where others have something to do.
    pub(super) fn until_ns(&self) -> u64 {
        if self.cpus.iter().any(|cpu| cpu.ready.is_some()) { self.until_ns } else { u64::MAX }
    }

    /// When the next thread goes on.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let ready = self.cpus.iter().filter_map(|cpu| cpu.ready);
        Some(ready.map(|(now_ns, _)| now_ns).min()?.max(self.free_ns))
    }

    /// The next thread, and its time.
    pub(super) fn take(&mut self) -> Option<(u64, usize)> {
        let now_ns = self.next_ns()?;
        let next = self.next_cpu(now_ns);
        let Some((ready_ns, thread)) = self.cpus[next].ready.take() else {
            unreachable!("it is ready")
        };
        let now_ns = now_ns.max(ready_ns);
        self.turn += u64::from(next != self.holder || self.cpus[next].spins.is_some());
        self.interrupts(now_ns);
        (self.holder, self.first) = (next, next);
        let cpu = &mut self.cpus[next];
        (cpu.had, cpu.spins) = (self.turn, None);
        Some((now_ns, thread))
    }

    /// The CPU that has the stream at `now_ns`. Who spins has it long enough to answer.
    fn next_cpu(&mut self, now_ns: u64) -> usize {
        let count = self.cpus.len();
        for cpu in (self.first..self.first + 2 * count).map(|cpu| cpu % count) {
            let latest_ns = now_ns + if cpu == self.holder { self.switch_ns } else { 0 };
            if self.cpus[cpu].ready.is_none_or(|(ready_ns, _)| ready_ns > latest_ns) {
                continue;
            }
            if self.is_answered(cpu) {
                return cpu;
            }
            self.turn += 1;
            self.cpus[cpu].had = self.turn;
        }
        let ready = |cpu: &usize| self.cpus[*cpu].ready.map_or(u64::MAX, |(ready_ns, _)| ready_ns);
        (0..count).min_by_key(ready).unwrap_or(0)
    }

    fn is_answered(&self, cpu: usize) -> bool {
        let Some(since) = self.cpus[cpu].spins else { return true };
        let mut others = self.cpus.iter().enumerate().filter(|(other, _)| *other != cpu);
        others.all(|(_, of)| of.ready.is_none() || of.had > since)
    }

    /// When a timer interrupts next after `now_ns`: that of each CPU does so in each tick, one a
    /// little later than the other.
    fn interrupts_ns(&self, now_ns: u64) -> u64 {
        let apart_ns = TICK_NS / 2 / self.cpus.len() as u64;
        let next_ns = |cpu: u64| {
            let offset_ns = apart_ns * cpu;
            (now_ns + TICK_NS - offset_ns) / TICK_NS * TICK_NS + offset_ns
        };
        let next = (0..self.cpus.len() as u64).map(next_ns).filter(|ns| *ns > now_ns);
        next.min().unwrap_or(now_ns + TICK_NS)
    }
}
