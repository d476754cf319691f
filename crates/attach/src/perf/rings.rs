//! Ring buffers of all CPUs, with their records merged in order of time.
//!
//! A CPU has several rings, so that frequent records do not displace more important ones.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

use super::event::{Attributes, Flag, online_cpus, open};
use super::record::{PerfRecord, RecordKind, record_at};
use super::ring::Ring;

/// `PERF_COUNT_SW_DUMMY`: an event that never occurs.
pub(crate) const COUNT_SW_DUMMY: u64 = 9;

/// As a TID, the calling thread.
pub(crate) const OWN_THREAD: u32 = 0;

/// Configuration of [`Rings`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingConfig {
    /// Rings to create per CPU.
    pub(crate) rings: &'static [RingSpec],
    /// Whether to drop the second record of a fault reported by two events.
    pub(crate) dedups_faults: bool,
}

/// Configuration of one ring per CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingSpec {
    /// Data size for root, in bytes; scaled down if all rings of all CPUs exceed
    /// [`MAX_TOTAL_BYTES`].
    pub(crate) root_bytes: usize,
    /// Data size for other users, in bytes. The kernel lets unprivileged users lock 516 KiB per CPU
    /// (`kernel.perf_event_mlock_kb`), which includes one control page per ring.
    pub(crate) user_bytes: usize,
    /// Wakeup watermark in bytes. A wakeup costs the writing thread as much as several faults.
    pub(crate) wakeup_bytes: u32,
}

const MAX_TOTAL_BYTES: usize = 64 << 20;

/// Two faults of one thread at one address within this time are the same fault, reported by two
/// events: a thread can have its own event and an inherited one.
const DUPLICATE_FAULT_NS: u64 = 5_000;

#[derive(Debug)]
struct CpuRing {
    /// Dummy event that owns the ring, so that it outlives the events redirected to it.
    event: OwnedFd,
    ring: Ring,
    /// Index among the rings of the CPU.
    number: u8,
    dedups_faults: bool,
    /// TID, address and time of the last fault.
    last: (u32, u64, u64),
}

/// Rings of an online CPU.
#[derive(Debug)]
struct Cpu {
    number: u32,
    rings: Vec<CpuRing>,
}

/// Position and time of a buffered record.
#[derive(Clone, Copy, Debug)]
struct RecordPosition {
    at_ns: u64,
    begin: u32,
    ring: u8,
}

#[derive(Debug)]
pub(crate) struct Rings {
    cpus: Vec<Cpu>,
    epoll: OwnedFd,
    /// Records drained from the rings and not delivered yet.
    records: Vec<u8>,
    positions: Vec<RecordPosition>,
    /// A ring was full: the kernel may have dropped records without a PERF_RECORD_LOST so far.
    may_have_lost: bool,
}

impl Rings {
    /// Creates the rings, as large as the kernel permits.
    pub(crate) fn open(purpose: RingConfig) -> io::Result<Rings> {
        let cpus = online_cpus();
        let is_root = rustix::process::geteuid().is_root();
        let room = |plan: &RingSpec| if is_root { plan.root_bytes } else { plan.user_bytes };
        let in_all = purpose.rings.iter().map(room).sum::<usize>() * cpus.len();
        let mut part = 1;
        while is_root && in_all / part > MAX_TOTAL_BYTES {
            part *= 2;
        }
        loop {
            let has_room = |plan: &RingSpec| room(plan) / part > rustix::param::page_size();
            match Rings::open_with_sizes(&cpus, purpose, |plan| room(plan) / part) {
                // The locked-memory limit is exhausted, by other rings of the user or by the number
                // of CPUs.
                Err(error) if is_over_limit(&error) && purpose.rings.iter().all(has_room) => {
                    part *= 2;
                }
                opened => return opened,
            }
        }
    }

    fn open_with_sizes(
        cpus: &[u32],
        purpose: RingConfig,
        room: impl Fn(&RingSpec) -> usize,
    ) -> io::Result<Rings> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut opened = Vec::new();
        for number in cpus {
            match Cpu::open(*number, purpose, &room) {
                Ok(cpu) => opened.push(cpu),
                // The CPU was taken offline meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(error),
            }
        }
        for ring in opened.iter().flat_map(|cpu| &cpu.rings) {
            let data = epoll::EventData::new_u64(0);
            epoll::add(&epoll, &ring.event, data, epoll::EventFlags::IN)?;
        }
        Ok(Rings {
            cpus: opened,
            epoll,
            records: Vec::new(),
            positions: Vec::new(),
            may_have_lost: false,
        })
    }

    /// IDs of the CPUs, each with the events whose rings to redirect to.
    pub(crate) fn targets(&self) -> impl Iterator<Item = (u32, Vec<&OwnedFd>)> {
        self.cpus.iter().map(|cpu| (cpu.number, cpu.rings.iter().map(|r| &r.event).collect()))
    }

    pub(crate) fn has_records(&self) -> bool {
        let mut rings = self.cpus.iter().flat_map(|cpu| &cpu.rings);
        !self.positions.is_empty() || rings.any(|ring| !ring.ring.is_empty())
    }

    /// Whether records may have been lost without notice: the kernel writes PERF_RECORD_LOST before
    /// the next record in the same ring, which may never come.
    pub(crate) fn may_have_lost(&self) -> bool {
        self.may_have_lost
    }

    /// Acknowledges [`Rings::may_have_lost`] once the loss is known from read(2).
    pub(crate) fn clear_may_have_lost(&mut self) {
        self.may_have_lost = false;
    }

    /// Waits up to `timeout` for a ring to reach its watermark. Returns false if waiting again is
    /// pointless, because the thread that the events were opened for has exited and epoll reports
    /// EPOLLHUP from then on.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let mut ready = Vec::with_capacity(1);
        let timeout = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut ready), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {
                let is_over = |event: &epoll::Event| {
                    let flags = event.flags;
                    flags.contains(epoll::EventFlags::HUP)
                };
                Ok(!ready.iter().any(is_over))
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Drains all rings, and passes records up to `until_ns` to `take` in order of time, each with
    /// the index of its ring. Newer records are kept, since an older one may not have reached its
    /// ring yet.
    pub(crate) fn read(&mut self, until_ns: u64, mut take: impl FnMut(PerfRecord<'_>, u8)) {
        for ring in self.cpus.iter_mut().flat_map(|cpu| &mut cpu.rings) {
            self.may_have_lost |= ring.read(&mut self.records, &mut self.positions);
        }
        // The records of each ring are in order: the stable sort merges presorted runs cheaply.
        self.positions.sort_by_key(|place| place.at_ns);
        let count = self.positions.partition_point(|place| place.at_ns <= until_ns);
        for place in &self.positions[..count] {
            if let Some((record, _)) = record_at(&self.records[place.begin as usize..]) {
                take(record, place.ring);
            }
        }
        self.discard_before(count);
    }

    /// Drops the first `count` positions, and compacts the records of the rest.
    fn discard_before(&mut self, count: usize) {
        self.positions.drain(..count);
        let mut kept = Vec::new();
        for place in &mut self.positions {
            let bytes = &self.records[place.begin as usize..];
            let length = record_at(bytes).map_or(0, |(_, length)| length);
            place.begin = kept.len() as u32;
            kept.extend_from_slice(&bytes[..length]);
        }
        self.records.clear();
        self.records.extend_from_slice(&kept);
    }
}

fn is_over_limit(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

impl Cpu {
    fn open(
        number: u32,
        purpose: RingConfig,
        room: &impl Fn(&RingSpec) -> usize,
    ) -> io::Result<Cpu> {
        let mut rings = Vec::new();
        for plan in purpose.rings {
            let nothing = Attributes::new(Attributes::SOFTWARE, COUNT_SW_DUMMY)
                .with_flags(&[Flag::Disabled, Flag::ExcludeKernel])
                .with_wakeup_bytes(plan.wakeup_bytes);
            let event = open(&nothing, OWN_THREAD, number)?;
            let ring = Ring::map(&event, room(plan))?;
            let (number, tells_once) = (rings.len() as u8, purpose.dedups_faults);
            rings.push(CpuRing { event, ring, number, dedups_faults: tells_once, last: (0, 0, 0) });
        }
        Ok(Cpu { number, rings })
    }
}

impl CpuRing {
    /// Drains the ring. Returns whether it was full.
    fn read(&mut self, records: &mut Vec<u8>, places: &mut Vec<RecordPosition>) -> bool {
        let mut begin = records.len();
        let was_full = self.ring.drain(records);
        while let Some((record, length)) = record_at(&records[begin..]) {
            let at_ns = record.origin().at_ns;
            let is_fault = self.dedups_faults && record.kind == RecordKind::Sample;
            if !(is_fault && self.is_duplicate(&record)) {
                places.push(RecordPosition { at_ns, begin: begin as u32, ring: self.number });
            }
            begin += length;
        }
        was_full
    }

    /// Whether a fault repeats the previous one, reported by another event.
    fn is_duplicate(&mut self, sample: &PerfRecord<'_>) -> bool {
        let origin = sample.origin();
        let (tid, address, at_ns) = self.last;
        self.last = (origin.tid, sample.address().unwrap_or(0), origin.at_ns);
        (tid, address) == (self.last.0, self.last.1)
            && origin.at_ns.saturating_sub(at_ns) < DUPLICATE_FAULT_NS
    }
}
