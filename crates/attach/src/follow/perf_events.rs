//! Follows processes by per-thread perf events, which children inherit (`inherit` of
//! perf_event_attr).

use std::collections::HashSet;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::kernel_faults::KernelFaultDetector;
use super::{events_error, process_error, raise_open_file_limit};
use crate::now_ns;
use crate::perf::{
    self, Attributes, COUNT_SW_DUMMY, Flag, OWN_THREAD, PerfRecord, RecordKind, RingConfig,
    RingSpec, Rings,
};
use crate::{Error, Event, EventKind, FaultKind, MappedRange, process};

/// `PERF_COUNT_SW_PAGE_FAULTS_MIN` and `_MAJ` of `linux/perf_event.h`.
const MINOR_FAULTS: u64 = 5;
const MAJOR_FAULTS: u64 = 6;

/// `PERF_SAMPLE_ADDR`: samples hold the address, after TID and time.
const SAMPLE_ADDRESS: u64 = 1 << 3;

/// Any mapping or process record wakes the reader; faults do so in batches. On a virtual machine a
/// wakeup takes tens of microseconds, half of them on the faulting thread.
const RING_CONFIG: RingConfig = RingConfig {
    rings: &[
        RingSpec { root_bytes: 256 << 10, user_bytes: 64 << 10, wakeup_bytes: 1 },
        RingSpec { root_bytes: 512 << 10, user_bytes: 128 << 10, wakeup_bytes: 256 * FAULT_BYTES },
        RingSpec { root_bytes: 1 << 20, user_bytes: 256 << 10, wakeup_bytes: 1024 * FAULT_BYTES },
    ],
    dedups_faults: true,
};

/// Index in [`RING_CONFIG`] of the ring of minor faults.
const MINOR_RING: u8 = 2;

/// Size of a fault sample.
const FAULT_BYTES: u32 = 32;

/// Intervals between checks of the rings with and without recent faults, as a few faults do not
/// reach the wakeup watermark.
const BUSY_INTERVAL: Duration = Duration::from_millis(1);
const IDLE_INTERVAL: Duration = Duration::from_millis(10);

/// Time after the last fault during which the busy interval applies.
const BUSY_TIME: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct PerfFollower {
    rings: Rings,
    events: Vec<OwnedFd>,
    has_faults: bool,
    /// Processes reported by a fork or exec event, or added by the caller.
    processes: HashSet<u32>,
    /// Events to deliver before the contents of the rings.
    initial_events: Vec<Event>,
    last_fault: Option<Instant>,
    lost: LostRecords,
    /// Substitute for fault events inside system calls; `None` if perf reports those.
    kernel_faults: Option<KernelFaultDetector>,
}

/// Lost records that were reported.
#[derive(Debug, Default)]
struct LostRecords {
    reported: u64,
    /// Of these, records counted by read(2) for which the kernel's PERF_RECORD_LOST is yet to come.
    not_reported_yet: u64,
}

impl PerfFollower {
    pub fn for_processes() -> Result<PerfFollower, Error> {
        raise_open_file_limit();
        let rings = Rings::open(RING_CONFIG).map_err(events_error)?;
        Ok(PerfFollower {
            rings,
            events: Vec::new(),
            has_faults: true,
            processes: HashSet::new(),
            initial_events: Vec::new(),
            last_fault: None,
            lost: LostRecords::default(),
            kernel_faults: (!reports_kernel_faults()).then(KernelFaultDetector::default),
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

    pub fn for_children() -> Result<PerfFollower, Error> {
        PerfFollower::for_processes()?.with_children()
    }

    pub fn for_children_without_faults() -> Result<PerfFollower, Error> {
        PerfFollower { has_faults: false, ..PerfFollower::for_processes()? }.with_children()
    }

    fn with_children(self) -> Result<PerfFollower, Error> {
        let mut opened = self;
        let flags = [Flag::Disabled, Flag::EnableOnExec];
        opened.follow(OWN_THREAD, &flags).map_err(events_error)?;
        Ok(opened)
    }

    pub fn add(&mut self, pid: u32) -> Result<(), Error> {
        // Its events are inherited; opening more would report everything twice.
        if self.processes.contains(&pid) {
            return Ok(());
        }
        let refused = |error| process_error(pid, error);
        perf::each_thread(pid, |tid| self.follow(tid, &[]), refused)?;
        self.processes.insert(pid);
        let at_ns = now_ns();
        let map_event = |range| Event { at_ns, pid, tid: pid, kind: EventKind::Map(range) };
        self.initial_events.extend(process::maps(pid)?.into_iter().map(map_event));
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
                .with_flags(&[Flag::Inherit])
                .with_flags(whose)
                .with_flags(flags)
                .with_wakeup_bytes(1)
        };
        let tells =
            [Flag::Mmap, Flag::MmapData, Flag::Mmap2, Flag::Comm, Flag::CommExec, Flag::Task];
        let faults = |config| inherited(config).with_sample(SAMPLE_ADDRESS);
        let kinds = [
            inherited(COUNT_SW_DUMMY).with_flags(&tells),
            faults(MAJOR_FAULTS),
            faults(MINOR_FAULTS),
        ];
        let reported = if self.has_faults { kinds.len() } else { 1 };
        let mut opened = Vec::new();
        for (cpu, targets) in self.rings.targets() {
            for (attributes, target) in kinds.iter().zip(targets).take(reported) {
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
            if !self.initial_events.is_empty() || self.rings.has_records() || may_have_lost {
                return Ok(true);
            }
            let rest = self.kernel_faults.as_ref().and_then(KernelFaultDetector::time_to_next_poll);
            if rest.is_some_and(|rest| rest.is_zero()) {
                return Ok(true);
            }
            let left = timeout.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let left = rest.map_or(left, |rest| rest.min(left));
            let is_busy = self.last_fault.is_some_and(|last| last.elapsed() < BUSY_TIME);
            let period = left.min(if is_busy { BUSY_INTERVAL } else { IDLE_INTERVAL });
            if !self.rings.wait(period).map_err(events_error)? {
                std::thread::sleep(period.min(BUSY_INTERVAL));
            }
        }
    }

    pub fn read_events(&mut self, take: &mut dyn FnMut(Event)) {
        let Some(mut kernel_faults) = self.kernel_faults.take() else {
            return self.read_rings(take);
        };
        self.read_rings(&mut |event| {
            kernel_faults.on_event(&event);
            take(event);
        });
        kernel_faults.poll(take);
        self.kernel_faults = Some(kernel_faults);
    }

    fn read_rings(&mut self, take: &mut dyn FnMut(Event)) {
        let until_ns = now_ns();
        self.initial_events.drain(..).for_each(&mut *take);
        let (known, lost) = (&mut self.processes, &mut self.lost);
        let (mut has_faults, mut has_records) = (false, false);
        self.rings.read(until_ns, |record, ring| {
            has_records = true;
            if record.kind == RecordKind::Sample {
                has_faults = true;
                take(fault_event(&record, ring == MINOR_RING));
            } else if let Some(event) =
                record.event().and_then(|event| lost.without_reported(event))
            {
                emit_process_event(known, event, take);
            }
        });
        if has_faults {
            self.last_fault = Some(Instant::now());
        }
        if !has_records && self.rings.may_have_lost() {
            self.rings.clear_may_have_lost();
            let all = self.events.iter().map(perf::lost_records).sum();
            if let Some(records) = self.lost.add_total(all) {
                let pid = std::process::id();
                take(Event { at_ns: until_ns, pid, tid: pid, kind: EventKind::Lost { records } });
            }
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.rings.fd()
    }
}

impl LostRecords {
    /// Reduces a lost event by the number already reported; `None` if nothing remains.
    fn without_reported(&mut self, event: Event) -> Option<Event> {
        let EventKind::Lost { records } = event.kind else { return Some(event) };
        let new = records.saturating_sub(self.not_reported_yet);
        self.not_reported_yet = self.not_reported_yet.saturating_sub(records);
        self.reported += new;
        (new > 0).then_some(Event { kind: EventKind::Lost { records: new }, ..event })
    }

    /// Records the total `all` of lost records; returns how many are not reported yet, if any.
    fn add_total(&mut self, all: u64) -> Option<u64> {
        let new = all.checked_sub(self.reported).filter(|new| *new > 0)?;
        self.not_reported_yet += new;
        self.reported = all;
        Some(new)
    }
}

#[inline]
fn fault_event(sample: &PerfRecord<'_>, is_minor: bool) -> Event {
    let origin = sample.origin();
    let kind = if is_minor { FaultKind::Minor } else { FaultKind::Major };
    let fault = EventKind::Fault { address: sample.address().unwrap_or(0), kind };
    Event { at_ns: origin.at_ns, pid: origin.pid, tid: origin.tid, kind: fault }
}

/// Whether perf reports faults inside system calls to this user: whether events without
/// `exclude_kernel` may be opened.
fn reports_kernel_faults() -> bool {
    perf::open(&Attributes::new(Attributes::SOFTWARE, COUNT_SW_DUMMY), OWN_THREAD, 0).is_ok()
}

/// Emits an event other than a fault. Events of the caller's children are disabled until exec, so
/// their fork was not seen; it is emitted before the exec.
fn emit_process_event(known: &mut HashSet<u32>, event: Event, take: &mut dyn FnMut(Event)) {
    match event.kind {
        EventKind::Fork { .. } => {
            known.insert(event.pid);
        }
        EventKind::Exec => {
            if known.insert(event.pid) {
                let parent = std::process::id();
                take(Event { kind: EventKind::Fork { parent }, ..event });
            }
        }
        // Other threads may outlive the leader. Only an exec by one of them would emit a second
        // fork.
        EventKind::Exit if event.pid == event.tid => {
            known.remove(&event.pid);
        }
        EventKind::Map(_) | EventKind::Fault { .. } | EventKind::Exit | EventKind::Lost { .. } => {}
    }
    take(event);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_lost_records_once() {
        let count_lost = |lost: &mut LostRecords, records| {
            let lost_event = EventKind::Lost { records };
            lost.without_reported(Event { at_ns: 0, pid: 1, tid: 1, kind: lost_event })
                .map(|event| event.kind)
        };
        let mut lost = LostRecords::default();
        assert_eq!(count_lost(&mut lost, 5), Some(EventKind::Lost { records: 5 }));
        assert_eq!(lost.add_total(5), None);
        assert_eq!(lost.add_total(12), Some(7));
        // PERF_RECORD_LOST comes late, in one or several records, and includes later losses.
        assert_eq!(count_lost(&mut lost, 3), None);
        assert_eq!(count_lost(&mut lost, 6), Some(EventKind::Lost { records: 2 }));
        assert_eq!((lost.add_total(14), lost.add_total(15)), (None, Some(1)));
    }
}
