//! The way that tells of each fault: perf events of threads, which their children inherit.

use std::collections::HashSet;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::kernel_faults::KernelFaults;
use super::refusal;
use crate::clock::now_ns;
use crate::perf::{
    self, Attributes, Flag, Kind, NOTHING, OWN_THREAD, Purpose, Record, RingPlan, Rings,
};
use crate::{Error, Event, FaultKind, MappedRange, What, process};

/// What happens, by its number in `linux/perf_event.h`.
const MINOR_FAULTS: u64 = 5;
const MAJOR_FAULTS: u64 = 6;

/// A sample has the address, after the thread and the time.
const SAMPLE_ADDRESS: u64 = 1 << 3;

/// Of mappings and processes the first record wakes who waits. Of faults many do: to wake takes a
/// virtual machine tens of microseconds, of which the thread that faults pays the half.
const PURPOSE: Purpose = Purpose {
    rings: &[
        RingPlan { of_root: 256 << 10, of_user: 64 << 10, wakes_after: 1 },
        RingPlan { of_root: 512 << 10, of_user: 128 << 10, wakes_after: 16 * FAULT_BYTES },
        RingPlan { of_root: 1 << 20, of_user: 256 << 10, wakes_after: 1024 * FAULT_BYTES },
    ],
    tells_faults_once: true,
};

/// The ring of those that has the minor faults.
const MINOR_RING: u8 = 2;

/// Bytes of a fault's record.
const FAULT_BYTES: u32 = 32;

/// Few faults wake nobody, so that they are looked for this often while there are faults.
const BUSY_PERIOD: Duration = Duration::from_millis(1);
const IDLE_PERIOD: Duration = Duration::from_millis(10);

/// There are faults where the last was less than this ago.
const BUSY_TIME: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct PerfEvents {
    rings: Rings,
    events: Vec<OwnedFd>,
    tells_faults: bool,
    /// Processes that were told to begin, or were added.
    known: HashSet<u32>,
    /// What is told before all that is in the rings.
    first: Vec<Event>,
    last_fault: Option<Instant>,
    lost: Lost,
    /// Where the kernel does not tell of faults that it takes itself.
    kernel_faults: Option<KernelFaults>,
}

/// Lost records that were told.
#[derive(Debug, Default)]
struct Lost {
    told: u64,
    /// As many of them as the kernel has not told of yet, and will.
    early: u64,
}

impl PerfEvents {
    pub fn of_processes() -> Result<PerfEvents, Error> {
        refusal::raise_open_files();
        let rings = Rings::open(PURPOSE).map_err(refusal::of_events)?;
        Ok(PerfEvents {
            rings,
            events: Vec::new(),
            tells_faults: true,
            known: HashSet::new(),
            first: Vec::new(),
            last_fault: None,
            lost: Lost::default(),
            kernel_faults: (!tells_kernel_faults()).then(KernelFaults::default),
        })
    }

    pub fn watch(&mut self, pid: u32, range: &MappedRange) {
        if let Some(kernel_faults) = &mut self.kernel_faults {
            kernel_faults.watch(pid, range);
        }
    }

    pub fn unwatch(&mut self, pid: u32, range: &MappedRange) {
        if let Some(kernel_faults) = &mut self.kernel_faults {
            kernel_faults.unwatch(pid, range);
        }
    }

    pub fn of_children() -> Result<PerfEvents, Error> {
        PerfEvents::of_processes()?.with_children()
    }

    pub fn of_children_without_faults() -> Result<PerfEvents, Error> {
        PerfEvents { tells_faults: false, ..PerfEvents::of_processes()? }.with_children()
    }

    fn with_children(self) -> Result<PerfEvents, Error> {
        let mut opened = self;
        let flags = [Flag::Disabled, Flag::EnableOnExec];
        opened.follow(OWN_THREAD, &flags).map_err(refusal::of_events)?;
        Ok(opened)
    }

    pub fn add(&mut self, pid: u32) -> Result<(), Error> {
        // Its events are inherited. Others would stay open, and tell all of it twice.
        if self.known.contains(&pid) {
            return Ok(());
        }
        let refused = |error| refusal::of_process(pid, error);
        perf::each_thread(pid, |tid| self.follow(tid, &[]), refused)?;
        self.known.insert(pid);
        let at_ns = now_ns();
        let told = |range| Event { at_ns, pid, tid: pid, what: What::Map(range) };
        self.first.extend(process::maps(pid)?.into_iter().map(told));
        Ok(())
    }

    /// Opens the events of a thread on all CPUs.
    fn follow(&mut self, tid: u32, flags: &[Flag]) -> io::Result<()> {
        let whose: &[Flag] = match self.kernel_faults {
            Some(_) => &[Flag::ExcludeKernel],
            None => &[],
        };
        let inherited = |config| {
            Attributes::new(Attributes::SOFTWARE, config)
                .with(&[Flag::Inherit])
                .with(whose)
                .with(flags)
                .waking_after(1)
        };
        let tells =
            [Flag::Mmap, Flag::MmapData, Flag::Mmap2, Flag::Comm, Flag::CommExec, Flag::Task];
        let faults = |config| inherited(config).sampling(SAMPLE_ADDRESS);
        let kinds = [inherited(NOTHING).with(&tells), faults(MAJOR_FAULTS), faults(MINOR_FAULTS)];
        let told = if self.tells_faults { kinds.len() } else { 1 };
        let mut opened = Vec::new();
        for (cpu, targets) in self.rings.targets() {
            for (attributes, target) in kinds.iter().zip(targets).take(told) {
                opened.push(perf::open_into(target, attributes, tid, cpu)?);
            }
        }
        self.events.append(&mut opened);
        Ok(())
    }

    pub fn wait(&self, timeout: Duration) -> Result<bool, Error> {
        let begin = Instant::now();
        loop {
            let may_have_lost = self.rings.may_have_lost();
            if !self.first.is_empty() || self.rings.has_records() || may_have_lost {
                return Ok(true);
            }
            let rest = self.kernel_faults.as_ref().and_then(KernelFaults::rest);
            if rest.is_some_and(|rest| rest.is_zero()) {
                return Ok(true);
            }
            let left = timeout.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let left = rest.map_or(left, |rest| rest.min(left));
            let is_busy = self.last_fault.is_some_and(|last| last.elapsed() < BUSY_TIME);
            let period = left.min(if is_busy { BUSY_PERIOD } else { IDLE_PERIOD });
            if !self.rings.wait(period).map_err(refusal::of_events)? {
                std::thread::sleep(period.min(BUSY_PERIOD));
            }
        }
    }

    pub fn read(&mut self, take: &mut dyn FnMut(Event)) {
        let Some(mut kernel_faults) = self.kernel_faults.take() else {
            return self.read_rings(take);
        };
        self.read_rings(&mut |event| {
            kernel_faults.hear(&event);
            take(event);
        });
        kernel_faults.look(take);
        self.kernel_faults = Some(kernel_faults);
    }

    fn read_rings(&mut self, take: &mut dyn FnMut(Event)) {
        let until_ns = now_ns();
        self.first.drain(..).for_each(&mut *take);
        let (known, lost) = (&mut self.known, &mut self.lost);
        let (mut has_faults, mut has_records) = (false, false);
        self.rings.read(until_ns, |record, ring| {
            has_records = true;
            if record.kind == Kind::Sample {
                has_faults = true;
                take(fault(&record, ring == MINOR_RING));
            } else if let Some(event) = record.event().and_then(|event| lost.told_now(event)) {
                tell(known, event, take);
            }
        });
        if has_faults {
            self.last_fault = Some(Instant::now());
        }
        if !has_records && self.rings.may_have_lost() {
            self.rings.forget_loss();
            let all = self.events.iter().map(perf::lost_records).sum();
            if let Some(records) = self.lost.found(all) {
                let pid = std::process::id();
                take(Event { at_ns: until_ns, pid, tid: pid, what: What::Lost { records } });
            }
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.rings.fd()
    }
}

impl Lost {
    /// What is still to be told of an event, less what was told before.
    fn told_now(&mut self, event: Event) -> Option<Event> {
        let What::Lost { records } = event.what else { return Some(event) };
        let new = records.saturating_sub(self.early);
        self.early = self.early.saturating_sub(records);
        self.told += new;
        (new > 0).then_some(Event { what: What::Lost { records: new }, ..event })
    }

    /// What is to be told where so many were lost in all.
    fn found(&mut self, all: u64) -> Option<u64> {
        let new = all.checked_sub(self.told).filter(|new| *new > 0)?;
        self.early += new;
        self.told = all;
        Some(new)
    }
}

#[inline]
fn fault(sample: &Record<'_>, is_minor: bool) -> Event {
    let origin = sample.origin();
    let kind = if is_minor { FaultKind::Minor } else { FaultKind::Major };
    let what = What::Fault { address: sample.address().unwrap_or(0), kind };
    Event { at_ns: origin.at_ns, pid: origin.pid, tid: origin.tid, what }
}

/// Whether this user is told of faults that the kernel takes inside of system calls.
fn tells_kernel_faults() -> bool {
    perf::open(&Attributes::new(Attributes::SOFTWARE, NOTHING), OWN_THREAD, 0).is_ok()
}

/// Tells an event that is no fault. The caller's own children are not told to begin, as their
/// events are off until exec: that is told before it here.
fn tell(known: &mut HashSet<u32>, event: Event, take: &mut dyn FnMut(Event)) {
    match event.what {
        What::Begin { .. } => {
            known.insert(event.pid);
        }
        What::Exec => {
            if known.insert(event.pid) {
                let parent = std::process::id();
                take(Event { what: What::Begin { parent }, ..event });
            }
        }
        // Its other threads may go on; what would tell a second beginning is an exec by one of
        // those.
        What::End if event.pid == event.tid => {
            known.remove(&event.pid);
        }
        What::Map(_) | What::Fault { .. } | What::End | What::Lost { .. } => {}
    }
    take(event);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_records_are_told_once() {
        let told = |lost: &mut Lost, records| {
            let what = What::Lost { records };
            lost.told_now(Event { at_ns: 0, pid: 1, tid: 1, what }).map(|event| event.what)
        };
        let mut lost = Lost::default();
        assert_eq!(told(&mut lost, 5), Some(What::Lost { records: 5 }));
        assert_eq!(lost.found(5), None);
        assert_eq!(lost.found(12), Some(7));
        // The kernel tells late, at once or in parts, and with what came after.
        assert_eq!(told(&mut lost, 3), None);
        assert_eq!(told(&mut lost, 6), Some(What::Lost { records: 2 }));
        assert_eq!((lost.found(14), lost.found(15)), (None, Some(1)));
    }
}
