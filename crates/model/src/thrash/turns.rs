//! CPUs that share one stream of instructions, as those of an emulator in one thread.

use crate::mm::mmap_lock::TaskId;

/// Between two ticks of a CPU.
pub const TICK_NS: u64 = 4_000_000;

/// CPUs of which one runs at a time.
///
/// A CPU has the stream until a timer interrupts it, it is idle, or it spins: then the next one in
/// order has it. A timer gives it to the first CPU that is not idle. A CPU that waits for the
/// others to answer (TLB flush) spins until each of them has had the stream.
///
/// Stands for the virtual CPUs of QEMU 7.2 in one thread that counts instructions. Test:
/// `tests/thrash_grid.rs`.
#[derive(Clone, Debug)]
pub struct Turns {
    cpus: Vec<Cpu>,
    holder: Option<usize>,
    since_ns: u64,
    /// How often the stream has changed hands, or its holder what it does.
    turn: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    task: Option<TaskId>,
    /// Time of the stream that it needs for what it does.
    needs_ns: u64,
    /// When it had the stream last, in turns.
    had: u64,
    /// It waits until all others have had the stream behind this turn.
    spins: Option<u64>,
}

/// Who has the stream next: for so long unless a timer comes before, and what tells this turn from
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The number of the turn.
    pub turn: u64,
    /// When the CPU is done with what it does.
    pub done_ns: u64,
}

impl Turns {
    /// All idle.
    pub fn new(cpus: usize) -> Turns {
        Turns { cpus: vec![Cpu::default(); cpus], holder: None, since_ns: 0, turn: 0 }
    }

    /// `cpu` does something for `task` that takes `needs_ns` of the stream.
    pub fn needs(&mut self, cpu: usize, task: TaskId, needs_ns: u64, now_ns: u64) -> Option<Turn> {
        let of = &mut self.cpus[cpu];
        (of.task, of.needs_ns) = (Some(task), needs_ns);
        match self.holder {
            None => Some(self.give(cpu, now_ns)),
            Some(holder) if holder == cpu => Some(self.give(cpu, now_ns)),
            Some(_) => None,
        }
    }

    /// `cpu` has nothing to do.
    pub fn idles(&mut self, cpu: usize, now_ns: u64) -> Option<Turn> {
        self.cpus[cpu].task = None;
        if self.holder != Some(cpu) {
            return None;
        }
        self.pass(cpu + 1, now_ns)
    }

    /// `cpu`, which has the stream, waits for the answers of all others that are not idle.
    pub fn spins(&mut self, cpu: usize, task: TaskId, now_ns: u64) -> Option<Turn> {
        let of = &mut self.cpus[cpu];
        (of.task, of.needs_ns, of.spins) = (Some(task), 0, Some(self.turn));
        self.pass(cpu + 1, now_ns)
    }

    /// A timer interrupts.
    pub fn interrupt(&mut self, now_ns: u64) -> Option<Turn> {
        let holder = self.holder?;
        let of = &mut self.cpus[holder];
        of.needs_ns = of.needs_ns.saturating_sub(now_ns - self.since_ns);
        self.pass(0, now_ns)
    }

    /// Whose step is done in this turn; `None` where the stream has changed hands since.
    pub fn done(&self, turn: u64) -> Option<TaskId> {
        let holder = self.holder.filter(|_| turn == self.turn)?;
        self.cpus[holder].task
    }

    /// Whether `cpu` has something to do.
    pub fn is_busy(&self, cpu: usize) -> bool {
        self.cpus[cpu].task.is_some()
    }

    /// The stream goes to the first from `from` that can use it. Who spins has it long enough to
    /// answer.
    fn pass(&mut self, from: usize, now_ns: u64) -> Option<Turn> {
        let count = self.cpus.len();
        self.holder = None;
        for cpu in (from..from + 2 * count).map(|cpu| cpu % count) {
            if self.cpus[cpu].task.is_none() {
                continue;
            }
            if self.is_answered(cpu) {
                return Some(self.give(cpu, now_ns));
            }
            self.turn += 1;
            self.cpus[cpu].had = self.turn;
        }
        None
    }

    fn is_answered(&self, cpu: usize) -> bool {
        let Some(since) = self.cpus[cpu].spins else { return true };
        let others = self.cpus.iter().enumerate().filter(|(other, _)| *other != cpu);
        others.into_iter().all(|(_, of)| of.task.is_none() || of.had > since)
    }

    fn give(&mut self, cpu: usize, now_ns: u64) -> Turn {
        self.turn += 1;
        (self.holder, self.since_ns) = (Some(cpu), now_ns);
        let of = &mut self.cpus[cpu];
        (of.had, of.spins) = (self.turn, None);
        Turn { turn: self.turn, done_ns: now_ns + of.needs_ns }
    }
}
