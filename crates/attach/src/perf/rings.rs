//! The rings of all CPUs, and the records in them in order of time.
//!
//! A CPU has several, so that many records of one kind do not crowd out what matters more.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

use super::event::{Attributes, Flag, online_cpus, open};
use super::record::{PerfRecord, RecordKind, record_at};
use super::ring::Ring;

/// An event that never happens, by its number in `linux/perf_event.h`.
pub(crate) const COUNT_SW_DUMMY: u64 = 9;

/// The calling thread, where a thread is asked for.
pub(crate) const OWN_THREAD: u32 = 0;

/// What the rings are for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingConfig {
    /// The rings of each CPU.
    pub(crate) rings: &'static [RingSpec],
    /// Whether a fault that two events tell of is told once.
    pub(crate) dedups_faults: bool,
}

/// A ring of each CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingSpec {
    /// Its room for root, in bytes, as long as all rings of all CPUs have no more than
    /// [`MAX_TOTAL_BYTES`].
    pub(crate) root_bytes: usize,
    /// Its room for others, in bytes. The kernel lets an ordinary user lock 516 KiB for each CPU
    /// (`kernel.perf_event_mlock_kb`), of which a page a ring is for something else.
    pub(crate) user_bytes: usize,
    /// Whoever waits is woken when so many bytes were written. To wake costs the thread that
    /// writes as much as some faults.
    pub(crate) wakeup_bytes: u32,
}

const MAX_TOTAL_BYTES: usize = 64 << 20;

/// Faults of a thread at one address within so short a time are one that two events told: a thread
/// can have an event of its own and one that it inherited.
const DUPLICATE_FAULT_NS: u64 = 5_000;

#[derive(Debug)]
struct CpuRing {
    /// It never happens, so that the ring stays while other events come and go.
    event: OwnedFd,
    ring: Ring,
    /// Which of the CPU's rings it is.
    number: u8,
    dedups_faults: bool,
    /// The fault that was read last: its thread, address and time.
    last: (u32, u64, u64),
}

/// The rings of a CPU that is on.
#[derive(Debug)]
struct Cpu {
    number: u32,
    rings: Vec<CpuRing>,
}

/// Where a record is that was read, which is told when its time has come.
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
    /// Records that were read and not told yet, and the order in which they will be.
    records: Vec<u8>,
    positions: Vec<RecordPosition>,
    /// A ring was full, and the kernel may have lost records that it has not told of.
    may_have_lost: bool,
}

impl Rings {
    /// Maps them, as large as the kernel permits.
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
                // What may be locked for this user is used up, by others or by many CPUs.
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
                // It was switched off meanwhile.
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

    /// The numbers of the CPUs, each with the events that have its rings.
    pub(crate) fn targets(&self) -> impl Iterator<Item = (u32, Vec<&OwnedFd>)> {
        self.cpus.iter().map(|cpu| (cpu.number, cpu.rings.iter().map(|r| &r.event).collect()))
    }

    pub(crate) fn has_records(&self) -> bool {
        let mut rings = self.cpus.iter().flat_map(|cpu| &cpu.rings);
        !self.positions.is_empty() || rings.any(|ring| !ring.ring.is_empty())
    }

    /// Whether records may have been lost of which no record tells: the kernel tells of them before
    /// the next record in the same ring, which may never come.
    pub(crate) fn may_have_lost(&self) -> bool {
        self.may_have_lost
    }

    /// What was lost is known from elsewhere.
    pub(crate) fn clear_may_have_lost(&mut self) {
        self.may_have_lost = false;
    }

    /// Waits until a ring may have something that matters, or for `timeout`. Returns whether it
    /// makes sense to wait again: not where the thread that opened the events has ended, of which
    /// the kernel tells for ever.
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

    /// Reads all that is there, and tells `take` what is not later than `until_ns`, and which
    /// ring of its CPU it was in. Of what is later, something earlier may not be in its ring yet.
    pub(crate) fn read(&mut self, until_ns: u64, mut take: impl FnMut(PerfRecord<'_>, u8)) {
        for ring in self.cpus.iter_mut().flat_map(|cpu| &mut cpu.rings) {
            self.may_have_lost |= ring.read(&mut self.records, &mut self.positions);
        }
        // Each ring is in order already, for which this sort is made.
        self.positions.sort_by_key(|place| place.at_ns);
        let count = self.positions.partition_point(|place| place.at_ns <= until_ns);
        for place in &self.positions[..count] {
            if let Some((record, _)) = record_at(&self.records[place.begin as usize..]) {
                take(record, place.ring);
            }
        }
        self.discard_before(count);
    }

    /// Forgets the places before `count`, and all records but those of the others.
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
    /// Returns whether it was full.
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

    /// Whether a fault is the last that was read, told by another event.
    fn is_duplicate(&mut self, sample: &PerfRecord<'_>) -> bool {
        let origin = sample.origin();
        let (tid, address, at_ns) = self.last;
        self.last = (origin.tid, sample.address().unwrap_or(0), origin.at_ns);
        (tid, address) == (self.last.0, self.last.1)
            && origin.at_ns.saturating_sub(at_ns) < DUPLICATE_FAULT_NS
    }
}
